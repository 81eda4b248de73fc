//! Where front ends connect, or the one that this end connects to.
use super::error::ServeError;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

pub(super) enum Endpoint {
    Server {
        listener: UnixListener,
        path: PathBuf,
    },
    Client {
        path: PathBuf,
    },
}

impl Endpoint {
    pub(super) fn open(path: &Path, client: bool) -> Result<Endpoint, ServeError> {
        let path = path.to_owned();
        if client {
            return Ok(Endpoint::Client { path });
        }
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                unused(&path)?;
                UnixListener::bind(&path)
            }
            bound => bound,
        };
        let failed = |source| ServeError::Listen {
            path: path.clone(),
            source,
        };
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Endpoint::Server { listener, path })
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Endpoint::Server { listener, .. } => Some(listener.as_fd()),
            Endpoint::Client { .. } => None,
        }
    }

    pub(super) fn is_client(&self) -> bool {
        matches!(self, Endpoint::Client { .. })
    }

    pub(super) fn accept(&self) -> Result<Option<UnixStream>, ServeError> {
        let Endpoint::Server { listener, path } = self else {
            return Ok(None);
        };
        match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {
                    Ok(None)
                }
                _ => Err(failed(path, error)),
            },
        }
    }

    /// The front end that serves the socket, if it does by now.
    pub(super) fn try_connect(&self) -> Result<Option<UnixStream>, ServeError> {
        let Endpoint::Client { path } = self else {
            return Ok(None);
        };
        match UnixStream::connect(path) {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::WouldBlock => {
                    Ok(None)
                }
                _ => Err(failed(path, error)),
            },
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Endpoint::Server { path, .. } = self {
            // Gone already, or not ours to remove: nobody can be told at the end.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn failed(path: &Path, source: io::Error) -> ServeError {
    ServeError::Listen {
        path: path.into(),
        source,
    }
}

/// Removes what a back end left that was killed: a socket that nobody listens on.
fn unused(path: &Path) -> Result<(), ServeError> {
    let there = std::fs::symlink_metadata(path).map_err(|e| failed(path, e))?;
    if !there.file_type().is_socket() {
        return Err(ServeError::NotASocket { path: path.into() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| failed(path, e))
        }
        _ => Err(ServeError::InUse { path: path.into() }),
    }
}
