//! A packet's bytes into the driver's chains.
use super::counts::Drop;
use super::live::Live;
use super::offload;
use crate::common::header;
use crate::ring::{Memory, RingError};
use hopscope_netio::Offload;

/// Buffers of the chains that are held: tables may name any number of them at a descriptor each. A packet of 64 KiB
/// fits into so many of 4 bytes.
pub(super) const SEGMENTS_MAX: usize = 16_384;

pub(super) enum Placed {
    Done {
        chains: u64,
    },
    Dropped(Drop),
    /// There are too few chains: the packet waits.
    Wait,
}

/// A frame's length, and whether it was placed.
pub(super) type Received = (usize, Result<Placed, RingError>);

/// Copies a frame behind its header into as many chains as it needs; the driver is not told yet.
pub(super) fn place(
    live: &mut Live,
    memory: &Memory,
    bytes: &[u8],
    mut offload: Offload,
) -> Result<Placed, RingError> {
    if let Err(why) = offload::check_receive(offload, live.taken) {
        return Ok(Placed::Dropped(why));
    }
    let header_len = live.taken.header_len();
    let need = header_len + bytes.len();
    let Some(chains) = enough(live, memory, need)? else {
        // Chains of the whole queue, and still too few: there will never be enough.
        let held: u32 = live
            .held
            .iter()
            .map(|chain| u32::from(chain.descriptors))
            .sum();
        let segments: usize = live.held.iter().map(|chain| chain.segments.len()).sum();
        let all = held >= u32::from(live.layout.size)
            || segments >= SEGMENTS_MAX
            || !live.taken.merges() && held > 0;
        return Ok(if all {
            Placed::Dropped(Drop::TooLong)
        } else {
            Placed::Wait
        });
    };
    let mut finished = Vec::new();
    let bytes = if live.taken.guest_checksums() || offload == Offload::default() {
        bytes
    } else {
        finished.extend_from_slice(bytes);
        if let Err(why) = offload::finish_checksum(&mut finished, &mut offload) {
            return Ok(Placed::Dropped(why));
        }
        &finished
    };
    let header = header::encode(offload, chains);
    let header = &header[..header_len];
    let mut done = 0;
    for chain in live.held.drain(..usize::from(chains)) {
        let room = chain.writable_len().min(need - done);
        let of_header = header.get(done..).unwrap_or_default();
        let of_header = &of_header[..of_header.len().min(room)];
        let from = (done + of_header.len()).saturating_sub(header_len);
        chain.write(memory, 0, of_header)?;
        let part = &bytes[from..from + room - of_header.len()];
        chain.write(memory, of_header.len(), part)?;
        live.back.queue.add_used(memory, chain.id, room as u32)?;
        done += room;
    }
    live.served = live.served.saturating_add(u32::from(chains));
    let chains = chains.into();
    Ok(Placed::Done { chains })
}

/// How many of the chains held, oldest first, are enough; `None`: there are no more, and they are not.
fn enough(live: &mut Live, memory: &Memory, need: usize) -> Result<Option<u16>, RingError> {
    let (mut count, mut room, mut segments) = (0, 0, 0);
    let most = if live.taken.merges() { usize::MAX } else { 1 };
    while room < need {
        if count == most {
            return Ok(None);
        }
        if count == live.held.len() {
            // A driver that offers nothing of use must not fill this end's memory.
            if segments >= SEGMENTS_MAX {
                return Ok(None);
            }
            match live.back.pop(memory)? {
                Some(chain) => live.held.push_back(chain),
                None => return Ok(None),
            }
        }
        room += live.held[count].writable_len();
        segments += live.held[count].segments.len();
        count += 1;
    }
    // No more than there are descriptors.
    Ok(Some(count as u16))
}
