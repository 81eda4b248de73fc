use std::path::PathBuf;

/// Why a bench could not measure. Each says what, where and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {program}: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("{program} failed ({status}): {said}")]
    Failed {
        program: String,
        status: String,
        said: String,
    },
    /// What was measured is gone; `source` is what was noticed of it.
    #[error("{program} ended while it was measured ({status}; it said: {said}): {source}")]
    Ended {
        program: String,
        status: String,
        said: String,
        source: Box<Error>,
    },
    #[error("the bench program answered {answer:?} to {asked:?}")]
    Answer { asked: String, answer: String },
    #[error("{program} did not report ready within {seconds} s; it said: {said}")]
    NotReady {
        program: String,
        seconds: u64,
        said: String,
    },
    #[error("{wanted} processors are needed, {found} may be used here (taskset, cpusets)")]
    Processors { wanted: usize, found: usize },
    #[error("{program} printed no JSON summary (last line: {line:?})")]
    NoSummary { program: String, line: String },
    #[error(
        "{wanted} functions of the bench program should be measured, but {functions} are and {refused} were refused; see hopscope record --dry-run"
    )]
    Functions {
        wanted: usize,
        functions: f64,
        refused: f64,
    },
    #[error("the browser could not {doing}: {said}")]
    Browser { doing: &'static str, said: String },
    #[error("cannot write {path}: {source}")]
    Recording {
        path: PathBuf,
        source: hopscope_trace::TraceError,
    },
    #[error("nothing was measured of {what}: not one packet or round trip came back")]
    Nothing { what: &'static str },
    #[error(transparent)]
    Guest(#[from] hopscope_guest::Error),
    #[error(transparent)]
    Comparison(#[from] hopscope_compare::comparison::CompareError),
    /// Of files, and of output that lacks a number.
    #[error(transparent)]
    Compare(#[from] hopscope_compare::error::Error),
    #[error("cannot {doing}: {source}")]
    System {
        doing: &'static str,
        source: nix::Error,
    },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on file operations.
    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let error = hopscope_compare::error::Error::file(doing, path);
        move |source| error(source).into()
    }

    pub(crate) fn start(program: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let program = program.into();
        move |source| Error::Start { program, source }
    }

    pub(crate) fn failed(
        program: impl ToString,
        status: impl ToString,
        said: impl ToString,
    ) -> Error {
        Error::Failed {
            program: program.to_string(),
            status: status.to_string(),
            said: said.to_string(),
        }
    }

    pub(crate) fn no_summary(program: impl ToString, line: impl ToString) -> Error {
        Error::NoSummary {
            program: program.to_string(),
            line: line.to_string(),
        }
    }

    pub(crate) fn no_field(
        program: impl ToString,
        field: impl ToString,
        line: impl ToString,
    ) -> Error {
        hopscope_compare::error::Error::no_field(program, field, line).into()
    }
}
