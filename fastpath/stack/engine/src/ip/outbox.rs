//! Frames that are complete and wait for a slot: ICMP, and packets that waited for a neighbour's address.
use crate::frame::TxFrame;
use std::collections::VecDeque;

/// All of them together: what a flood of echo requests or errors can make us hold.
const MAX_BYTES: usize = 1 << 20;
/// Buffers that stay allocated, up to this size each.
const MAX_SPARE: usize = 64;
const MAX_SPARE_BYTES: usize = 2048;

#[derive(Debug)]
pub(crate) struct Frame {
    pub bytes: Vec<u8>,
    pub meta: TxFrame,
}

impl Frame {
    pub(crate) fn of(bytes: &[u8], meta: TxFrame) -> Frame {
        Frame {
            bytes: bytes[..meta.len.min(bytes.len())].to_vec(),
            meta,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    frames: VecDeque<Frame>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Outbox {
    /// A buffer of `len` zeros, or any other bytes, to be pushed.
    pub(crate) fn buffer(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MAX_SPARE && buffer.capacity() <= MAX_SPARE_BYTES {
            self.spare.push(buffer);
        }
    }

    /// False: there is no room, and the frame is gone.
    #[must_use]
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        if self.bytes + frame.bytes.len() > MAX_BYTES {
            self.recycle(frame.bytes);
            return false;
        }
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Copies the oldest frame into `slot`. One that does not fit the slot stays away for good: `Err`.
    pub(crate) fn pop(&mut self, slot: &mut [u8]) -> Option<Result<TxFrame, ()>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.bytes.len();
        let result = match slot.get_mut(..frame.bytes.len()) {
            Some(place) => {
                place.copy_from_slice(&frame.bytes);
                Ok(frame.meta)
            }
            None => Err(()),
        };
        self.recycle(frame.bytes);
        Some(result)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes + self.spare.iter().map(Vec::capacity).sum::<usize>()) as u64
    }
}
