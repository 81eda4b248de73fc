//! `tests/shards`: the parts of `make soak`, each of which starts nothing after less than an hour.
use anyhow::{Context, ensure};

pub struct Shards(Vec<(String, String)>);

impl Shards {
    /// Lines of the file: a shard's name and prefixes of the names of its cases. The longest prefix that fits a
    /// case decides. `#` starts a comment.
    ///
    /// # Errors
    /// The file cannot be read, or has a prefix twice.
    pub fn load() -> anyhow::Result<Shards> {
        let path = crate::repository().join("tests/shards");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let mut rows: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(shard) = words.next() else { continue };
            for prefix in words {
                let is_known = rows.iter().any(|(_, p)| p == prefix);
                ensure!(!is_known, "tests/shards has {prefix} twice");
                rows.push((shard.into(), prefix.into()));
            }
        }
        Ok(Shards(rows))
    }

    /// Where a case belongs.
    pub fn of(&self, case: &str) -> Option<&str> {
        let fits = self
            .0
            .iter()
            .filter(|(_, prefix)| case.starts_with(prefix.as_str()));
        let longest = fits.max_by_key(|(_, prefix)| prefix.len());
        longest.map(|(shard, _)| shard.as_str())
    }

    /// In the file's order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (shard, _) in &self.0 {
            if !names.contains(&shard.as_str()) {
                names.push(shard);
            }
        }
        names
    }
}
