//! `hopscope top`: what the chosen functions do now, a line each, until q. The records go into this
//! process instead of a file; the targets are attached to and left as by `record`.
mod args;
mod session;

pub use args::TopArgs;

use crate::record::guard;
use std::process::ExitCode;

pub fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    if guard::is_guarded() {
        return session::run(&args);
    }
    guard::run(&args.as_record(), guard::Salvage::Nothing)
}
