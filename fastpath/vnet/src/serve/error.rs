//! Why a back end cannot start or continue. A protocol error of a front end ends its connection only: `Broken`.
use crate::common::eventfd::EventfdError;
use crate::policy::BadPolicy;
use crate::vhost::Refused;
use hopscope_netio::PortError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{path} is in use: another back end listens there; give another --socket, or end it", path = path.display())]
    InUse { path: PathBuf },
    #[error("{path} exists and is not a socket: give another --socket", path = path.display())]
    NotASocket { path: PathBuf },
    #[error("cannot listen on {path}: {source}", path = path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error("cannot connect to {path}: {source}: privileges are already dropped; give a --user NAME with access", path = path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("there is no user {name}: `getent passwd` lists all users")]
    NoUser { name: String },
    #[error("cannot run as {name}: {source}: start as root, or without --user")]
    RunAs { name: String, source: io::Error },
    #[error("{path} is in use by another control socket: give another --control, or --no-control", path = path.display())]
    ControlInUse { path: PathBuf },
    #[error("{path} exists and is not a socket: give another --control", path = path.display())]
    ControlNotASocket { path: PathBuf },
    #[error("{path} is too long for a socket: 107 bytes at most; give another --control, or --no-control", path = path.display())]
    ControlName { path: PathBuf },
    #[error("cannot take requests on {path}: {source}", path = path.display())]
    Control { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

impl ServeError {
    pub(super) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ServeError {
        move |source| ServeError::System {
            doing,
            source: source.into(),
        }
    }
}

/// Why a connection ended before its front end ended it.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("memory region {n} ({len:#x} bytes at {offset:#x} of its file): {why}")]
    Map {
        n: usize,
        len: u64,
        offset: u64,
        why: String,
    },
    #[error(transparent)]
    Eventfd(#[from] EventfdError),
    #[error("the front end does not read replies")]
    NotReading,
    #[error("truncated message: {0} bytes")]
    Short(usize),
    #[error("{0}")]
    Socket(#[from] io::Error),
}
