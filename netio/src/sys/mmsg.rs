//! Frames for one `sendmmsg`: the kernel copies them, so a slot is free when the call returns.
use super::socket::check;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(crate) struct SendBatch {
    memory: Box<[u8]>,
    slot_len: usize,
    lens: Box<[usize]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `vectors` and `headers` are written anew by each `send`.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub(crate) fn new(slots: usize, slot_len: usize) -> SendBatch {
        // SAFETY: zero is a value of both: lengths, null pointers.
        let (vector, header) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        SendBatch {
            memory: vec![0; slots * slot_len].into(),
            slot_len,
            lens: vec![0; slots].into(),
            vectors: vec![vector; slots].into(),
            headers: vec![header; slots].into(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.lens.len()
    }

    pub(crate) fn slot_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.memory[index * self.slot_len..][..self.slot_len]
    }

    /// # Panics
    /// When it does not fit the slot.
    pub(crate) fn set_len(&mut self, index: usize, len: usize) {
        assert!(len <= self.slot_len, "within the slot");
        self.lens[index] = len;
    }

    /// Sends slots `range` in order; how many the kernel took, at least one.
    pub(crate) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        range: std::ops::Range<usize>,
    ) -> io::Result<usize> {
        for index in range.clone() {
            let slot = &mut self.memory[index * self.slot_len..][..self.lens[index]];
            self.vectors[index] = libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: slot.len(),
            };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
        }
        let headers = &mut self.headers[range];
        // SAFETY: `headers` and all that they point to live in `self` over the call; the kernel
        // only reads the frames.
        let sent = check(unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_DONTWAIT,
            )
        })?;
        Ok(sent as usize)
    }
}
