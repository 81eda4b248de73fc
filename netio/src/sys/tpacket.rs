//! The receive ring of a packet socket, TPACKET_V2 (Linux, packet_mmap.rst).
//!
//! Version 3 hands over blocks, an unfilled one after a millisecond at the earliest: too late for
//! a latency that is measured in microseconds. Version 2 hands over each frame at once, in slots of one size: those for
//! frames of 64 KiB are few, and a burst of small ones is lost ([`super::long_frames`]).
use super::long_frames::LongFrames;
use super::map::Mapping;
use super::socket::set_option;
use super::vnet::{PACKET_HDR_LEN, received};
use crate::Offload;
use nix::libc;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

const MAC_ADDRESSES_LEN: usize = 12;
const VLAN_TAG_LEN: usize = 4;
const PAGE_LEN: usize = 4096;
/// What the kernel may put before the network header: its own header, the sender's address, the
/// virtio header, the longest link header and what aligns them (`tpacket_rcv`).
const HEADROOM: usize = 128;

pub(crate) struct RxRing {
    map: Mapping,
    frame_len: usize,
    frames: usize,
    next: usize,
    /// Another process read from it before: where the oldest frame is, is seen when there is one.
    lost_place: bool,
    /// Of frames that are longer than a slot, where they are received, too.
    long: Option<LongFrames>,
}

/// What a ring is to receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    /// Longest frame that is received whole.
    pub max_len: usize,
    /// Longest one that has a slot for itself.
    pub slot_len: usize,
    pub frames: usize,
}

/// What was in the next slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Popped {
    Nothing,
    Shown,
    /// A long frame for which there was no room.
    Lost,
}

/// Bytes of a slot, and how many slots there are.
fn layout(max_len: usize, frames: usize) -> (usize, usize) {
    let needed = max_len + HEADROOM;
    // Several to a page, or whole pages for one.
    let frame_len = if needed <= PAGE_LEN {
        needed.next_power_of_two()
    } else {
        needed.next_multiple_of(PAGE_LEN)
    };
    let block_len = frame_len.max(PAGE_LEN);
    (
        frame_len,
        frames.max(1).next_multiple_of(block_len / frame_len),
    )
}

pub(crate) struct RxFrame<'a> {
    pub bytes: &'a [u8],
    pub wire_len: usize,
    pub offload: Offload,
}

impl RxRing {
    /// The socket must not be bound yet: frames of other devices would come in.
    pub(crate) fn new(fd: BorrowedFd<'_>, received: Received) -> io::Result<RxRing> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        if received.has_long() {
            LongFrames::keep(fd)?;
        }
        let (frame_len, frames) = layout(received.slot_len, received.frames);
        let block_len = frame_len.max(PAGE_LEN);
        let request = libc::tpacket_req {
            tp_block_size: block_len as u32,
            tp_block_nr: (frames * frame_len / block_len) as u32,
            tp_frame_size: frame_len as u32,
            tp_frame_nr: frames as u32,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        RxRing::mapped(fd, received, false)
    }

    /// The ring that the socket has already, made with the same numbers.
    pub(crate) fn adopt(fd: BorrowedFd<'_>, received: Received) -> io::Result<RxRing> {
        RxRing::mapped(fd, received, true)
    }

