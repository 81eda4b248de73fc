//! Programs of classic BPF for packet sockets.
use super::socket::check;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A step of classic BPF (linux/filter.h, `struct sock_filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterStep {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

// From linux/if_packet.h; libc lacks it.
const PACKET_FANOUT_DATA: libc::c_int = 22;

/// The socket does not receive what this machine sends. PACKET_IGNORE_OUTGOING of a fanout group's sockets is not the group's, which keeps
/// away what they send themselves, unless the kernel segments it: its segments are of no socket.
pub(crate) fn filter_outgoing(fd: BorrowedFd<'_>) -> io::Result<()> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| FilterStep { code, jt, jf, k };
    let program = [
        step(LOAD, 0, 0, (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32),
        step(JUMP_IF_EQUAL, 0, 1, libc::PACKET_OUTGOING.into()),
        step(RETURN, 0, 0, 0),
        step(RETURN, 0, 0, u32::MAX),
    ];
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// What `program` returns, modulo their number, says which socket of the group receives a frame.
pub(crate) fn steer_fanout(fd: BorrowedFd<'_>, program: &[FilterStep]) -> io::Result<()> {
    set(fd, libc::SOL_PACKET, PACKET_FANOUT_DATA, program)
}

fn set(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    program: &[FilterStep],
) -> io::Result<()> {
    let step = |s: &FilterStep| libc::sock_filter {
        code: s.code,
        jt: s.jt,
        jf: s.jf,
        k: s.k,
    };
    let mut steps: Vec<libc::sock_filter> = program.iter().map(step).collect();
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    let (at, len) = (&raw const program, size_of_val(&program) as libc::socklen_t);
    // SAFETY: the program and its steps live over the call, in which the kernel copies them.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, at.cast(), len) }).map(drop)
}
