//! What the kernel says of a network device, in the namespace of the calling thread.
use super::socket::{check, open_socket};
use nix::libc;
use rustix::ioctl::{Opcode, Updater, ioctl};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A device by name, with the socket that asks for it.
pub(crate) struct Interface {
    socket: OwnedFd,
    request: libc::ifreq,
}

impl Interface {
    /// # Errors
    /// ENODEV where the name cannot be a device's.
    pub(crate) fn named(name: &str) -> io::Result<Interface> {
        // SAFETY: zero is a value of this structure of integers and a union of such.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The kernel wants a zero at the end.
        if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let socket = open_socket(libc::AF_INET, libc::SOCK_DGRAM)?;
        Ok(Interface { socket, request })
    }

    pub(crate) fn index(&self) -> io::Result<u32> {
        // SAFETY: SIOCGIFINDEX fills this field.
        Ok(unsafe { self.ask(libc::SIOCGIFINDEX)?.ifr_ifru.ifru_ifindex } as u32)
    }

    /// Payload of a frame in bytes, without the Ethernet header.
    pub(crate) fn mtu(&self) -> io::Result<usize> {
        // SAFETY: SIOCGIFMTU fills this field.
        Ok(unsafe { self.ask(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu } as usize)
    }

    /// Its Ethernet address.
    pub(crate) fn mac(&self) -> io::Result<[u8; 6]> {
        // SAFETY: SIOCGIFHWADDR fills this field.
        let address = unsafe { self.ask(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr };
        let bytes: [libc::c_char; 6] = std::array::from_fn(|at| address.sa_data[at]);
        Ok(bytes.map(|byte| byte as u8))
    }

    /// `IFF_…`
    pub(crate) fn flags(&self) -> io::Result<libc::c_int> {
        // SAFETY: SIOCGIFFLAGS fills this field.
        Ok(unsafe { self.ask(libc::SIOCGIFFLAGS)?.ifr_ifru.ifru_flags }.into())
    }

    /// For requests about the same namespace.
    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    pub(crate) fn set_up(&self) -> io::Result<()> {
        let mut request = self.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: SIOCGIFFLAGS filled this field.
        unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
        // SAFETY: reads one `ifreq`, which lives over the call.
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) })
            .map(drop)
    }

    fn ask(&self, what: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = self.request;
        // SAFETY: all requests of this file read and write one `ifreq`, which lives over the call.
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &mut request) })?;
        Ok(request)
    }
}

/// Whether the device of that number is up, whatever its name is by now, in the namespace of `socket`.
///
/// # Errors
/// ENODEV: it was deleted, or moved to another namespace.
pub(crate) fn device_is_up(socket: BorrowedFd<'_>, index: u32) -> io::Result<bool> {
    let request = ask_of::<{ libc::SIOCGIFFLAGS as Opcode }>(socket, index)?;
    // SAFETY: SIOCGIFFLAGS filled this field.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
}

/// The same device's MTU.
///
/// # Errors
/// As [`device_is_up`].
pub(crate) fn device_mtu(socket: BorrowedFd<'_>, index: u32) -> io::Result<usize> {
    let request = ask_of::<{ libc::SIOCGIFMTU as Opcode }>(socket, index)?;
    // SAFETY: SIOCGIFMTU filled this field.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

/// Not by libc's ioctl, which programs on the stack have another one of.
fn ask_of<const WHAT: Opcode>(socket: BorrowedFd<'_>, index: u32) -> io::Result<libc::ifreq> {
    // SAFETY: zero is a value of this structure of integers and a union of such.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = index as i32;
    // SAFETY: both requests read and write one `ifreq`, which lives over the call.
    unsafe {
        ioctl(
            socket,
            Updater::<{ libc::SIOCGIFNAME as Opcode }, _>::new(&mut request),
        )?;
        ioctl(socket, Updater::<WHAT, _>::new(&mut request))?;
    }
    Ok(request)
}
