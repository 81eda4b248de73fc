//! Shadow mode: what other policies would have sent, each fed with the events of the active one.
//!
//! A shadow has its own holds, which end at their own times, never late. What it cannot know is what the peer
//! would have done differently. Two things are known nevertheless: a peer that slept, and that the policy at work
//! woke, still sleeps for a shadow that holds entries back since. And a peer that asked by an event index asked
//! once: a shadow that has notified it by that index finds it awake until the policy at work has settled too.
use crate::Ns;
use crate::notifier::Notifier;
use crate::policy::{BadPolicy, Event, Peer, PolicyCounts, PolicyKind};

mod advice;

pub use advice::{Advice, advise};

/// What one policy would have done, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Would {
    pub policy: PolicyKind,
    #[serde(flatten)]
    pub counts: PolicyCounts,
    /// The sum over all entries of the time from their publication to the notification, or to the look
    /// at a peer that needs none.
    #[serde(rename = "waited_ns")]
    pub waited: Ns,
}

impl Would {
    pub fn notified_per_entry(&self) -> f64 {
        self.counts.notified as f64 / self.counts.published.max(1) as f64
    }

    /// Mean over entries.
    pub fn wait(&self) -> Ns {
        Ns(self.waited.0 / self.counts.published.max(1))
    }
}

/// What the policy at work did while it had shadows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Did {
    pub published: u64,
    pub notified: u64,
    pub suppressed: u64,
    /// As [`Would::waited`].
    #[serde(rename = "waited_ns")]
    pub waited: Ns,
}

/// Times of publication of what is unannounced: their sum and number.
#[derive(Default)]
struct Waiting {
    since: u128,
    entries: u32,
    waited: Ns,
}

impl Waiting {
    fn published(&mut self, now: Ns) {
        self.since += u128::from(now.0);
        self.entries += 1;
    }

    fn settled(&mut self, now: Ns) {
        let waited = u128::from(now.0) * u128::from(self.entries);
        let waited = waited.saturating_sub(self.since);
        self.waited = self.waited + Ns(u64::try_from(waited).unwrap_or(u64::MAX));
        (self.since, self.entries) = (0, 0);
    }
}

struct Shadow {
    notifier: Notifier,
    waiting: Waiting,
    /// Whom the policy at work woke meanwhile still sleeps here.
    asleep: bool,
    /// It was notified here as it had asked, and not yet by the policy at work.
    told: bool,
}

impl Shadow {
    fn of(kind: PolicyKind) -> Result<Shadow, BadPolicy> {
        Ok(Shadow {
            notifier: Notifier::new(kind)?,
            waiting: Waiting::default(),
            asleep: false,
            told: false,
        })
    }

    /// What this shadow would find, where the policy at work finds `peer`.
    fn finds(&self, peer: Peer, index: bool) -> Peer {
        match (self.asleep, index && self.told) {
            (true, _) => Peer::Asleep,
            (false, true) => Peer::Awake,
            (false, false) => peer,
        }
    }

    fn published(&mut self, waiting: u32, free: u32, peer: Peer, now: Ns) {
        self.waiting.published(now);
        let event = Event::Published {
            waiting,
            free,
            peer,
        };
        let notified = self.notifier.on(event, now);
        self.decided(notified, peer, now);
    }

    fn due(&mut self, peer: Peer, now: Ns) {
        let notified = self.notifier.on(Event::Due { peer }, now);
        self.decided(notified, peer, now);
    }

    fn decided(&mut self, notified: bool, peer: Peer, now: Ns) {
        self.told |= notified && peer == Peer::Asleep;
        if self.notifier.policy().unannounced() == 0 {
            self.asleep = false;
            self.waiting.settled(now);
        }
    }

    /// What was held back until a time that has come meanwhile.
    fn catch_up(&mut self, peer: Peer, index: bool, now: Ns) {
        while let Some(until) = self.notifier.hold().filter(|until| *until <= now) {
            self.due(self.finds(peer, index), until);
        }
    }
}

/// Policies that only think.
pub struct Shadows {
    all: Vec<Shadow>,
    peer: Peer,
    /// The peer uses the event index, not the flag.
    index: bool,
    did: Did,
    waiting: Waiting,
}

impl Shadows {
    /// # Errors
    /// As for [`Notifier::new`].
    pub fn of(kinds: impl IntoIterator<Item = PolicyKind>) -> Result<Shadows, BadPolicy> {
        Ok(Shadows {
            all: kinds
                .into_iter()
                .map(Shadow::of)
                .collect::<Result<_, _>>()?,
            peer: Peer::Asleep,
            index: false,
            did: Did::default(),
            waiting: Waiting::default(),
        })
    }

    /// The ring was negotiated with an event index, or without.
    pub fn asked_by_index(&mut self, index: bool) {
        self.index = index;
    }

    /// As the policy at work is told it.
    pub fn published(&mut self, waiting: u32, free: u32, peer: Peer, now: Ns) {
        for shadow in &mut self.all {
            shadow.catch_up(self.peer, self.index, now);
            let found = shadow.finds(peer, self.index);
            shadow.published(waiting, free, found, now);
        }
        self.peer = peer;
        self.did.published += 1;
        self.waiting.published(now);
    }

    /// The policy at work has nothing unannounced any more: it has notified, or found the peer awake.
    pub fn settled(&mut self, notified: bool, now: Ns) {
        for shadow in &mut self.all {
            // What ended by now ended before the peer heard of it.
            shadow.catch_up(self.peer, self.index, now);
            shadow.told = false;
            shadow.asleep |= notified && self.peer == Peer::Asleep && shadow.waiting.entries > 0;
        }
        self.did.notified += u64::from(notified);
        self.did.suppressed += u64::from(!notified);
        self.waiting.settled(now);
        self.did.waited = self.waiting.waited;
    }

    /// What a notification of the policy at work cost.
    pub fn learn(&mut self, cost: Ns, woke: bool) {
        for shadow in &mut self.all {
            shadow.notifier.learn(cost, woke);
        }
    }

    /// The queue ends: nothing stays held back.
    pub fn let_go(&mut self, peer: Peer, now: Ns) {
        for shadow in &mut self.all {
            shadow.catch_up(self.peer, self.index, now);
            let found = shadow.finds(peer, self.index);
            let notified = shadow.notifier.flush(found, now);
            shadow.decided(notified, found, now);
        }
        self.peer = Peer::Asleep;
    }

    /// What the policy at work did meanwhile.
    pub fn did(&self) -> Did {
        self.did
    }

    /// The batch ends here: nothing that was said to be waiting comes now.
    pub fn pause(&mut self, peer: Peer, now: Ns) {
        for shadow in &mut self.all {
            shadow.catch_up(self.peer, self.index, now);
            if shadow.waiting.entries > 0 && shadow.notifier.hold().is_none() {
                shadow.due(shadow.finds(peer, self.index), now);
            }
        }
        self.peer = peer;
    }

    /// Up to `now`.
    pub fn would(&mut self, now: Ns) -> Vec<Would> {
        let (peer, index) = (self.peer, self.index);
        let would = |shadow: &mut Shadow| {
            shadow.catch_up(peer, index, now);
            Would {
                policy: shadow.notifier.policy().kind(),
                counts: *shadow.notifier.policy().counts(),
                waited: shadow.waiting.waited,
            }
        };
        self.all.iter_mut().map(would).collect()
    }
}

#[cfg(test)]
mod tests;
