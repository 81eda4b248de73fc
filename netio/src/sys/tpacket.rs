//! The receive ring of a packet socket, TPACKET_V2 (Linux, packet_mmap.rst).
//!
//! Version 3 hands over blocks, an unfilled one after a millisecond at the earliest: too late for
//! a latency that is measured in microseconds. Version 2 hands over each frame at once.
use super::map::Mapping;
use super::socket::set_option;
use super::vnet::{PACKET_HDR_LEN, received};
use crate::Offload;
use nix::libc;
use std::io;
use std::mem::size_of;
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
    /// `max_len`: longest frame that is received whole. The socket must not be bound yet: frames
    /// of other devices would come in.
    pub(crate) fn new(fd: BorrowedFd<'_>, max_len: usize, frames: usize) -> io::Result<RxRing> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        let (frame_len, frames) = layout(max_len, frames);
        let block_len = frame_len.max(PAGE_LEN);
        let request = libc::tpacket_req {
            tp_block_size: block_len as u32,
            tp_block_nr: (frames * frame_len / block_len) as u32,
            tp_frame_size: frame_len as u32,
            tp_frame_nr: frames as u32,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        Ok(RxRing {
            map: Mapping::shared(fd, 0, frames * frame_len)?,
            frame_len,
            frames,
            next: 0,
            lost_place: false,
        })
    }

    /// The ring that the socket has already, made with the same numbers.
    pub(crate) fn adopt(fd: BorrowedFd<'_>, max_len: usize, frames: usize) -> io::Result<RxRing> {
        let (frame_len, frames) = layout(max_len, frames);
        Ok(RxRing {
            map: Mapping::shared(fd, 0, frames * frame_len)?,
            frame_len,
            frames,
            next: 0,
            lost_place: true,
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

    /// Shows the oldest frame and gives its slot back; false when there is none.
    pub(crate) fn pop(&mut self, visit: impl FnOnce(RxFrame<'_>)) -> bool {
        if self.lost_place {
            self.find_place();
        }
        let at = self.map.at(self.next * self.frame_len, self.frame_len);
        // SAFETY: the status word is the first of the slot, aligned, and shared with the kernel
        // only through atomic operations.
        let status = unsafe { AtomicU32::from_ptr(at.cast()) };
        let seen = status.load(Ordering::Acquire);
        if seen & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: with TP_STATUS_USER set, the kernel does not touch the slot until the status is
        // written below; `at` is frame_len bytes long; the header is integers only.
        let (header, slot) = unsafe {
            let header: libc::tpacket2_hdr = at.cast::<libc::tpacket2_hdr>().read();
            (header, std::slice::from_raw_parts_mut(at, self.frame_len))
        };
        visit(frame(seen, &header, slot));
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        true
    }
}

fn frame<'a>(status: u32, header: &libc::tpacket2_hdr, slot: &'a mut [u8]) -> RxFrame<'a> {
    let (mut start, end) = (
        header.tp_mac as usize,
        header.tp_mac as usize + header.tp_snaplen as usize,
    );
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
