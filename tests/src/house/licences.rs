//! Everything linked into the binary may be given away under the licences of `deny.toml`.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, repository};
use std::collections::BTreeSet;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::licences", &[], licences);
}

/// `cargo tree` says what this target builds; `cargo metadata` lists what other targets would.
fn licences() -> Result<()> {
    let allowed = allowed()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args([
            "tree",
            "--locked",
            "--offline",
            "--workspace",
            "--edges",
            "all",
        ])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none"])
        .args(["--format", "{p}\t{l}"])
        .current_dir(repository())
        .output()?;
    ensure!(
        out.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = String::from_utf8(out.stdout)?;
    let packages: BTreeSet<&str> = text.lines().filter(|line| line.contains('\t')).collect();
    ensure!(packages.len() > 10, "only {} packages", packages.len());
    for package in packages {
        let (name, expression) = package.split_once('\t').context("a tab")?;
        // A package that was named before ends in a mark.
        let expression = expression.trim_end_matches("(*)").trim();
        ensure!(
            satisfies(expression, &allowed),
            "{name} is under {expression:?}"
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
