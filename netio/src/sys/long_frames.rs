//! Frames that are longer than a slot of a packet socket's ring: whole in the socket's queue (`PACKET_COPY_THRESH`, packet(7);
//! `tpacket_rcv` in net/packet/af_packet.c), in the order of their slots, which have their first bytes.
use super::socket::set_option;
use super::vnet::PACKET_HDR_LEN;
use nix::libc;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::BorrowedFd;

/// From linux/if_packet.h; libc lacks it.
const PACKET_COPY_THRESH: libc::c_int = 7;
/// What waits at most, with the kernel's own structures.
const QUEUE_BYTES: libc::c_int = 16 << 20;
/// How much of a frame tells it from others: addresses, and where it is in its stream.
const COMPARED: usize = 64;

pub(super) struct LongFrames {
    bytes: Box<[u8]>,
    /// Bytes of a frame that was taken out of the queue, and whose slot is still to come; how many slots were not its.
    held: Option<(usize, usize)>,
}

impl LongFrames {
    /// The socket keeps them from now on.
    pub(super) fn keep(fd: BorrowedFd<'_>) -> io::Result<()> {
        set_option(fd, libc::SOL_PACKET, PACKET_COPY_THRESH, 1)?;
        // Beyond net.core.rmem_max it takes CAP_NET_ADMIN.
        let beyond = set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, QUEUE_BYTES);
        beyond.or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, QUEUE_BYTES))
    }

    /// Up to `max_len` bytes each, behind `room` free ones and the virtio header.
    pub(super) fn new(room: usize, max_len: usize) -> LongFrames {
        LongFrames {
            bytes: vec![0; room + PACKET_HDR_LEN + max_len].into(),
            held: None,
        }
    }

    /// The frame that begins with `first`, `len` bytes long: all of the buffer, where it lies behind `room`. `None`: the
    /// queue had no room for it. One that is not of any of `slots` slots is dropped.
    pub(super) fn take(
        &mut self,
        fd: BorrowedFd<'_>,
        room: usize,
        (first, len): (&[u8], usize),
        slots: usize,
    ) -> Option<&mut [u8]> {
        let (held, not_its) = match self.held.take() {
            Some(held) => held,
            None => (self.receive(fd, room)?, 0),
        };
        let start = room + PACKET_HDR_LEN;
        let shown = &first[..first.len().min(COMPARED)];
        if held == len && self.bytes[start..].starts_with(shown) {
            return Some(&mut self.bytes[..start + len]);
        }
        self.held = (not_its < slots).then_some((held, not_its + 1));
        None
    }

    /// Bytes of the next frame in the queue.
    fn receive(&mut self, fd: BorrowedFd<'_>, room: usize) -> Option<usize> {
        loop {
            // Not libc's: in a program on the stack that is a hook, to which the port's socket is none.
            match recv(fd, &mut self.bytes[room..], RecvFlags::DONTWAIT) {
                Ok((_, got)) => return got.checked_sub(PACKET_HDR_LEN),
                // The device went down: told once, before the frame.
                Err(Errno::NETDOWN | Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}
