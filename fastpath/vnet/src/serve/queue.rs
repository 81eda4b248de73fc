//! One queue: its doorbells, its ring while it is live, and what happened there.
use super::busy_poll::BusyPoll;
use super::counts::{Drop, QueueCounts};
use super::kicks::{DeferKicks, Kicks};
use super::live::{Live, Pending, QueueError};
use super::policy_counts::KeptPolicies;
use super::receive_direct::Arriving;
use crate::Ns;
use crate::common::eventfd::Eventfd;
use crate::common::feature::Negotiated;
use crate::end::Back;
use crate::events::What;
use crate::observe::Sojourn;
use crate::policy::{Peer, PolicyKind};
use crate::ring::{DeviceRing, Layout, Memory, RingError, packed, split};
use hopscope_serving::clock::Clock;
use hopscope_serving::events::EventLog;
use std::collections::VecDeque;

pub(super) struct Queue {
    pub(super) index: usize,
    pub(super) calls: PolicyKind,
    pub(super) kicks: Kicks,
    pub(super) defer: Option<DeferKicks>,
    pub(super) kick: Option<Eventfd>,
    pub(super) call: Option<Eventfd>,
    /// Rung when the queue ends by an error.
    pub(super) error: Option<Eventfd>,
    pub(super) live: Option<Live>,
    /// Ended by an error: not begun again before the front end stops it.
    pub(super) broken: bool,
    /// Something may be there to be done.
    pub(super) ready: bool,
    /// Waits for chains (received) or for room in the port (transmitted), not for packets.
    pub(super) blocked: bool,
    pub(super) pending: Option<Pending>,
    pub(super) arriving: Arriving,
    /// Where it ended last under this front end.
    pub(super) ended: Option<u32>,
    pub(super) counts: QueueCounts,
    /// Of what the guest sends.
    pub(super) sojourn: Sojourn,
    pub(super) kept: KeptPolicies,
    pub(super) events: EventLog,
}

impl Queue {
    pub(super) fn new(index: usize, calls: PolicyKind, kicks: Kicks) -> Queue {
        Queue {
            index,
            calls,
            kicks,
            defer: kicks.defer(),
            kick: None,
            call: None,
            error: None,
            live: None,
            broken: false,
            ready: false,
            blocked: false,
            pending: None,
            arriving: Arriving::default(),
            ended: None,
            counts: QueueCounts::default(),
            sojourn: Sojourn::default(),
            kept: KeptPolicies::default(),
            events: EventLog::default(),
        }
    }

    /// Entries given back with nothing in them, so that the queue can go on; `None`: it begins where the front end
    /// says.
    ///
    /// # Errors
    /// No queue has this size or alignment, or it is not in the memory; where it goes on is not to be known.
    pub(super) fn begin(
        &mut self,
        layout: Layout,
        taken: Negotiated,
        base: u32,
        memory: &Memory,
    ) -> Result<Option<u16>, QueueError> {
        let features = taken.ring();
        let mut emptied = 0;
        // A packed queue's place is known here, or it is read from the ring: QEMU 7.2 loses it.
        let known = self
            .ended
            .take()
            .is_some_and(|ended| ended as u16 == base as u16);
        let mut ring: Box<dyn DeviceRing + Send> = match (taken.packed(), known) {
            (true, true) => Box::new(packed::DeviceQueue::resumed(layout, features, base)?),
            (true, false) => {
                let (ring, count) = packed::DeviceQueue::found(memory, layout, features, base)?;
                emptied = count;
                Box::new(ring)
            }
            (false, _) => {
                let mut ring = split::DeviceQueue::new(layout, features, base as u16)?;
                ring.resume(memory)?;
                Box::new(ring)
            }
        };
        ring.enable_notification(memory, 0)?;
        let place = ring.vring_base();
        let start = if taken.packed() { packed::START } else { 0 };
        // An earlier end may have been killed before it called.
        let uncalled = place != start && ring.needs_notification(memory)? == Peer::Asleep;
        let found = emptied > 0 || place as u16 != base as u16;
        self.counts.found += u64::from(found);
        self.counts.emptied += u64::from(emptied);
        // Its text was parsed by the same rules.
        let mut back = Back::new(ring, self.calls).map_err(|_| RingError::Empty)?;
        if !taken.packed() {
            back = back.grouped();
        }
        self.live = Some(Live {
            back,
            layout,
            taken,
            held: VecDeque::new(),
            served: 0,
            alarm: None,
            look: None,
            busy_poll: BusyPoll::default(),
        });
        self.watched();
        // A kick may have come before this end looked.
        (self.ready, self.blocked) = (true, false);
        self.counts.starts += 1;
        if uncalled {
            self.counts.calls_repeated += 1;
            self.ring_call()?;
        }
        Ok(found.then_some(emptied))
    }

    /// Where the queue resumes; every entry is used, and the driver can see it.
    ///
    /// # Errors
    /// The ring is not in the memory any more.
    pub(super) fn end(&mut self, memory: &Memory, clock: Clock) -> Result<Option<u32>, QueueError> {
        let Some(mut live) = self.live.take() else {
            return Ok(None);
        };
        while let Some(chain) = live.held.pop_back() {
            live.back.queue.put_back_avail(&chain);
        }
        let now = clock.now();
        let due = live.back.pause(memory, now);
        let held = live.back.notifier().policy().unannounced() > 0;
        let asked = live.back.let_go(memory, now);
        let base = live.back.queue.vring_base();
        self.ended = Some(base);
        self.retire(live);
        let (due, asked) = (due?, asked?);
        if due || held {
            // One that was held back would come after the end.
            self.counts.calls_repeated += u64::from(!due && !asked);
            self.ring_call()?;
        }
        Ok(Some(base))
    }

