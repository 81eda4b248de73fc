//! The device: wakes, serves, calls, sleeps.
use super::shared::Shared;
use super::{Defer, Packet, Suppression};
use crate::Ns;
use crate::notifier::Notifier;
use crate::policy::{BadPolicy, Event, Peer, PolicyCounts, PolicyKind};

#[derive(Debug, Clone, Copy)]
enum Step {
    Wake,
    Serve(Packet),
    Call,
}

pub(super) struct Device {
    pub(super) notifier: Notifier,
    defer: Option<Defer>,
    /// Entries since it woke up.
    served: u32,
    /// When it wakes up although it was not kicked.
    alarm: Option<Ns>,
    /// None: asleep.
    step: Option<(Ns, Step)>,
}

impl Device {
    pub(super) fn new(kind: PolicyKind, defer: Option<Defer>) -> Result<Device, BadPolicy> {
        let notifier = Notifier::new(kind)?;
        Ok(Device {
            notifier,
            defer,
            served: 0,
            alarm: None,
            step: None,
        })
    }

    /// Counts of the interrupt policy.
    pub(super) fn counts(&self) -> PolicyCounts {
        *self.notifier.policy().counts()
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.step.is_none()
    }

    /// A kick's end: wakes whom it finds asleep.
    pub(super) fn kicked(&mut self, now: Ns, wake: Ns) {
        self.step.get_or_insert((now + wake, Step::Wake));
        self.alarm = None;
    }

    pub(super) fn next(&self, shared: &Shared) -> Option<Ns> {
        let end = self.step.map(|(end, _)| end);
        let sleeps_until = self.notifier.hold().into_iter().chain(self.alarm).min();
        end.or(sleeps_until.map(|at| at.max(shared.tally.now)))
    }

    pub(super) fn turn(&mut self, now: Ns, shared: &mut Shared) {
        shared.tally.now = now;
        match self.step.take() {
            Some((_, Step::Serve(packet))) => {
                self.served += 1;
                shared.used.push_back(packet);
                shared.tally.served += 1;
                let event = Event::Published {
                    waiting: shared.available.len() as u32,
                    free: u32::MAX,
                    peer: shared.call_wanted,
                };
                if self.notifier.on(event, now) {
                    return self.call(now, shared);
                }
            }
            Some((_, Step::Call)) => {
                // A call that finds one pending is one interrupt with it.
                shared.interrupt = true;
                let cost = shared.costs.call;
                let event = Event::Notified { cost, woke: true };
                self.notifier.on(event, now);
            }
            None if self.alarm.is_some_and(|at| at <= now) && !self.notifier.due(now) => {
                self.alarm = None;
                shared.kick_at = None;
                self.step = Some((now + shared.costs.wake, Step::Wake));
                return;
            }
            // Awake by a kick, or by the end of a hold.
            Some((_, Step::Wake)) | None => {}
        }
        self.begin(now, shared);
    }

    fn begin(&mut self, now: Ns, shared: &mut Shared) {
        if self.notifier.due(now) {
            let peer = shared.call_wanted;
            if self.notifier.on(Event::Due { peer }, now) {
                return self.call(now, shared);
            }
        }
        match shared.available.pop_front() {
            Some(packet) => {
                shared.kick_wanted = Peer::Awake;
                self.step = Some((now + shared.costs.serve, Step::Serve(packet)));
            }
            // It asks for a kick, finds nothing, and sleeps.
            None => self.sleep(now, shared),
        }
    }

    fn sleep(&mut self, now: Ns, shared: &mut Shared) {
        let served = std::mem::take(&mut self.served);
        match self.defer.filter(|defer| served >= defer.entries) {
            Some(Defer { entries, time }) => {
                shared.kick_wanted = Peer::Awake;
                shared.kick_at = Some(shared.published + u64::from(entries) - 1);
                self.alarm = Some(now + time);
            }
            None => {
                shared.kick_wanted = Peer::Asleep;
                shared.kick_at = None;
                self.alarm = None;
            }
        }
    }

    fn call(&mut self, now: Ns, shared: &mut Shared) {
        if shared.suppression == Suppression::Index {
            shared.call_wanted = Peer::Awake;
        }
        shared.tally.calls += 1;
        shared.kick_wanted = Peer::Awake;
        self.step = Some((now + shared.costs.call, Step::Call));
    }
}
