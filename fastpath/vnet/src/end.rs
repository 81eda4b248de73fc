//! The two ends of a queue with their policies: what a front end and a back end are made of.
//!
//! Neither has a clock, a thread or a descriptor: time is an argument, and a notification is `true` as
//! the answer. So both ends can be stepped in one thread, and every count is exact.
use crate::Ns;
use crate::notifier::Notifier;
use crate::observe::Watch;
use crate::policy::{BadPolicy, Event, PolicyCounts, PolicyKind};
use crate::ring::{Chain, DeviceRing, DriverRing, Memory, RingError, Segment};

/// The driver's end of a queue.
pub struct Front {
    pub queue: Box<dyn DriverRing + Send>,
    notifier: Notifier,
}

/// An entry in the ring, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub id: u16,
    /// Kick now.
    pub kick: bool,
}

impl Front {
    /// # Errors
    /// As for [`Notifier::new`].
    pub fn new(queue: Box<dyn DriverRing + Send>, kick: PolicyKind) -> Result<Front, BadPolicy> {
        let notifier = Notifier::new(kick)?;
        Ok(Front { queue, notifier })
    }

    /// Puts an entry into the ring. `waiting`: further ones that are at hand.
    ///
    /// # Errors
    /// As for [`DriverRing::add_avail`].
    pub fn add(
        &mut self,
        memory: &Memory,
        segments: &[Segment],
        waiting: u32,
        now: Ns,
    ) -> Result<Added, RingError> {
        let id = self.queue.add_avail(memory, segments)?;
        let event = Event::Published {
            waiting,
            free: self.queue.free_descriptors().into(),
            peer: self.queue.needs_notification(memory)?,
        };
        let kick = self.decide(event, now);
        Ok(Added { id, kick })
    }

    /// The batch ends here after all: what was at hand does not come now. True: kick now.
    ///
    /// # Errors
    /// As for [`DriverRing::needs_notification`].
    pub fn pause(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        if self.notifier.policy().unannounced() == 0 {
            return Ok(false);
        }
        let peer = self.queue.needs_notification(memory)?;
        Ok(self.decide(Event::Due { peer }, now))
    }

    /// To be called at [`Notifier::hold`]'s time. True: kick now.
    ///
    /// # Errors
    /// As for [`DriverRing::needs_notification`].
    pub fn due(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        if !self.notifier.due(now) {
            return Ok(false);
        }
        let peer = self.queue.needs_notification(memory)?;
        Ok(self.decide(Event::Due { peer }, now))
    }

    fn decide(&mut self, event: Event, now: Ns) -> bool {
        let kick = self.notifier.on(event, now);
        if self.notifier.policy().unannounced() == 0 {
            self.queue.notified();
        }
        kick
    }

    pub fn notifier(&mut self) -> &mut Notifier {
        &mut self.notifier
    }
}

/// A policy that did not take over.
#[derive(Debug, thiserror::Error)]
pub enum Unchanged {
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error(transparent)]
    Ring(#[from] RingError),
}

/// Entries that are given back and shown at once, where the policy waits for more anyway: each time that the used index
/// is written, the driver's processor loses the line that it reads it from. A driver that looks on gets them this late.
const GROUP: u32 = 16;

/// The device's end of a queue.
pub struct Back {
    pub queue: Box<dyn DeviceRing + Send>,
    notifier: Notifier,
    pub watch: Watch,
    /// Packets added to the used ring but not published yet.
    unseen: u32,
    /// Several may be shown at once.
    grouped: bool,
}

impl Back {
    /// # Errors
    /// As for [`Notifier::new`].
    pub fn new(queue: Box<dyn DeviceRing + Send>, call: PolicyKind) -> Result<Back, BadPolicy> {
        let notifier = Notifier::new(call)?;
        let watch = Watch::default();
        Ok(Back {
            queue,
            notifier,
            watch,
            unseen: 0,
            grouped: false,
        })
    }

    /// What is given back is shown with what follows at once, up to [`GROUP`] packets. Not for packed rings: there each
    /// used descriptor shows itself, and whoever goes on after a kill reads the place from them.
    #[must_use]
    pub fn grouped(self) -> Back {
        Back {
            grouped: true,
            ..self
        }
    }

    /// Takes the oldest available entry.
    ///
    /// # Errors
    /// As for [`DeviceRing::next_avail`].
    pub fn pop(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError> {
        self.queue.next_avail(memory)
    }

    /// Gives an entry back, in which `len` bytes were written, and shows it. `goes_on`: the caller takes
    /// what is available next; without it the batch ends here. True: call now.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    pub fn done(
        &mut self,
        memory: &Memory,
        id: u16,
        len: u32,
        goes_on: bool,
        now: Ns,
    ) -> Result<bool, RingError> {
        self.queue.add_used(memory, id, len)?;
        let waiting = if goes_on {
            self.queue.has_avail(memory)?.into()
        } else {
            0
        };
        self.show(memory, waiting, now)
    }

