//! Random socket calls on both ends of a connection: two kernel sockets, and either end on the engine, give the same.
use super::cable::namespace;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Counts, Requirement, Suite, counts, repository, target_dir};
use std::path::PathBuf;
use std::process::Command;

/// Where `scripts/test` has built the examples; without it they are built.
const EXAMPLES: &str = "HOPSCOPE_EXAMPLES";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns];
    suite
        .case("stack::calls_give_what_the_kernels_give", needs, the_same)
        .watchdog(1_800);
}

fn differential() -> Result<PathBuf> {
    if let (Counts::Reduced, Some(examples)) = (counts(), std::env::var_os(EXAMPLES)) {
        return Ok(PathBuf::from(examples).join("differential"));
    }
    let cargo = std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
    let words = "build --quiet --locked -p hopscope-stack-engine --example differential";
    run(Command::new(cargo)
        .args(words.split(' '))
        .current_dir(repository()))?
    .expect_code(0)?;
    Ok(target_dir().join("debug/examples/differential"))
}

fn the_same() -> Result<()> {
    let program = differential()?;
    namespace()?;
    let programs = counts().pick("100", "10000");
    let out = run(Command::new(program).args([programs, "1"]))?;
    print!("{}", out.stdout);
    ensure!(out.code == Some(0), "{}", out.stderr);
    Ok(())
}
