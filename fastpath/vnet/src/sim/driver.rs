//! The driver: publishes, kicks, takes interrupts, reclaims.
use super::device::Device;
use super::shared::Shared;
use super::{Packet, Suppression};
use crate::Ns;
use crate::notifier::Notifier;
use crate::policy::{BadPolicy, Event, Peer, PolicyCounts, PolicyKind};

#[derive(Debug, Clone, Copy)]
enum Step {
    Publish(Packet),
    Kick { woke: bool },
    Interrupt,
}

pub(super) struct Driver {
    pub(super) notifier: Notifier,
    step: Option<(Ns, Step)>,
    /// The first packet that is not published, nor being published.
    next_packet: Packet,
}

impl Driver {
    pub(super) fn new(kind: PolicyKind) -> Result<Driver, BadPolicy> {
        let notifier = Notifier::new(kind)?;
        Ok(Driver {
            notifier,
            step: None,
            next_packet: 0,
        })
    }

    /// What the policy of kicks did.
    pub(super) fn counts(&self) -> PolicyCounts {
        *self.notifier.policy().counts()
    }

    /// The driver's next event, if no other comes first.
    pub(super) fn next(&self, shared: &Shared) -> Option<Ns> {
        if let Some((end, _)) = self.step {
            return Some(end);
        }
        // Taken at the next turn, whenever that is: an idle driver's time is now.
        if shared.interrupt {
            return Some(shared.tally.now);
        }
        let arrival = match shared.free {
            0 => None,
            _ => shared.arrivals.get(self.next_packet).copied(),
        };
        let earliest = arrival.into_iter().chain(self.notifier.hold()).min();
        earliest.map(|at| at.max(shared.tally.now))
    }

    pub(super) fn turn(&mut self, now: Ns, shared: &mut Shared, device: &mut Device) {
        shared.tally.now = now;
        if let Some((_, step)) = self.step.take() {
            match step {
                Step::Publish(packet) => {
                    self.reclaim(now, shared);
                    shared.available.push_back(packet);
                    shared.published += 1;
                    if shared.kick_at.is_some_and(|at| at < shared.published) {
                        shared.kick_at = None;
                        shared.kick_wanted = Peer::Asleep;
                    }
                    let event = Event::Published {
                        waiting: self.waiting(now, shared),
                        free: shared.free,
                        peer: shared.kick_wanted,
                    };
                    if self.notifier.on(event, now) {
                        return self.kick(now, shared, device);
                    }
                }
                Step::Kick { woke } => {
                    device.kicked(now, shared.costs.wake);
                    let cost = shared.costs.kick;
                    self.notifier.on(Event::Notified { cost, woke }, now);
                }
                Step::Interrupt => {
                    self.reclaim(now, shared);
                    shared.call_wanted = Peer::Asleep;
                }
            }
        }
        self.begin(now, shared, device);
    }

    fn begin(&mut self, now: Ns, shared: &mut Shared, device: &mut Device) {
        if self.notifier.due(now) {
            let peer = shared.kick_wanted;
            if self.notifier.on(Event::Due { peer }, now) {
                return self.kick(now, shared, device);
            }
        }
        if shared.interrupt {
            shared.interrupt = false;
            shared.call_wanted = Peer::Awake;
            self.reclaim(now, shared);
            self.step = Some((now + shared.costs.interrupt, Step::Interrupt));
        } else if self.waiting(now, shared) > 0 && shared.free > 0 {
            // The slot is taken now, and seen by the device at the end.
            shared.free -= 1;
            let packet = self.next_packet;
            self.next_packet += 1;
            self.step = Some((now + shared.costs.publish, Step::Publish(packet)));
        }
    }

    fn kick(&mut self, now: Ns, shared: &mut Shared, device: &Device) {
        if shared.suppression == Suppression::Index {
            shared.kick_wanted = Peer::Awake;
        }
        shared.tally.kicks += 1;
        let woke = device.is_asleep();
        self.step = Some((now + shared.costs.kick, Step::Kick { woke }));
    }

    /// Packets that have come and are not published.
    fn waiting(&self, now: Ns, shared: &Shared) -> u32 {
        let rest = &shared.arrivals[self.next_packet..];
        // Bounded by the ring: more could not be published anyway.
        let window = &rest[..rest.len().min(shared.free.max(1) as usize)];
        window.partition_point(|arrival| *arrival <= now) as u32
    }

    fn reclaim(&mut self, now: Ns, shared: &mut Shared) {
        while let Some(packet) = shared.used.pop_front() {
            shared.free += 1;
            let since = now.since(shared.arrivals[packet]);
            shared.tally.reclaimed(packet, since);
        }
    }
}
