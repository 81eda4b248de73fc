//! From the guest to the port.
use super::clock::Clock;
use super::counts::Drop;
use super::header;
use super::queue::{Live, Queue, QueueError};
use crate::ring::{Memory, RingError};
use hopscope_netio::{Offload, Outgoing, PacketIo};

/// Packets before others get a turn; a batch of calls ends there, so that no completion waits for more.
const TURN: usize = 256;

enum Step {
    /// The port has no room.
    Full,
    Empty,
    Sent {
        id: u16,
        len: usize,
        offload: Offload,
    },
    Dropped {
        id: u16,
        why: Drop,
    },
    Failed(RingError),
}

impl Queue {
    pub(super) fn transmit(
        &mut self,
        port: &mut dyn PacketIo,
        memory: &Memory,
        clock: Clock,
    ) -> Result<(), QueueError> {
        if self.live.is_none() || !self.ready || self.blocked {
            return Ok(());
        }
        self.wake(memory)?;
        let mut now = clock.now();
        for n in 1..=TURN {
            let Some(live) = &mut self.live else { break };
            let mut step = Step::Full;
            port.send(1, &mut |slot| {
                step = take(live, memory, slot).unwrap_or_else(Step::Failed);
                match step {
                    Step::Sent { len, offload, .. } => Outgoing { len, offload },
                    _ => Outgoing::default(),
                }
            })?;
            let id = match step {
                Step::Failed(error) => return Err(error.into()),
                Step::Full => {
                    let there = live.back.queue.look(memory)?;
                    self.sojourn.look(there, live.layout.size, now);
                    self.counts.waits += 1;
                    self.blocked = true;
                    return self.pause(memory, clock);
                }
                Step::Empty => {
                    if self.sleep(memory, clock)? {
                        self.wake(memory)?;
                        continue;
                    }
                    self.ready = false;
                    break;
                }
                Step::Sent { id, len, .. } => {
                    self.counts.packets += 1;
                    self.counts.bytes += len as u64;
                    id
                }
                Step::Dropped { id, why } => {
                    self.counts.drops.count(why);
                    id
                }
            };
            live.served = live.served.saturating_add(1);
            // Also one that cannot be given back, below: its packet went on.
            self.counts.chains += 1;
            // The look that found it came after the last reading of the clock.
            let there = live.back.queue.known().saturating_add(1);
            self.sojourn.look(there, live.layout.size, now);
            now = clock.now();
            self.sojourn.used(now);
            if live.back.done(memory, id, 0, n < TURN, now)? {
                self.call(clock)?;
            }
        }
        self.blocked = port.flush()? > 0;
        if self.ready {
            self.pause(memory, clock)?;
        }
        Ok(())
    }
}

/// The next packet, into the port's slot.
fn take(live: &mut Live, memory: &Memory, slot: &mut [u8]) -> Result<Step, RingError> {
    let Some(chain) = live.back.pop(memory)? else {
        return Ok(Step::Empty);
    };
    let id = chain.id;
    let dropped = |why| Ok(Step::Dropped { id, why });
    let header_len = live.taken.header_len();
    let Some(len) = chain
        .readable_len()
        .checked_sub(header_len)
        .filter(|len| *len > 0)
    else {
        return dropped(Drop::Empty);
    };
    let Some(slot) = slot.get_mut(..len) else {
        return dropped(Drop::TooLong);
    };
    let mut bytes = [0; header::LONGEST];
    chain.read(memory, 0, &mut bytes[..header_len])?;
    let offload = header::decode(&bytes);
    if let Err(why) = header::may_leave(offload, len, live.taken) {
        return dropped(why);
    }
    chain.read(memory, header_len, slot)?;
    Ok(Step::Sent { id, len, offload })
}