    /// Ends the queue where its ring is not there any more.
    pub(super) fn abandon(&mut self) {
        if let Some(live) = self.live.take() {
            self.retire(live);
        }
    }

    /// Gives the queue up: what its driver wrote cannot be.
    pub(super) fn give_up(&mut self) {
        self.abandon();
        self.counts.broken += 1;
        self.broken = true;
        // Whether anybody listens is the front end's affair.
        let _ = self.error.as_ref().map(Eventfd::signal);
    }

    pub(super) fn kicked(&mut self) -> Result<(), QueueError> {
        if let Some(kick) = self.kick.take() {
            let counted = self.counted(&kick);
            self.kick = Some(kick);
            counted?;
            (self.ready, self.blocked) = (true, false);
        }
        Ok(())
    }

    /// Kicks that came by `kick` and were not counted yet.
    pub(super) fn counted(&mut self, kick: &Eventfd) -> Result<(), QueueError> {
        self.events.begin(What::Kicked);
        let kicks = kick.take();
        let seen = *kicks.as_ref().unwrap_or(&0);
        self.events.end(What::Kicked, seen);
        let kicks = kicks?;
        self.counts.kicks += kicks;
        self.counts.kicks_seen += u64::from(kicks > 0);
        Ok(())
    }

    /// Rings, and tells the policy what it cost.
    pub(super) fn call(&mut self, clock: Clock) -> Result<(), QueueError> {
        let before = clock.now();
        self.ring_call()?;
        if let Some(live) = &mut self.live {
            // Who called because the driver asked for it found it asleep.
            let cost = clock.now().since(before);
            live.back.learn(cost, true);
            live.busy_poll.learn(cost);
        }
        Ok(())
    }

    fn ring_call(&mut self) -> Result<(), QueueError> {
        match &self.call {
            Some(call) => {
                self.events.begin(What::Call);
                let rung = call.signal();
                self.events.end(What::Call, u64::from(rung.is_ok()));
                rung?;
                self.counts.calls += 1;
            }
            None => self.counts.calls_unheard += 1,
        }
        Ok(())
    }

    /// The driver's doorbell is another one: a call to the one before may not have been seen.
    pub(super) fn called_by(&mut self, bell: Option<Eventfd>) -> Result<(), QueueError> {
        self.call = bell;
        if self.live.is_some() && self.call.is_some() {
            self.counts.calls_repeated += 1;
            self.ring_call()?;
        }
        Ok(())
    }

    /// When it has to be polled without a kick.
    pub(super) fn deadline(&mut self) -> Option<Ns> {
        let live = self.live.as_mut()?;
        let hold = live.back.notifier().hold();
        hold.into_iter().chain(live.alarm).chain(live.look).min()
    }

    /// What is due at a deadline.
    pub(super) fn due(&mut self, memory: &Memory, clock: Clock) -> Result<(), QueueError> {
        let now = clock.now();
        let Some(live) = &mut self.live else {
            return Ok(());
        };
        let alarm = live.alarm.take_if(|at| *at <= now).is_some();
        let look = live.look.take_if(|at| *at <= now).is_some();
        self.counts.alarms += u64::from(alarm);
        self.counts.looks += u64::from(look);
        if alarm || look {
            (self.ready, self.blocked) = (true, false);
        }
        if live.back.due(memory, now)? {
            self.call(clock)?;
        }
        Ok(())
    }

    /// The batch is over: nothing more is at hand.
    pub(super) fn pause(&mut self, memory: &Memory, clock: Clock) -> Result<(), QueueError> {
        let Some(live) = &mut self.live else {
            return Ok(());
        };
        if live.back.batch_ends(memory, clock.now())? {
            self.call(clock)?;
        }
        Ok(())
    }

    /// Enables kicks; true: more is available already.
    pub(super) fn sleep(&mut self, memory: &Memory, clock: Clock) -> Result<bool, QueueError> {
        self.pause(memory, clock)?;
        let Some(live) = &mut self.live else {
            return Ok(false);
        };
        let served = std::mem::take(&mut live.served);
        if self.kicks == Kicks::Adaptive
            && let Some(time) = live.busy_poll.look_on(served, clock.now())
        {
            let more = live.back.queue.has_avail(memory)?;
            live.look = (!more).then(|| clock.now() + time);
            return Ok(more);
        }
        let index = live.taken.ring().event_idx;
        let defer = self
            .defer
            .filter(|defer| index && served >= u32::from(defer.entries));
        let ahead = defer.map_or(0, |defer| defer.entries.min(live.layout.size) - 1);
        let more = live.back.queue.enable_notification(memory, ahead)?;
        live.alarm = defer
            .filter(|_| !more)
            .map(|defer| clock.now() + defer.time);
        Ok(more)
    }

    /// Works by itself: kicks are of no use until it sleeps.
    pub(super) fn wake(&mut self, memory: &Memory) -> Result<(), QueueError> {
        if let Some(live) = &mut self.live {
            (live.alarm, live.look) = (None, None);
            live.back.queue.disable_notification(memory)?;
        }
        Ok(())
    }

    pub(super) fn drop_pending(&mut self) {
        if self.pending.take().is_some() {
            self.counts.drops.count(Drop::Ended);
        }
    }
}
