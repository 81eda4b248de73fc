//! `hopscope top`: what the chosen functions do now, a line each, until q. The records go into this
//! process instead of a file; the targets are attached to and left as by `record`.
mod args;

pub use args::TopArgs;

use hopscope_session::guard::{self, Guarded};
use hopscope_session::top;
use std::process::ExitCode;

pub fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let request = args.into_request();
    if guard::is_guarded()? {
        let is_early = guard::recorder(|| top::run(&request))?;
        return Ok(ExitCode::from(u8::from(is_early)));
    }
    let code = guard::run(&Guarded {
        attach: &request.attach,
        output: None,
        is_flight: false,
        takes_signal: false,
        failure: 2,
    })?;
    Ok(ExitCode::from(code))
}
