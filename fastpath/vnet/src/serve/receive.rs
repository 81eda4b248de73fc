//! From the port to the guest: a packet takes as many chains as it needs, and the driver sees all of them at
//! once (virtio 1.3, 5.1.6.4).
use super::counts::Drop;
use super::fill::{Placed, Received, place};
use super::live::{Live, Pending, QueueError};
use super::queue::Queue;
use crate::ring::Memory;
use hopscope_netio::{PacketIo, PortError};
use hopscope_serving::clock::Clock;

const TURN: usize = 256;
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

    /// Enables kicks; false: entries became available meanwhile.
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
) -> Result<Option<Received>, PortError> {
    let mut seen = None;
    port.receive(1, &mut |frame| {
        let placed = if frame.bytes.len() < frame.wire_len {
            Ok(Placed::Dropped(Drop::Cut))
        } else {
            place(live, memory, frame.bytes, frame.offload)
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
