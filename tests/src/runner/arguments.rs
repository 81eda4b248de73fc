//! The part of `cargo test`'s command line that people use.

#[derive(Debug)]
pub(super) struct Arguments {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    pub(super) list: bool,
    pub(super) nocapture: bool,
    pub(super) jobs: usize,
}

impl Arguments {
    pub(super) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut parsed = Arguments {
            filters: Vec::new(),
            skips: Vec::new(),
            exact: false,
            list: false,
            nocapture: false,
            jobs: std::thread::available_parallelism().map_or(1, |n| n.get()),
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--exact" => parsed.exact = true,
                "--list" => parsed.list = true,
                "--nocapture" => parsed.nocapture = true,
                "--skip" => parsed.skips.push(value()?),
                "--test-threads" | "--jobs" => {
                    parsed.jobs = match value()?.parse() {
                        Ok(jobs) if jobs > 0 => jobs,
                        _ => return Err(format!("{word} needs a number above 0")),
                    }
                }
                option if option.starts_with('-') => {
                    return Err(format!(
                        "no option {option}; there are --exact, --list, --nocapture, --skip NAME, --jobs N"
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

    pub(super) fn is_everything(&self) -> bool {
        self.filters.is_empty() && self.skips.is_empty()
    }
}
