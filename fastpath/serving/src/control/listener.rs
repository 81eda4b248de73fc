//! The control socket's name in the file system: for its owner alone from the moment it is there.
use crate::endpoint::Endpoint;
use crate::error::ServingError;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// # Errors
/// The name is too long, in use, or cannot be had.
pub(super) fn open(path: &Path) -> Result<Endpoint, ServingError> {
    let failed = |source: io::Error| ServingError::Control {
        path: path.into(),
        source,
    };
    // Up to 107 bytes (unix(7)).
    let address =
        UnixAddr::new(path).map_err(|_| ServingError::ControlName { path: path.into() })?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let made = socket(AddressFamily::Unix, SockType::Stream, flags, None);
    let made: OwnedFd = made.map_err(|e| failed(e.into()))?;
    // Linux gives the name in the file system the mode of the socket, less the umask.
    fchmod(&made, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|e| failed(e.into()))?;
    let bound = match bind(made.as_raw_fd(), &address) {
        Err(nix::errno::Errno::EADDRINUSE) => {
            unused(path)?;
            bind(made.as_raw_fd(), &address)
        }
        bound => bound,
    };
    bound.map_err(|e| failed(e.into()))?;
    let backlog = Backlog::new(64).map_err(|e| failed(e.into()))?;
    listen(&made, backlog).map_err(|e| failed(e.into()))?;
    Endpoint::of(UnixListener::from(made), path.into())
}

/// Removes the stale socket of a killed back end.
fn unused(path: &Path) -> Result<(), ServingError> {
    let failed = |source: io::Error| ServingError::Control {
        path: path.into(),
        source,
    };
    let there = std::fs::symlink_metadata(path).map_err(failed)?;
    if !there.file_type().is_socket() {
        return Err(ServingError::ControlNotASocket { path: path.into() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        _ => Err(ServingError::ControlInUse { path: path.into() }),
    }
}
