use crate::comparison::CompareError;
use std::path::PathBuf;

/// Why there is no comparison, or no output of one. Each says what, where and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {path}: {source}")]
    File {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start {program}: {source}")]
    Start {
        program: &'static str,
        source: std::io::Error,
    },
    #[error("{program} failed ({status}): {stderr}")]
    Failed {
        program: String,
        status: String,
        stderr: String,
    },
    #[error("cannot write results: {0}")]
    Output(std::io::Error),
    #[error(
        "{program} printed no number {field:?} in a JSON object on its last line of stdout (that is {line:?})"
    )]
    NoField {
        program: String,
        field: String,
        line: String,
    },
    #[error(transparent)]
    Compare(#[from] CompareError),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on file operations.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File {
            doing,
            path,
            source,
        }
    }

    pub fn no_field(program: impl ToString, field: impl ToString, line: impl ToString) -> Error {
        Error::NoField {
            program: program.to_string(),
            field: field.to_string(),
            line: line.to_string(),
        }
    }
}

/// What matters of the messages of a program that failed: its line that begins with "error", a panic's message,
/// otherwise its last three lines.
pub fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|l| !l.trim().is_empty()).collect();
    let panicked = |l: &str| l.starts_with("thread ") && l.contains("panicked at");
    let marked = lines
        .iter()
        .position(|l| l.starts_with("error") || panicked(l));
    match marked {
        Some(at) if panicked(lines[at]) => lines[at..]
            .iter()
            .take(2)
            .copied()
            .collect::<Vec<_>>()
            .join(" "),
        Some(at) => lines[at].to_string(),
        None => lines[lines.len().saturating_sub(3)..].join(" / "),
    }
}
