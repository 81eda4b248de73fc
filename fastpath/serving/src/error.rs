//! Why a server cannot start or continue.
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ServingError {
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
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

impl ServingError {
    pub(crate) fn system<E: Into<io::Error>>(
        doing: &'static str,
    ) -> impl FnOnce(E) -> ServingError {
        move |source| ServingError::System {
            doing,
            source: source.into(),
        }
    }
}
