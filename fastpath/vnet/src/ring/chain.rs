//! One entry of a queue: buffers to be read by the device, then buffers to be written.
use super::{Memory, RingError};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, VolatileSlice};

/// A buffer in the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub address: GuestAddress,
    pub len: u32,
    /// The device writes it.
    pub writable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain {
    /// The entry's id, for `add_used`.
    pub id: u16,
    /// Descriptors of the queue itself that it takes: one where the rest is in a table.
    pub descriptors: u16,
    pub segments: Vec<Segment>,
}

impl Chain {
    pub fn readable_len(&self) -> usize {
        self.len(false)
    }

    pub fn writable_len(&self) -> usize {
        self.len(true)
    }

    fn len(&self, writable: bool) -> usize {
        let same = self.segments.iter().filter(|s| s.writable == writable);
        same.map(|s| s.len as usize).sum()
    }

    /// Copies what the driver gave to be read from byte `offset` on; the number of bytes copied, fewer
    /// than `to` holds when there are no more.
    ///
    /// # Errors
    /// A buffer outside the guest's memory.
    pub fn read(&self, memory: &Memory, offset: usize, to: &mut [u8]) -> Result<usize, RingError> {
        let mut done = 0;
        for (address, len) in self.parts(false, offset) {
            let len = len.min(to.len() - done);
            memory.read_slice(&mut to[done..done + len], address)?;
            done += len;
        }
        Ok(done)
    }

    /// Copies into what the driver gave to be written, from its byte `offset` on.
    ///
    /// # Errors
    /// As for [`Chain::read`].
    pub fn write(&self, memory: &Memory, offset: usize, from: &[u8]) -> Result<usize, RingError> {
        let mut done = 0;
        for (address, len) in self.parts(true, offset) {
            let len = len.min(from.len() - done);
            memory.write_slice(&from[done..done + len], address)?;
            done += len;
        }
        Ok(done)
    }

    /// Where what the driver gave lies in this process, behind the first `skip` bytes of its kind: to `into`, until there
    /// are `most` bytes or more; returns how many these are.
    ///
    /// # Errors
    /// As for [`Chain::read`].
    pub fn slices<'m>(
        &self,
        memory: &'m Memory,
        writable: bool,
        skip: usize,
        most: usize,
        into: &mut Vec<VolatileSlice<'m>>,
    ) -> Result<usize, RingError> {
        let mut len = 0;
        for (address, part) in self.parts(writable, skip) {
            if len >= most {
                break;
            }
            for slice in memory.get_slices(address, part) {
                into.push(slice?);
            }
            len += part;
        }
        Ok(len)
    }

    /// Pieces of one kind behind the first `skip` bytes.
    fn parts(&self, writable: bool, skip: usize) -> impl Iterator<Item = (GuestAddress, usize)> {
        let same = self.segments.iter().filter(move |s| s.writable == writable);
        same.scan(skip, |skip, segment| {
            let len = segment.len as usize;
            let skipped = len.min(*skip);
            *skip -= skipped;
            // An address that would wrap fails where it is used: it is in no region.
            let address = segment.address.0.saturating_add(skipped as u64);
            Some((GuestAddress(address), len - skipped))
        })
    }
}
