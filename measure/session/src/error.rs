//! Why a measurement does not begin, or ends early.
use hopscope_probe::counters::counting::CounterError;
use hopscope_probe::live::LiveError;
use hopscope_probe::locate::LocateError;
use hopscope_probe::plan::PlanError;
use hopscope_probe::recorder::budget::BudgetError;
use hopscope_process::programs::ProgramError;
use hopscope_process::{AttachError, LaunchError};
pub(crate) use hopscope_read::error::{in_one_line, refuse, require};
use hopscope_slice::calibrate::CalibrateError;
use hopscope_slice::filter::FilterError;
use hopscope_slice::programs::SliceError;
use hopscope_slice::regions::RegionError;
use hopscope_trace::TraceError;
use std::io::ErrorKind;
use std::num::ParseIntError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `doing` is a clause that its cause follows.
    #[error("{doing}")]
    While { doing: String, source: Box<Error> },
    #[error("the kernel programs' account does not add up: {in_flight} packets under way")]
    Unbalanced { in_flight: i64 },
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Locate(#[from] LocateError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Counters(#[from] CounterError),
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Number(#[from] ParseIntError),
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Regions(#[from] RegionError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Of a recording; and what is asked for is not there, or may not be done.
    #[error(transparent)]
    Read(#[from] hopscope_read::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// As the kernel names it.
    #[error(transparent)]
    Os(#[from] nix::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whoever read what was written has gone.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Error::While { source, .. } => source.is_broken_pipe(),
            Error::Read(error) => error.is_broken_pipe(),
            Error::Io(error) => error.kind() == ErrorKind::BrokenPipe,
            Error::Json(error) => error.io_error_kind() == Some(ErrorKind::BrokenPipe),
            _ => false,
        }
    }

    /// Which, and what to do instead.
    pub(crate) fn refused(words: impl Into<String>) -> Error {
        hopscope_read::Error::Refused(words.into()).into()
    }

    /// What was done when it came.
    pub(crate) fn context(self, doing: impl Into<String>) -> Error {
        Error::While {
            doing: doing.into(),
            source: Box::new(self),
        }
    }
}

/// Says what was done when something failed.
pub(crate) trait Context<T> {
    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;

    fn context(self, doing: &str) -> Result<T>
    where
        Self: Sized,
    {
        self.with_context(|| doing)
    }
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| error.into().context(doing()))
    }
}

impl<T> Context<T> for Option<T> {
    fn with_context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.ok_or_else(|| Error::refused(what()))
    }
}
