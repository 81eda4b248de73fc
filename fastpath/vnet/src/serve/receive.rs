//! From the port to the guest: a packet takes as many chains as it needs, and the driver sees all of them at
//! once (virtio 1.3, 5.1.6.4).
use super::arriving::Seen;
use super::counts::Drop;
use super::offload;
use super::queue::{Live, Pending, Queue, QueueError};
use crate::common::clock::Clock;
use crate::common::header;
use crate::ring::{Memory, RingError};
use hopscope_netio::{Offload, PacketIo, PortError};

const TURN: usize = 256;
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

impl Queue {
    pub(super) fn receive(
        &mut self,
        port: &mut dyn PacketIo,
        memory: &Memory,
        clock: Clock,
    ) -> Result<(), QueueError> {
        if self.live.is_none() || !self.ready || self.blocked {
            return Ok(());
        }
        self.wake(memory)?;
        for _ in 0..TURN {
            let Some(live) = &mut self.live else { break };
            // Without any chain packets stay in the port, which has more room than this end.
            if live.held.is_empty() && !live.back.queue.has_avail(memory)? {
                if self.wait_for_chains(memory, clock)? {
                    break;
                }
                continue;
            }
            let (len, placed) = match self.pending.take() {
                Some(packet) => {
                    let placed = place(live, memory, &packet.bytes, packet.offload);
                    let len = packet.bytes.len();
                    if matches!(placed, Ok(Placed::Wait)) {
                        self.pending = Some(packet);
                    }
                    (len, placed)
                }
                None => {
                    let (arriving, pending) = (&mut self.arriving, &mut self.pending);
                    // What a driver does not finish is finished in memory of this end.
                    let direct = live.taken.guest_checksums();
                    let seen = match port.scattered().filter(|_| direct) {
                        Some(port) => arriving.receive(live, port, memory, pending)?,
                        None => copied(live, port, memory, pending)?,
                    };
                    let Some(seen) = seen else {
                        self.ready = false;
                        break;
                    };
                    seen
                }
            };
            let placed = placed.inspect_err(|_| self.counts.drops.count(Drop::Ended))?;
            match placed {
                Placed::Dropped(why) => self.counts.drops.count(why),
                Placed::Wait => {
                    if self.wait_for_chains(memory, clock)? {
                        break;
                    }
                }
                Placed::Done { chains } => {
                    self.counts.packets += 1;
                    self.counts.bytes += len as u64;
                    self.counts.chains += chains;
                    // Whether another is at hand only the next look at the port says.
                    if live.back.show(memory, 1, clock.now())? {
                        self.call(clock)?;
                    }
                }
            }
        }
        self.pause(memory, clock)
    }

    /// Asks for a kick; false: some came meanwhile.
    fn wait_for_chains(&mut self, memory: &Memory, clock: Clock) -> Result<bool, QueueError> {
        if self.sleep(memory, clock)? {
            self.wake(memory)?;
            return Ok(false);
        }
        self.counts.waits += 1;
        self.blocked = true;
        Ok(true)
    }
}

/// The next frame of the port, from the port's memory.
fn copied(
    live: &mut Live,
    port: &mut dyn PacketIo,
    memory: &Memory,
    pending: &mut Option<Pending>,
) -> Result<Option<Seen>, PortError> {
    let mut seen = None;
    port.receive(1, &mut |frame| {
        let placed = match frame.bytes.len() < frame.wire_len {
            true => Ok(Placed::Dropped(Drop::Cut)),
            false => place(live, memory, frame.bytes, frame.offload),
        };
        if matches!(placed, Ok(Placed::Wait)) {
            *pending = Some(Pending {
                bytes: frame.bytes.to_vec(),
                offload: frame.offload,
            });
        }
        seen = Some((frame.bytes.len(), placed));
    })?;
    Ok(seen)
}

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
        return Ok(match all {
            true => Placed::Dropped(Drop::TooLong),
            false => Placed::Wait,
        });
    };
    let mut finished = Vec::new();
    let bytes = match live.taken.guest_checksums() || offload == Offload::default() {
        true => bytes,
        false => {
            finished.extend_from_slice(bytes);
            if let Err(why) = offload::finish_checksum(&mut finished, &mut offload) {
                return Ok(Placed::Dropped(why));
            }
            &finished
        }
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
