//! `tests/costs`: what the longer cases take, so that they can be started first. Nothing is judged by it.
use anyhow::Context;
use std::collections::HashMap;

/// What a case that is not listed is taken for, in seconds.
const SHORT: f64 = 1.0;

pub(super) struct Costs(HashMap<String, f64>);

impl Costs {
    /// A line each: seconds and the name of a case; `#` starts a comment.
    pub(super) fn load() -> anyhow::Result<Costs> {
        let path = crate::repository().join("tests/costs");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let mut costs = HashMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if let Some((seconds, name)) = line.split_once(' ') {
                let seconds = seconds
                    .parse()
                    .with_context(|| format!("tests/costs: {line}"))?;
                costs.insert(name.trim().to_owned(), seconds);
            }
        }
        Ok(Costs(costs))
    }

    pub(super) fn seconds(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(SHORT)
    }
}
