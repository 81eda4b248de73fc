//! How a command fails: one line on stderr, and an exit code.
pub(crate) use hopscope_session::status::{on_stderr, say};
use std::io::ErrorKind;
use std::process::ExitCode;

/// A line on stderr where it is no error: not with `-q`.
macro_rules! note {
    ($($words:tt)*) => {
        if !$crate::status::is_quiet() {
            $crate::status::say!($($words)*);
        }
    };
}
pub(crate) use note;

/// As the log was set up.
pub(crate) fn is_quiet() -> bool {
    log::max_level() <= log::LevelFilter::Error
}

/// Says why, in one line with the causes joined, and gives the exit code. A reader that went away
/// (`hopscope report … | head`) is no failure.
pub(crate) fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    on_stderr(format_args!("{}", joined(error)));
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

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let read = cause.downcast_ref::<hopscope_read::Error>();
        if read.is_some_and(hopscope_read::Error::is_broken_pipe) {
            return true;
        }
        let session = cause.downcast_ref::<hopscope_session::Error>();
        if session.is_some_and(hopscope_session::Error::is_broken_pipe) {
            return true;
        }
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
