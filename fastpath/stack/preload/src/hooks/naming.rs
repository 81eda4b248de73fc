//! Numbers of descriptors that the kernel gives and takes back.
use super::{lock, processes};
use crate::stack::now;
use crate::table::{self, Entry};
use nix::libc::c_int;

/// A number that the kernel has just given. What it was was closed where no hook saw it.
pub fn fresh(fd: c_int) -> c_int {
    if fd >= 0 && !matches!(table::get(fd), Entry::Kernel | Entry::Internal) {
        unname(fd);
    }
    fd
}

/// Before the kernel's descriptor is gone, and its number somebody else's.
pub fn unname(fd: c_int) {
    if matches!(table::get(fd), Entry::Instance(_) | Entry::Datagrams(_)) {
        // Its end closes with the kernel's last descriptor of it, wherever that is.
        table::set(fd, Entry::Kernel);
        return;
    }
    let lingers = lock::with(|state| state.lingers(fd)).ok().flatten();
    if let Some(span) = lingers {
        processes::linger(fd, now() + span);
    }
    let _ = lock::with(|state| state.unname(fd));
}
