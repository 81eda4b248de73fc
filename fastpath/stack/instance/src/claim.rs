//! An address of a device is one stack's at a time: of two, each would answer what is for the other. Whoever has it has the abstract
//! unix(7) socket of that name, one for each network namespace, which the kernel takes back with its last descriptor.
use crate::InstanceError;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of those that are refused, so many are told who has it (SOMAXCONN).
const BACKLOG: i32 = 4096;
/// How long processes whose parent has ended may take to end.
const ENDING: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Each until its descriptor is closed, here and wherever it was handed on to.
///
/// # Errors
/// Another stack has one of them.
pub(crate) fn all(device: &str, addresses: &[IpAddr]) -> Result<Vec<OwnedFd>, InstanceError> {
    let index = if_nametoindex(device).map_err(InstanceError::system("the device's number"))?;
    let claims = addresses.iter().map(|address| {
        let claimed = claim_in_time(&format!("hopscope-stack-{index}-{address}"));
        claimed
            .map_err(InstanceError::system("taking an address"))?
            .map_err(|whose| InstanceError::OtherStack {
                address: *address,
                device: device.into(),
                whose: whose.map_or_else(String::new, called),
            })
    });
    claims.collect()
}

/// Waits for what has ended but for its last process: a server that is restarted is not refused for a child of the one before.
fn claim_in_time(name: &str) -> rustix::io::Result<Result<OwnedFd, Option<i32>>> {
    let until = Instant::now() + ENDING;
    loop {
        match claim(name)? {
            Err(whose) if !whose.is_some_and(is_there) && Instant::now() < until => {
                std::thread::sleep(LOOK_AGAIN);
            }
            claimed => return Ok(claimed),
        }
    }
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Err within: another process has it, this one where it can be told.
fn claim(name: &str) -> rustix::io::Result<Result<OwnedFd, Option<i32>>> {
    let at = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let ours = socket()?;
    match bind(&ours, &at) {
        Ok(()) => {
            listen(&ours, BACKLOG)?;
            Ok(Ok(ours))
        }
        Err(Errno::ADDRINUSE) => {
            let asks = socket()?;
            let there = connect(&asks, &at).ok();
            let there = there.and_then(|()| getsockopt(&asks, PeerCredentials).ok());
            // Of another namespace of processes it is 0.
            Ok(Err(there.map(|there| there.pid()).filter(|pid| *pid > 0)))
        }
        Err(error) => Err(error),
    }
}

/// Who has taken it; what that has started may have it, too.
fn called(pid: i32) -> String {
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!(" (process {pid}, {})", name.trim_end()),
        Err(_) => format!(" (process {pid}'s, which has ended, or of its children)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once_until_its_last_descriptor_is_closed() {
        let name = format!("hopscope-claim-{}", std::process::id());
        let first = claim(&name).unwrap().unwrap();
        let again = first.try_clone().unwrap();
        drop(first);
        let whose = claim(&name).unwrap().unwrap_err();
        assert_eq!(whose, Some(std::process::id() as i32));
        drop(again);
        assert!(claim(&name).unwrap().is_ok());
    }
}
