//! `tests/costs`: what the longer cases take, so that they are started first, and which mostly wait, so that they do
//! not hold a processor. Nothing is judged by it.
use anyhow::Context;
use std::collections::HashMap;

/// What a case that is not listed is taken for, in seconds.
const SHORT: f64 = 1.0;

/// In place of the seconds, before what the names of such cases begin with.
const WAITS: &str = "waits";

pub(super) struct Costs {
    seconds: HashMap<String, f64>,
    waits: Vec<String>,
}

impl Costs {
    /// A line each: seconds and the name of a case, or `waits` and the beginning of names; `#` starts a comment.
    pub(super) fn load() -> anyhow::Result<Costs> {
        let path = crate::repository().join("tests/costs");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let mut costs = Costs {
            seconds: HashMap::new(),
            waits: Vec::new(),
        };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            let Some((first, name)) = line.split_once(' ') else {
                continue;
            };
            let name = name.trim().to_owned();
            if first == WAITS {
                costs.waits.push(name);
                continue;
            }
            let seconds = first
                .parse()
                .with_context(|| format!("tests/costs: {line}"))?;
            costs.seconds.insert(name, seconds);
        }
        Ok(costs)
    }

    pub(super) fn seconds(&self, name: &str) -> f64 {
        self.seconds.get(name).copied().unwrap_or(SHORT)
    }

    /// Whether a case uses less than a third of a processor while it runs.
    pub(super) fn waits(&self, name: &str) -> bool {
        self.waits
            .iter()
            .any(|beginning| name.starts_with(beginning.as_str()))
    }
}
