//! `tests/cpython-allow-list`: which tests have another verdict on the stack, in which mode, and why.
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::paths::repository;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Always: where it does not, the row is stale.
    Differs,
    /// At times.
    Flaky,
    /// Not run, on the kernel's neither.
    LeftOut,
}

#[derive(Debug)]
pub(super) struct Allowed {
    pub test: String,
    pub what: What,
}

/// Those of a mode.
pub(super) fn read(mode: &str) -> Result<Vec<Allowed>> {
    let path = repository().join("tests/cpython-allow-list");
    let text = std::fs::read_to_string(&path)?;
    let rows = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut all = Vec::new();
    for line in rows {
        let (test, modes, what) = row(line).with_context(|| line.to_owned())?;
        if modes == "both" || modes == mode {
            let test = test.to_owned();
            all.push(Allowed { test, what });
        }
    }
    Ok(all)
}

fn row(line: &str) -> Result<(&str, &str, What)> {
    let fields: Vec<_> = line.split('\t').collect();
    let [test, modes, what, reason] = fields[..] else {
        bail!("four fields, with tabs between them");
    };
    ensure!(
        ["inline", "pipeline", "both"].contains(&modes) && !reason.is_empty(),
        "no mode, or no reason"
    );
    let what = match what {
        "differs" => What::Differs,
        "flaky" => What::Flaky,
        "left out" => What::LeftOut,
        _ => bail!("not `differs`, `flaky` or `left out`"),
    };
    Ok((test, modes, what))
}

/// A test is of these modules and classes.
pub(super) fn is_of(test: &str, names: &[&str]) -> bool {
    let below = |name: &&str| {
        test.strip_prefix(*name)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    names.iter().any(below)
}
