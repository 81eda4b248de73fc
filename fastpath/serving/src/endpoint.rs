//! Where front ends connect, or the one that this end connects to.
use crate::error::ServingError;
use crate::privileges::RunAs;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::sys::stat::{Mode, UtimensatFlags, fstat, umask, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Uid, fchownat};
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

pub enum Endpoint {
    Server {
        listener: UnixListener,
        path: PathBuf,
        /// Device and number of what the path names, until it is removed.
        file: Option<(u64, u64)>,
    },
    Client {
        path: PathBuf,
    },
}

/// Whoever may connect has the port: only this user, whatever the mask of whoever started this end.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let before = umask(Mode::from_bits_truncate(0o177));
    let bound = UnixListener::bind(path);
    umask(before);
    bound
}

impl Endpoint {
    pub fn open(path: &Path, client: bool) -> Result<Endpoint, ServingError> {
        let path = path.to_owned();
        if client {
            return Ok(Endpoint::Client { path });
        }
        let listener = match bind(&path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                unused(&path)?;
                bind(&path)
            }
            bound => bound,
        };
        let failed = |source| ServingError::Listen {
            path: path.clone(),
            source,
        };
        Endpoint::of(listener.map_err(failed)?, path)
    }

    /// A socket that listens at `path` already.
    pub fn of(listener: UnixListener, path: PathBuf) -> Result<Endpoint, ServingError> {
        let failed = |source| failed(&path, source);
        listener.set_nonblocking(true).map_err(failed)?;
        let file = std::fs::symlink_metadata(&path).map_err(failed)?;
        let file = Some(identity(&file));
        Ok(Endpoint::Server {
            listener,
            path,
            file,
        })
    }

    /// Makes the socket's file `user`'s, as if it had made it.
    ///
    /// # Errors
    /// The path does not name this socket any more; not permitted.
    pub fn hand_to(&self, user: &RunAs) -> Result<(), ServingError> {
        let Endpoint::Server { path, file, .. } = self else {
            return Ok(());
        };
        let failed = |error: nix::Error| failed(path, error.into());
        // What is changed is what was looked at: others may write in that directory.
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let named = open(path, flags, Mode::empty()).map_err(failed)?;
        let there = fstat(&named).map_err(failed)?;
        let ours = *file == Some((there.st_dev, there.st_ino)) && there.st_nlink == 1;
        if !ours || there.st_uid != Uid::effective().as_raw() {
            return Err(failed(nix::Error::ESTALE));
        }
        let (uid, gid) = (Some(user.uid), Some(user.gid));
        let refused = |source| user.refused(source);
        fchownat(&named, "", uid, gid, AtFlags::AT_EMPTY_PATH).map_err(refused)
    }

    /// Whoever watches the directory hears that front ends are served: bind(2), which they hear of, is before listen(2).
    ///
    /// # Errors
    /// As utimensat(2).
    pub fn announce(&self) -> nix::Result<()> {
        let Endpoint::Server { path, .. } = self else {
            return Ok(());
        };
        let follow = UtimensatFlags::NoFollowSymlink;
        let now = TimeSpec::UTIME_NOW;
        utimensat(AT_FDCWD, path, &now, &now, follow)
    }

    /// Removes the socket's file, unless the path names another one by now.
    ///
    /// # Errors
    /// What its directory does not allow: the path, and why.
    pub fn remove(&mut self) -> Result<(), (PathBuf, io::Error)> {
        let Endpoint::Server { path, file, .. } = self else {
            return Ok(());
        };
        let (Some(file), Ok(there)) = (file.take(), std::fs::symlink_metadata(&*path)) else {
            return Ok(());
        };
        if identity(&there) == file {
            std::fs::remove_file(&*path).map_err(|error| (path.clone(), error))
        } else {
            Ok(())
        }
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Endpoint::Server { listener, .. } => Some(listener.as_fd()),
            Endpoint::Client { .. } => None,
        }
    }

    pub fn is_client(&self) -> bool {
        matches!(self, Endpoint::Client { .. })
    }

    pub fn accept(&self) -> Result<Option<UnixStream>, ServingError> {
        let Endpoint::Server { listener, path, .. } = self else {
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
    pub fn try_connect(&self) -> Result<Option<UnixStream>, ServingError> {
        let Endpoint::Client { path } = self else {
            return Ok(None);
        };
        match UnixStream::connect(path) {
            Ok(stream) => Ok(Some(stream)),
            Err(source) => match source.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::WouldBlock => {
                    Ok(None)
                }
                _ => Err(ServingError::Connect {
                    path: path.clone(),
                    source,
                }),
            },
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // After an error, which is what is said: the next start takes the socket over.
        let _ = self.remove();
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn failed(path: &Path, source: io::Error) -> ServingError {
    ServingError::Listen {
        path: path.into(),
        source,
    }
}

/// Removes the stale socket of a killed back end.
fn unused(path: &Path) -> Result<(), ServingError> {
    let there = std::fs::symlink_metadata(path).map_err(|e| failed(path, e))?;
    if !there.file_type().is_socket() {
        return Err(ServingError::NotASocket { path: path.into() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| failed(path, e))
        }
        _ => Err(ServingError::InUse { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_its_user_may_connect() {
        let path = std::env::temp_dir().join(format!("hopscope-mode-{}", std::process::id()));
        let endpoint = Endpoint::open(&path, false).expect("a socket");
        let mode = std::fs::metadata(&path)
            .expect("there")
            .permissions()
            .mode();
        std::fs::remove_file(&path).expect("there");
        assert_eq!(mode & 0o777, 0o600);
        drop(endpoint);
    }
}
