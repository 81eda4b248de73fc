//! How a program comes to an instance. Calls of the kernel without the C library's functions, as in [`super::passing`].
use super::passing::{self, RecvFlags, SendFlags};
use super::wire::{self, Hello, MESSAGE_MAX, Welcome};
use crate::handed::Reach;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// One that does not answer is stopped, or no `stack serve`.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Joined {
    pub door: OwnedFd,
    pub table: OwnedFd,
    pub device: String,
    pub reach: Reach,
    /// Who the instance is (SO_PEERCRED).
    pub user: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("{0}")]
    Nobody(Errno),
    #[error("no answer: {0}")]
    NoAnswer(Errno),
    #[error("{0}")]
    NoWelcome(String),
    #[error("{0}")]
    Refused(String),
    #[error("no table came")]
    NoTable,
}

/// # Errors
/// Nobody is there, or no instance that takes the program.
pub fn join(path: &Path, program: &str) -> Result<Joined, JoinError> {
    let flags = SocketFlags::CLOEXEC;
    let door = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let door = door.map_err(JoinError::Nobody)?;
    let address = SocketAddrUnix::new(path).map_err(JoinError::Nobody)?;
    connect(&door, &address).map_err(JoinError::Nobody)?;
    let user = socket_peercred(&door)
        .map_err(JoinError::Nobody)?
        .uid
        .as_raw();
    let patience = |span| set_socket_timeout(&door, Timeout::Recv, span);
    patience(Some(PATIENCE)).map_err(JoinError::NoAnswer)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").into(),
        name: program.chars().take(64).collect(),
    };
    // One that refuses whoever comes may have answered, and gone, before.
    let _ = passing::send(&door, &wire::to_bytes(&hello), &[], SendFlags::empty());
    let mut bytes = vec![0; MESSAGE_MAX];
    let answer = passing::receive(&door, &mut bytes, RecvFlags::empty());
    let mut passed = answer.map_err(JoinError::NoAnswer)?;
    let welcome = wire::from_bytes(&bytes[..passed.len]).map_err(JoinError::NoWelcome)?;
    let (reach, device) = match welcome {
        Welcome::Here { reach, device } => (reach, device),
        Welcome::Refused(why) => return Err(JoinError::Refused(why)),
    };
    let table = passed.fds.pop().ok_or(JoinError::NoTable)?;
    patience(None).map_err(JoinError::NoAnswer)?;
    Ok(Joined {
        door,
        table,
        device,
        reach,
        user,
    })
}
