//! The part of `cargo test`'s command line that people use.

use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct Arguments {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    pub(super) list: bool,
    /// Names of shards instead of cases.
    pub(super) list_shards: bool,
    pub(super) nocapture: bool,
    pub(super) jobs: usize,
    /// Cases that run alone, or all others; both where it is not said.
    pub(super) alone: Option<bool>,
    /// Of `tests/shards`.
    pub(super) shard: Option<String>,
    /// A report of an earlier run: what passed in it is not run again. This run's rows are added to it.
    pub(super) resume: Option<PathBuf>,
    /// No case is started later than this.
    pub(super) minutes: Option<u64>,
}

impl Arguments {
    pub(super) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut parsed = Arguments {
            filters: Vec::new(),
            skips: Vec::new(),
            exact: false,
            list: false,
            list_shards: false,
            nocapture: false,
            alone: None,
            shard: None,
            resume: None,
            minutes: None,
            // With more at once a guest gets too little of a processor for its bench to have figures.
            jobs: std::thread::available_parallelism().map_or(1, |n| n.get()),
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--exact" => parsed.exact = true,
                "--list" => parsed.list = true,
                "--list-shards" => parsed.list_shards = true,
                "--nocapture" => parsed.nocapture = true,
                "--skip" => parsed.skips.push(value()?),
                "--alone" => parsed.alone = Some(true),
                "--beside" => parsed.alone = Some(false),
                "--shard" => parsed.shard = Some(value()?),
                "--resume" => parsed.resume = Some(value()?.into()),
                "--minutes" => match value()?.parse() {
                    Ok(minutes) => parsed.minutes = Some(minutes),
                    Err(_) => return Err("--minutes needs a number".into()),
                },
                "--test-threads" | "--jobs" => {
                    parsed.jobs = match value()?.parse() {
                        Ok(jobs) if jobs > 0 => jobs,
                        _ => return Err(format!("{word} needs a number above 0")),
                    }
                }
                option if option.starts_with('-') => {
                    return Err(format!(
                        "no option {option}; there are --exact, --list, --nocapture, --skip NAME, --jobs N, \
                         --alone, --beside, --shard NAME, --resume FILE, --minutes N"
                    ));
                }
                _ => parsed.filters.push(word),
            }
        }
        if parsed.nocapture {
            parsed.jobs = 1;
        }
        Ok(parsed)
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let hit = |pattern: &String| match self.exact {
            true => name == pattern,
            false => name.contains(pattern.as_str()),
        };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skips.iter().any(hit)
    }

    /// Of cases, by what is in their names.
    pub(super) fn has_names(&self) -> bool {
        !self.filters.is_empty()
    }

    pub(super) fn is_everything(&self) -> bool {
        self.filters.is_empty()
            && self.skips.is_empty()
            && self.shard.is_none()
            && self.alone != Some(true)
    }
}
