//! What the tool says of itself, on stderr.
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Says why, in one line with the causes joined, and gives the exit code. A reader that went away
/// (`hopscope report … | head`) is no failure.
pub(crate) fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let line = joined(error);
    // When stderr is gone too there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "hopscope: {line}");
    ExitCode::from(code)
}

/// The causes in one line. Some errors repeat their cause in their own words: once is enough.
fn joined(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line.replace('\n', " ")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        let json = cause.downcast_ref::<serde_json::Error>();
        let kind = io.map(std::io::Error::kind);
        kind.or(json.and_then(serde_json::Error::io_error_kind)) == Some(ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_said_once() {
        let cause = anyhow::anyhow!("no such file");
        let error = cause.context("x: no such file").context("reading\nx");
        assert_eq!(joined(&error), "reading x: x: no such file");
    }

    #[test]
    fn broken_pipe_is_found_under_context() {
        let gone = std::io::Error::from(ErrorKind::BrokenPipe);
        let error = Err::<(), _>(gone).context("writing the report");
        assert!(is_broken_pipe(&error.expect_err("made as one")));
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(!is_broken_pipe(&anyhow::Error::from(full)));
    }
}
