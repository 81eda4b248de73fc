//! From the port straight into the driver's chains. How long a frame is the kernel says only with the frame, so room is
//! made for one as long as those before; what is longer ends in memory of this end, and is copied once more.
use super::counts::Drop;
use super::fill::{Placed, Received, SEGMENTS_MAX, place};
use super::live::{Live, Pending, QueueError};
use super::offload;
use crate::common::header;
use crate::ring::{Memory, RingError};
use hopscope_netio::{Arrived, Offload, PARTS_MAX, Scattered};
use vm_memory::{Bytes, VolatileMemoryError, VolatileSlice};

/// The longest frame without segmentation offload, on most networks.
const FIRST: usize = 1514;
const PAGE: usize = 4096;

pub(super) struct Arriving {
    /// For what has no room in the chains; made with the first frame.
    rest: Box<[u8]>,
    expected: usize,
}

impl Default for Arriving {
    fn default() -> Arriving {
        Arriving {
            rest: Box::default(),
            expected: FIRST,
        }
    }
}

impl Arriving {
    /// # Errors
    /// The port fails; chains that lie outside the memory, before anything was received.
    pub(super) fn receive(
        &mut self,
        live: &mut Live,
        port: &mut dyn Scattered,
        memory: &Memory,
        pending: &mut Option<Pending>,
    ) -> Result<Option<Received>, QueueError> {
        if self.rest.is_empty() {
            self.rest = vec![0; port.max_frame_len()].into();
        }
        let mut parts = Vec::with_capacity(4);
        make_room(live, memory, self.expected, &mut parts)?;
        let (len, offload) = match port.receive_into(&parts, &mut self.rest)? {
            Arrived::Nothing => return Ok(None),
            Arrived::Frame { len, offload } => (len, offload),
            Arrived::Unwritable => {
                let touched = parts.iter().try_for_each(touch);
                touched.map_err(|e| RingError::Memory(e.into()))?;
                return Ok(Some((0, Ok(Placed::Dropped(Drop::Ended)))));
            }
        };
        self.expected = len.max(self.expected - self.expected / 8);
        let room: usize = parts.iter().map(VolatileSlice::len).sum();
        if len <= room {
            return Ok(Some((len, give(live, memory, len, offload))));
        }
        // What the driver changes there meanwhile it changes in its own packet.
        let mut bytes = vec![0; len];
        let mut done = 0;
        for part in &parts {
            done += part.copy_to(&mut bytes[done..]);
        }
        bytes[done..].copy_from_slice(&self.rest[..len - done]);
        let placed = place(live, memory, &bytes, offload);
        if matches!(placed, Ok(Placed::Wait)) {
            *pending = Some(Pending { bytes, offload });
        }
        Ok(Some((len, placed)))
    }
}

/// Takes chains for the header and `expected` bytes, as far as there are any.
fn make_room<'m>(
    live: &mut Live,
    memory: &'m Memory,
    expected: usize,
    parts: &mut Vec<VolatileSlice<'m>>,
) -> Result<(), RingError> {
    let most = if live.taken.merges() { usize::MAX } else { 1 };
    let (mut skip, mut room) = (live.taken.header_len(), 0);
    let (mut count, mut segments) = (0, 0);
    while room < expected && count < most && segments < SEGMENTS_MAX && parts.len() < PARTS_MAX {
        if count == live.held.len() {
            match live.back.pop(memory)? {
                Some(chain) => live.held.push_back(chain),
                None => break,
            }
        }
        let chain = &live.held[count];
        room += chain.slices(memory, true, skip, expected - room, parts)?;
        skip -= skip.min(chain.writable_len());
        segments += chain.segments.len();
        count += 1;
    }
    parts.truncate(PARTS_MAX);
    Ok(())
}

/// The frame is in the chains, behind the place of its header.
fn give(
    live: &mut Live,
    memory: &Memory,
    len: usize,
    offload: Offload,
) -> Result<Placed, RingError> {
    if let Err(why) = offload::check_receive(offload, live.taken) {
        return Ok(Placed::Dropped(why));
    }
    let header_len = live.taken.header_len();
    let need = header_len + len;
    let rooms = live.held.iter().scan(0, |room, chain| {
        let before = *room;
        *room += chain.writable_len();
        Some(before)
    });
    // No more than there are descriptors.
    let chains = rooms.take_while(|before| *before < need).count() as u16;
    let header = header::encode(offload, chains);
    let mut done = 0;
    for chain in live.held.drain(..usize::from(chains)) {
        let room = chain.writable_len().min(need - done);
        if let Some(rest) = header[..header_len].get(done..) {
            chain.write(memory, 0, &rest[..rest.len().min(room)])?;
        }
        live.back.queue.add_used(memory, chain.id, room as u32)?;
        done += room;
    }
    live.served = live.served.saturating_add(u32::from(chains));
    let chains = chains.into();
    Ok(Placed::Done { chains })
}

/// The kernel found memory missing: this end finds it, too, and its owner is told (`sigbus`).
fn touch(part: &VolatileSlice<'_>) -> Result<(), VolatileMemoryError> {
    let last = part.len().checked_sub(1);
    for at in (0..part.len()).step_by(PAGE).chain(last) {
        part.write_obj(0u8, at)?;
    }
    Ok(())
}
