//! From the guest to the port.
use super::counts::Drop;
use super::live::{Live, QueueError};
use super::offload;
use super::queue::Queue;
use crate::common::header;
use crate::ring::{Chain, Memory, RingError};
use hopscope_netio::{Offload, Outgoing, PacketIo, Scattered, SendStatus};
use hopscope_serving::clock::Clock;

/// Packets before others get a turn; a batch of calls ends there, so that no completion waits for more.
const TURN: usize = 256;

enum Step {
    /// The port has no room.
    Full,
    Empty,
    Sent {
        id: u16,
        len: usize,
    },
    Dropped {
        id: u16,
        why: Drop,
    },
}

/// A packet of the driver's whose header was read, once, and checked.
struct Given {
    chain: Chain,
    len: usize,
    offload: Offload,
}

enum Next {
    Given(Given),
    /// None, or none that can continue.
    Step(Step),
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
            let id = match step(live, port, memory)? {
                Step::Full => {
                    let there = live.back.queue.poll_avail(memory)?;
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
                Step::Sent { id, len } => {
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
            let there = live.back.queue.known_avail().saturating_add(1);
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

/// The next packet goes to the port: from where it lies, if the port can do that.
fn step(live: &mut Live, port: &mut dyn PacketIo, memory: &Memory) -> Result<Step, QueueError> {
    let most = port.capabilities().max_frame_len;
    let given = match port.scattered() {
        None => None,
        Some(port) => match next(live, memory, most)? {
            Next::Step(step) => return Ok(step),
            Next::Given(given) => match hand_over(live, port, memory, &given)? {
                Some(step) => return Ok(step),
                None => Some(given),
            },
        },
    };
    copied(live, port, memory, most, given)
}

/// `None`: it has to be copied.
fn hand_over(
    live: &mut Live,
    port: &mut dyn Scattered,
    memory: &Memory,
    given: &Given,
) -> Result<Option<Step>, QueueError> {
    let Given {
        chain,
        len,
        offload,
    } = given;
    let header_len = live.taken.header_len();
    let mut parts = Vec::with_capacity(4);
    chain.slices(memory, false, header_len, *len, &mut parts)?;
    let (id, len) = (chain.id, *len);
    Ok(match port.send_from(*offload, &parts)? {
        SendStatus::Sent => Some(Step::Sent { id, len }),
        SendStatus::Full => {
            live.back.queue.put_back_avail(chain);
            Some(Step::Full)
        }
        // To touch it says whose memory is not there any more (`sigbus`).
        SendStatus::Unreadable | SendStatus::TooMany => None,
    })
}

/// Copies into the port's slot what was `given`, or what is next.
fn copied(
    live: &mut Live,
    port: &mut dyn PacketIo,
    memory: &Memory,
    most: usize,
    mut given: Option<Given>,
) -> Result<Step, QueueError> {
    let mut step = Ok(Step::Full);
    port.send(1, &mut |slot| {
        let mut outgoing = Outgoing::default();
        let next = match given.take() {
            Some(given) => Ok(Next::Given(given)),
            None => next(live, memory, most),
        };
        step = next.and_then(|next| match next {
            Next::Step(step) => Ok(step),
            Next::Given(given) => {
                let (id, len) = (given.chain.id, given.len);
                let header_len = live.taken.header_len();
                given.chain.read(memory, header_len, &mut slot[..len])?;
                outgoing = Outgoing {
                    len,
                    offload: given.offload,
                };
                Ok(Step::Sent { id, len })
            }
        });
        outgoing
    })?;
    if let Some(given) = given {
        live.back.queue.put_back_avail(&given.chain);
    }
    Ok(step?)
}

/// Takes the next packet.
fn next(live: &mut Live, memory: &Memory, most: usize) -> Result<Next, RingError> {
    let Some(chain) = live.back.pop(memory)? else {
        return Ok(Next::Step(Step::Empty));
    };
    let id = chain.id;
    let dropped = |why| Ok(Next::Step(Step::Dropped { id, why }));
    let header_len = live.taken.header_len();
    let Some(len) = chain
        .readable_len()
        .checked_sub(header_len)
        .filter(|len| *len > 0)
    else {
        return dropped(Drop::Empty);
    };
    if len > most {
        return dropped(Drop::TooLong);
    }
    let mut bytes = [0; header::LEN_MAX];
    chain.read(memory, 0, &mut bytes[..header_len])?;
    let offload = header::decode(&bytes);
    match offload::check_transmit(offload, len, live.taken) {
        Err(why) => dropped(why),
        Ok(()) => Ok(Next::Given(Given {
            chain,
            len,
            offload,
        })),
    }
}
