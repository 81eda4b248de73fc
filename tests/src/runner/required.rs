//! `HOPSCOPE_REQUIRED=FILE`: what the machine must run. A skip of one of these is a failure.
use super::report::Outcome;
use crate::Suite;
use anyhow::Context;

/// Lines of the file: a prefix of test names, or `@requirement` (no test may be skipped for the
/// lack of it). `#` starts a comment.
pub(super) struct Required {
    prefixes: Vec<String>,
    requirements: Vec<String>,
}

impl Required {
    pub(super) fn load() -> anyhow::Result<Required> {
        let mut required = Required {
            prefixes: Vec::new(),
            requirements: Vec::new(),
        };
        let default = crate::repository().join("tests/required-here");
        let path = match (std::env::var_os("HOPSCOPE_REQUIRED"), std::env::var("CI")) {
            (Some(path), _) => crate::repository().join(path),
            (None, Ok(ci)) if ci == "true" => default,
            _ => return Ok(required),
        };
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        for line in text.lines() {
            let word = line.split('#').next().unwrap_or("").trim();
            match word.strip_prefix('@') {
                _ if word.is_empty() => {}
                Some(requirement) => required.requirements.push(requirement.to_string()),
                None => required.prefixes.push(word.to_string()),
            }
        }
        Ok(required)
    }

    pub(super) fn judge_skip(&self, name: &str, need: &str, reason: &str) -> Outcome {
        let must_run = self.prefixes.iter().any(|prefix| name.starts_with(prefix))
            || self.requirements.iter().any(|word| word == need);
        match must_run {
            true => Outcome::Failed(format!(
                "required on this machine, but cannot run: {reason}"
            )),
            false => Outcome::Skipped(format!("{need}: {reason}")),
        }
    }

    /// Prefixes that have lost their tests.
    pub(super) fn without_cases(&self, suite: &Suite) -> Vec<&str> {
        self.prefixes
            .iter()
            .filter(|prefix| {
                !suite
                    .cases
                    .iter()
                    .any(|case| case.name.starts_with(*prefix))
            })
            .map(String::as_str)
            .collect()
    }
}
