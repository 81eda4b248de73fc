//! Why connections are not accelerated, or not any more.
use crate::cgroup::CgroupError;
use crate::programs::SpliceError;
use crate::trial::TrialError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(
        "this kernel fails the test {name} ({why}): {means}; no connection is accelerated (see hopscope check splice)"
    )]
    Kernel {
        name: &'static str,
        why: String,
        means: &'static str,
    },
    /// A program that would hang: which, and what to do.
    #[error("{0}")]
    Hangs(String),
    #[error("process {pid}, {why}")]
    Listens { pid: u32, why: String },
    #[error(
        "BPF programs of others watch {what} of {group}: bytes that take the short cut pass them by; \
         say --yes if that is meant"
    )]
    Policies { what: String, group: String },
    #[error(
        "--pair has to be started outside of containers: threads have other numbers in this PID namespace"
    )]
    PairInContainer,
    #[error("process {0} accelerates nothing")]
    NothingToKeep(u32),
    #[error("the keeper ended at once ({0})")]
    KeeperEnded(std::process::ExitStatus),
    #[error("{what}: {source}")]
    Os {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Splice(#[from] SpliceError),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SessionError {
    /// For `map_err`.
    pub(super) fn os(what: &'static str) -> impl Fn(io::Error) -> SessionError {
        move |source| SessionError::Os { what, source }
    }
}