    /// Shows what [`DeviceRing::add_used`] gave back: the entries of one packet, which the driver has to see
    /// together. They count as one. `waiting`: further packets that are at hand. True: call now.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    pub fn show(&mut self, memory: &Memory, waiting: u32, now: Ns) -> Result<bool, RingError> {
        self.unseen += 1;
        let wanted = self.unseen < GROUP && waiting > 0 && self.watch.shadows.is_none();
        // A policy that decides on each entry has to see each; and one that waits is asked before its limit.
        if self.grouped && wanted && self.notifier.policy().awaits(self.unseen) {
            return Ok(false);
        }
        self.show_all(memory, waiting, now)
    }

    /// Shows what is not to be seen yet; the policy is told of each packet. True: call now.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    fn show_all(&mut self, memory: &Memory, waiting: u32, now: Ns) -> Result<bool, RingError> {
        self.queue.publish_used(memory)?;
        let peer = self.queue.needs_notification(memory)?;
        let mut call = false;
        for behind in (0..std::mem::take(&mut self.unseen)).rev() {
            let event = Event::Published {
                waiting: waiting.saturating_add(behind),
                // The used ring has room for every entry there is.
                free: u32::MAX,
                peer,
            };
            call |= self.decide(event, now);
        }
        Ok(call)
    }

    /// The same where nothing follows at once; what the policy waits for it goes on waiting for.
    fn show_rest(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        match self.unseen {
            0 => Ok(false),
            _ => self.show_all(memory, 1, now),
        }
    }

    /// The batch ends here after all: what was at hand is not taken now. True: call now.
    ///
    /// # Errors
    /// As for [`DeviceRing::needs_notification`].
    pub fn pause(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        let call = self.show_rest(memory, now)?;
        let waits = self.notifier.policy().unannounced() > 0;
        if !waits && self.watch.shadows.is_none() {
            return Ok(call);
        }
        let peer = self.queue.needs_notification(memory)?;
        self.watch.pause(peer, now);
        Ok(waits && self.decide(Event::Due { peer }, now) || call)
    }

    /// As [`Back::pause`], but entries that were promised a time keep it.
    ///
    /// # Errors
    /// As for [`DeviceRing::needs_notification`].
    pub fn batch_ends(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        if self.notifier.hold().is_none() {
            return self.pause(memory, now);
        }
        let call = self.show_rest(memory, now)?;
        if self.watch.shadows.is_some() {
            let peer = self.queue.needs_notification(memory)?;
            self.watch.pause(peer, now);
        }
        Ok(call)
    }

    /// Switches to another policy. What the previous one held back is released first: nothing stays unannounced.
    /// True: call now; and what the one before did.
    ///
    /// # Errors
    /// A policy that cannot be, or as for [`DeviceRing::needs_notification`]: nothing has changed.
    pub fn change(
        &mut self,
        memory: &Memory,
        call: PolicyKind,
        now: Ns,
    ) -> Result<(bool, PolicyCounts), Unchanged> {
        let next = Notifier::new(call)?;
        let notified = self.let_go(memory, now)?;
        let before = std::mem::replace(&mut self.notifier, next);
        Ok((notified, *before.policy().counts()))
    }

    /// Lets go of what is held back: the queue ends, or another policy takes over. True: call now.
    ///
    /// # Errors
    /// As for [`DeviceRing::needs_notification`].
    pub fn let_go(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        let call = self.show_rest(memory, now)?;
        let oldest = self.notifier.policy().oldest();
        let peer = self.queue.needs_notification(memory)?;
        let notified = self.notifier.flush(peer, now);
        self.queue.notified();
        self.watch.let_go(oldest, notified, peer, now);
        Ok(notified || call)
    }

    /// What a call cost.
    pub fn learn(&mut self, cost: Ns, woke: bool) {
        self.notifier.learn(cost, woke);
        if let Some(shadows) = &mut self.watch.shadows {
            shadows.learn(cost, woke);
        }
    }

    /// To be called at [`Notifier::hold`]'s time. True: notify now.
    ///
    /// # Errors
    /// As for [`DeviceRing::needs_notification`].
    pub fn due(&mut self, memory: &Memory, now: Ns) -> Result<bool, RingError> {
        if !self.notifier.due(now) {
            return Ok(false);
        }
        let peer = self.queue.needs_notification(memory)?;
        Ok(self.decide(Event::Due { peer }, now))
    }

    fn decide(&mut self, event: Event, now: Ns) -> bool {
        let oldest = self.notifier.policy().oldest();
        let call = self.notifier.on(event, now);
        let policy = self.notifier.policy();
        if policy.unannounced() == 0 {
            self.queue.notified();
        }
        self.watch.decided(event, oldest, policy, call, now);
        call
    }

    pub fn notifier(&mut self) -> &mut Notifier {
        &mut self.notifier
    }
}
