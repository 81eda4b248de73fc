//! The descriptor of a TAP device (Linux, networking/tuntap.rst).
use super::socket::check;
use crate::Accepts;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// The header before each frame: `struct virtio_net_hdr_v1`.
pub(crate) const TAP_HDR_LEN: usize = 12;

/// One queue of the device `name`, which is made with the first and goes with the last.
pub(crate) fn open_tap(name: &str, multi_queue: bool, gso: bool) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: zero is a value of this structure of integers and a union of such.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    if multi_queue {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    let fd = file.as_raw_fd();
    // SAFETY: reads and writes one `ifreq`, which lives over the call.
    check(unsafe { libc::ioctl(fd, libc::TUNSETIFF, &mut request) })?;
    let header_len = TAP_HDR_LEN as libc::c_int;
    // SAFETY: reads one integer, which lives over the call.
    check(unsafe { libc::ioctl(fd, libc::TUNSETVNETHDRSZ, &header_len) })?;
    let all = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let offloads = if gso { all } else { 0 };
    set_offloads(&file, offloads)?;
    Ok(file)
}

/// What the device is called now.
///
/// # Errors
/// It is gone.
pub(crate) fn tap_name(queue: &File) -> io::Result<String> {
    // SAFETY: zero is a value of this structure of integers and a union of such.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `ifreq`, which lives over the call.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNGETIFF, &mut request) })?;
    let bytes = request.ifr_name.iter().map(|c| *c as u8);
    let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// `TUN_F_…`: what the kernel may leave undone of the frames that it sends to the device.
fn set_offloads(file: &File, offloads: libc::c_uint) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: the argument is a value.
    check(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) })?;
    Ok(())
}

pub(crate) fn accept(file: &File, what: Accepts) -> io::Result<()> {
    let flag = |on, flag| if on { flag } else { 0 };
    // The kernel refuses segments without checksums.
    let offloads = if what.checksums {
        libc::TUN_F_CSUM
            | flag(what.segments_v4, libc::TUN_F_TSO4)
            | flag(what.segments_v6, libc::TUN_F_TSO6)
    } else {
        0
    };
    set_offloads(file, offloads)
}