    fn mapped(fd: BorrowedFd<'_>, received: Received, lost_place: bool) -> io::Result<RxRing> {
        let (frame_len, frames) = layout(received.slot_len, received.frames);
        Ok(RxRing {
            map: Mapping::shared(fd, 0, frames * frame_len)?,
            frame_len,
            frames,
            next: 0,
            lost_place,
            long: received
                .has_long()
                .then(|| LongFrames::new(VLAN_TAG_LEN, received.max_len)),
        })
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        let at = self.map.at(index * self.frame_len, self.frame_len);
        // SAFETY: the status word is the first of the slot, aligned, and shared with the kernel
        // only through atomic operations; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// The kernel fills slots in order: the oldest frame is the one behind an empty slot. In a full ring, which
    /// nobody has read from, the first.
    fn find_place(&mut self) {
        let full = |index| self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0;
        let before = |index: usize| (index + self.frames - 1) % self.frames;
        let oldest = (0..self.frames).find(|index| full(*index) && !full(before(*index)));
        if let Some(index) = oldest.or_else(|| full(0).then_some(0)) {
            self.next = index;
            self.lost_place = false;
        }
    }

    /// Shows the oldest frame and gives its slot back. `fd`: the ring's socket.
    pub(crate) fn pop(&mut self, fd: BorrowedFd<'_>, visit: impl FnOnce(RxFrame<'_>)) -> Popped {
        if self.lost_place {
            self.find_place();
        }
        let at = self.map.at(self.next * self.frame_len, self.frame_len);
        // SAFETY: the status word is the first of the slot, aligned, and shared with the kernel
        // only through atomic operations.
        let status = unsafe { AtomicU32::from_ptr(at.cast()) };
        let seen = status.load(Ordering::Acquire);
        if seen & libc::TP_STATUS_USER == 0 {
            return Popped::Nothing;
        }
        // SAFETY: with TP_STATUS_USER set, the kernel does not touch the slot until the status is
        // written below; `at` is frame_len bytes long; the header is integers only.
        let (header, slot) = unsafe {
            let header: libc::tpacket2_hdr = at.cast::<libc::tpacket2_hdr>().read();
            (header, std::slice::from_raw_parts_mut(at, self.frame_len))
        };
        let start = header.tp_mac as usize;
        let (shown, len) = (header.tp_snaplen as usize, header.tp_len as usize);
        let mut popped = Popped::Shown;
        match &mut self.long {
            Some(long) if shown < len => {
                let wanted = (&slot[start..start + shown], len);
                // Before the slot is given back: whoever takes the ring over finds both, or neither.
                let taken = match seen & libc::TP_STATUS_COPY {
                    0 => None,
                    _ => long.take(fd, VLAN_TAG_LEN, wanted, self.frames),
                };
                match taken {
                    Some(bytes) => {
                        let start = VLAN_TAG_LEN + PACKET_HDR_LEN;
                        visit(frame(seen, &header, bytes, start..start + len));
                    }
                    None => popped = Popped::Lost,
                }
            }
            _ => visit(frame(seen, &header, slot, start..start + shown)),
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        popped
    }
}

impl Received {
    fn has_long(self) -> bool {
        self.max_len > self.slot_len
    }
}

/// What lies in `place` of `slot`, behind its virtio header.
fn frame<'a>(
    status: u32,
    header: &libc::tpacket2_hdr,
    slot: &'a mut [u8],
    place: Range<usize>,
) -> RxFrame<'a> {
    let Range { mut start, end } = place;
    let mut wire_len = header.tp_len as usize;
    let mut offload = received(&slot[start - PACKET_HDR_LEN..start]);
    if status & libc::TP_STATUS_VLAN_VALID != 0 {
        // The kernel took the tag out of the frame: it belongs back, over the virtio header.
        start -= VLAN_TAG_LEN;
        slot.copy_within(
            start + VLAN_TAG_LEN..start + VLAN_TAG_LEN + MAC_ADDRESSES_LEN,
            start,
        );
        let protocol = match status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => libc::ETH_P_8021Q as u16,
            _ => header.tp_vlan_tpid,
        };
        let tag = start + MAC_ADDRESSES_LEN;
        slot[tag..tag + 2].copy_from_slice(&protocol.to_be_bytes());
        slot[tag + 2..tag + 4].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
        wire_len += VLAN_TAG_LEN;
        // Offsets count from the start of the frame.
        for offset in [&mut offload.csum_start, &mut offload.hdr_len] {
            if *offset != 0 {
                *offset += VLAN_TAG_LEN as u16;
            }
        }
    }
    RxFrame {
        bytes: &slot[start..end],
        wire_len,
        offload,
    }
}

const _: () = assert!(size_of::<libc::tpacket2_hdr>() == 32);
