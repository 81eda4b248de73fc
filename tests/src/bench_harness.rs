//! `hopscope bench` as a user runs it: what order, what verdict, what is printed and kept.
mod analyze;
mod compare;
mod density;
mod html;
mod load;
mod locality;
mod propagation;

use anyhow::Result;
use hopscope_tests::{Suite, command, scratch};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    analyze::register(suite);
    compare::register(suite);
    density::register(suite);
    html::register(suite);
    load::register(suite);
    locality::register(suite);
    propagation::register(suite);
}

/// The demo firewall, built.
fn demo() -> Result<String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo");
    let out = scratch().join("demo");
    let build = format!("BUILD={}", out.display());
    command::run(Command::new("make").args(["-s", "-C", source, &build]))?.expect_code(0)?;
    Ok(out.join("hopscope-demo").display().to_string())
}
