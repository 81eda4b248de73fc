//! Whether a port's device is up, and its MTU, in the network namespace where it was opened.
use crate::PortError;
use crate::sys::{Interface, device_is_up, device_mtu, get_option, open_socket};
use nix::libc;
use nix::sys::socket::{MsgFlags, NetlinkAddr, bind, recv};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

pub(crate) struct Link {
    /// For the requests: not every port's socket takes them.
    socket: OwnedFd,
    /// It is readable when a device of the namespace has changed (rtnetlink(7), RTM_NEWLINK).
    notifies: bool,
    index: u32,
}

impl Link {
    /// Where the kernel refuses notifications the device has to be asked.
    pub(crate) fn new(interface: Interface, index: u32) -> Link {
        let notifying = notifying();
        Link {
            notifies: notifying.is_ok(),
            socket: notifying.unwrap_or_else(|_| interface.into_socket()),
            index,
        }
    }

    pub(crate) fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.notifies.then(|| self.socket.as_fd())
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
        self.take_notifications();
        is_up_by(name, self.socket.as_fd(), self.index)
    }

    /// Before the device is asked: what changes from then on notifies again. What they say is left: of those that the socket had no room for
    /// it is not known.
    fn take_notifications(&self) {
        let fd = self.socket.as_raw_fd();
        let mut ignored = [0; 64];
        while self.notifies
            && matches!(
                recv(fd, &mut ignored, MsgFlags::MSG_DONTWAIT),
                Ok(_) | Err(nix::errno::Errno::ENOBUFS)
            )
        {}
    }

    pub(crate) fn mtu(&self, name: &str) -> Result<usize, PortError> {
        mtu_of(name, self.socket.as_fd(), self.index)
    }
}

fn notifying() -> io::Result<OwnedFd> {
    let socket = open_socket(libc::AF_NETLINK, libc::SOCK_RAW)?;
    let groups = libc::RTMGRP_LINK as u32;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

/// Of the device of that number, asked by any socket of its namespace.
pub(crate) fn is_up_by(name: &str, socket: BorrowedFd<'_>, index: u32) -> Result<bool, PortError> {
    device_is_up(socket, index).map_err(unanswered(name, "reading its state"))
}

/// Of the device of that number, asked by any socket of its namespace.
pub(crate) fn mtu_of(name: &str, socket: BorrowedFd<'_>, index: u32) -> Result<usize, PortError> {
    device_mtu(socket, index).map_err(unanswered(name, "reading its MTU"))
}

fn unanswered(name: &str, what: &'static str) -> impl Fn(io::Error) -> PortError {
    move |error| match error.raw_os_error() {
        Some(libc::ENODEV) => PortError::Gone { name: name.into() },
        _ => PortError::device(name, what, error),
    }
}
