//! Everything linked into the binary may be given away under the licences of `deny.toml`.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, repository};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::licences", &[], licences);
}

fn licences() -> Result<()> {
    let allowed = allowed()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(repository())
        .output()?;
    ensure!(
        out.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    ensure!(packages.len() > 10, "only {} packages", packages.len());
    for package in packages {
        let expression = package["license"].as_str().unwrap_or("none stated");
        ensure!(
            satisfies(expression, &allowed),
            "{} is under {expression}",
            package["name"]
        );
    }
    ensure!(
        !satisfies("GPL-2.0-only", &allowed),
        "the rule lets GPL pass"
    );
    ensure!(
        !satisfies("(MIT OR Apache-2.0) AND CDDL-1.0", &allowed),
        "the rule lets a conjunction pass"
    );
    Ok(())
}

/// The `allow = […]` line of `deny.toml`.
fn allowed() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("deny.toml"))?;
    let line = text
        .lines()
        .find(|line| line.starts_with("allow = ["))
        .context("deny.toml has no allow line")?;
    Ok(line
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_string)
        .collect())
}

/// SPDX expressions as they occur here: alternatives within conjunctions.
fn satisfies(expression: &str, allowed: &[String]) -> bool {
    expression.split(" AND ").all(|part| {
        part.trim_matches(['(', ')'])
            .split(" OR ")
            .flat_map(|choice| choice.split('/'))
            .any(|choice| allowed.iter().any(|ok| ok == choice.trim()))
    })
}
