//! How a program comes to an instance. Calls of the kernel without the C library's functions, as in [`super::passing`].
use super::passing::{self, RecvFlags, SendFlags};
use super::wire::{self, Hello, MESSAGE_MAX, Welcome};
use crate::handed::Reach;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
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

/// SO_PEERCRED. Its process is 0 in another PID namespace, which is no number for rustix.
fn user_of(door: &OwnedFd) -> Result<u32, JoinError> {
    let peer = getsockopt(door, PeerCredentials);
    let peer = peer.map_err(|errno| JoinError::Nobody(Errno::from_raw_os_error(errno as i32)))?;
    Ok(peer.uid())
}

/// # Errors
/// Nobody is there, or no instance that takes the program.
pub fn join(path: &Path, program: &str) -> Result<Joined, JoinError> {
    let flags = SocketFlags::CLOEXEC;
    let door = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let door = door.map_err(JoinError::Nobody)?;
    let address = SocketAddrUnix::new(path).map_err(JoinError::Nobody)?;
    connect(&door, &address).map_err(JoinError::Nobody)?;
    let user = user_of(&door)?;
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
