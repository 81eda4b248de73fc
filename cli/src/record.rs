//! `hopscope record`: attach, record, detach, say what happened.
mod args;

pub(crate) use args::{RecordArgs, THREADS, parse_size_log2};

use crate::command::exit_code_of;
use crate::test_hooks;
use hopscope_session::guard::{self, Guarded};
use hopscope_session::record::{self, Finished, RecordRequest};
use std::process::ExitCode;

/// The process that the user starts is the guardian; the recorder is its child.
pub(crate) fn run(args: RecordArgs) -> anyhow::Result<ExitCode> {
    test_hooks::refuse_where_missing(&[("--emulate-counters", args.emulate_counters)])?;
    let request = args.into_request();
    // With a command its exit code is ours, and 125 says that hopscope itself failed.
    let failure = if request.command.is_empty() { 2 } else { 125 };
    let done = if request.dry_run {
        recorded(&request)
    } else {
        match guard::is_guarded() {
            Ok(true) => guard::recorder(|| recorded(&request)),
            Ok(false) => guarded(&request, failure),
            Err(e) => Err(e.into()),
        }
    };
    done.or_else(|e| Ok(crate::status::failed(&e, failure)))
}

fn guarded(request: &RecordRequest, failure: u8) -> anyhow::Result<ExitCode> {
    let code = guard::run(&Guarded {
        attach: &request.attach,
        output: Some(&request.output),
        is_flight: request.flight.is_some(),
        takes_signal: request.takes_signal(),
        failure,
    })?;
    Ok(ExitCode::from(code))
}

fn recorded(request: &RecordRequest) -> anyhow::Result<ExitCode> {
    let Finished { incomplete, child } = record::run(request)?;
    match child {
        Some(mut command) => exit_code_of(command.wait()),
        None => Ok(ExitCode::from(u8::from(incomplete))),
    }
}
