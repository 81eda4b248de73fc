//! Whether a port's device is up, in the network namespace where it was opened.
use crate::PortError;
use crate::sys::{Interface, device_is_up, get_option};
use nix::libc;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) struct Link {
    /// For the requests: not every port's socket takes them.
    socket: OwnedFd,
    index: u32,
}

impl Link {
    pub(crate) fn new(interface: Interface, index: u32) -> Link {
        Link {
            socket: interface.into_socket(),
            index,
        }
    }

    /// The same for a port that is a socket: the kernel leaves an error in it when its device goes down, and it counts as
    /// ready until that is taken.
    pub(crate) fn of_socket_is_up(
        &self,
        name: &str,
        socket: BorrowedFd<'_>,
    ) -> Result<bool, PortError> {
        let _: libc::c_int = get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR)
            .map_err(|e| PortError::device(name, "reading its state", e))?;
        self.is_up(name)
    }

    pub(crate) fn is_up(&self, name: &str) -> Result<bool, PortError> {
        let up = device_is_up(self.socket.as_fd(), self.index);
        up.map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => PortError::Gone { name: name.into() },
            _ => PortError::device(name, "reading its state", error),
        })
    }
}
