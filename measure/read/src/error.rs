//! Why a recording gives no such report.
use hopscope_analyze::join::SightingsError;
use hopscope_analyze::{ClockMismatch, JoinError, WindowError};
use hopscope_netio::CaptureError;
use hopscope_trace::TraceError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is wanted is not in the recording, or does not go together: which, and what to do instead.
    #[error("{0}")]
    Refused(String),
    /// `doing` is a clause that its cause follows: "reading calls.hop".
    #[error("{doing}")]
    While { doing: String, source: Box<Error> },
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error(transparent)]
    Clocks(#[from] ClockMismatch),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error(transparent)]
    Sightings(#[from] SightingsError),
    /// Of what is read, or written to.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Says what was done when something failed.
pub(crate) trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| Error::While {
            doing: doing().into(),
            source: Box::new(error.into()),
        })
    }
}

impl Error {
    /// Whoever read what was written has gone.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Error::While { source, .. } => source.is_broken_pipe(),
            Error::Io(error) => error.kind() == std::io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }
}

/// With its causes.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}

/// Returns [`Error::Refused`], or an error that is made from it, as `format!` takes it.
#[macro_export]
macro_rules! refuse {
    ($($words:tt)*) => { return Err($crate::Error::Refused(format!($($words)*)).into()) };
}
pub use crate::refuse;

/// The same unless the condition holds.
#[macro_export]
macro_rules! require {
    ($condition:expr, $($words:tt)*) => { if !$condition { $crate::refuse!($($words)*) } };
}
pub use crate::require;
