//! What other policies would have sent: each is run beside the one at work, on what that one sees.
//!
//! A shadow has its own holds, which end at their own times. What it cannot know is what the peer would
//! have done differently: whether it was asleep is as the policy at work left it. A shadow that sends less
//! would have found it asleep more often, never the other way, so that what is said of those that ask
//! the peer is the least that they would have sent.
use crate::Ns;
use crate::notifier::Notifier;
use crate::policy::{BadPolicy, Counts, Event, Kind, Peer};

mod advice;

pub use advice::{Advice, advise};

/// What one policy would have done, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Would {
    pub policy: Kind,
    #[serde(flatten)]
    pub counts: Counts,
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

struct Shadow {
    notifier: Notifier,
    /// Times of publication of what is unannounced: their sum and number.
    since: u128,
    entries: u32,
    waited: Ns,
}

impl Shadow {
    fn on(&mut self, event: Event, now: Ns) {
        if matches!(event, Event::Published { .. }) {
            self.since += u128::from(now.0);
            self.entries += 1;
        }
        self.notifier.on(event, now);
        if self.notifier.policy().unannounced() == 0 {
            let waited = u128::from(now.0) * u128::from(self.entries);
            let waited = waited.saturating_sub(self.since);
            self.waited = self.waited + Ns(u64::try_from(waited).unwrap_or(u64::MAX));
            (self.since, self.entries) = (0, 0);
        }
    }

    /// What was held back until a time that has come meanwhile.
    fn catch_up(&mut self, peer: Peer, now: Ns) {
        while let Some(until) = self.notifier.hold().filter(|until| *until <= now) {
            self.on(Event::Due { peer }, until);
        }
    }
}

/// Policies that only think.
pub struct Shadows {
    all: Vec<Shadow>,
    peer: Peer,
}

impl Shadows {
    /// # Errors
    /// As for [`Notifier::new`].
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Result<Shadows, BadPolicy> {
        let shadow = |kind| {
            Ok(Shadow {
                notifier: Notifier::new(kind)?,
                since: 0,
                entries: 0,
                waited: Ns(0),
            })
        };
        Ok(Shadows {
            all: kinds.into_iter().map(shadow).collect::<Result<_, _>>()?,
            peer: Peer::Asleep,
        })
    }

    /// As the policy at work is told it.
    pub fn published(&mut self, waiting: u32, free: u32, peer: Peer, now: Ns) {
        let event = Event::Published {
            waiting,
            free,
            peer,
        };
        for shadow in &mut self.all {
            shadow.catch_up(self.peer, now);
            shadow.on(event, now);
        }
        self.peer = peer;
    }

    /// The batch ends here: nothing that was said to be waiting comes now.
    pub fn pause(&mut self, peer: Peer, now: Ns) {
        for shadow in &mut self.all {
            shadow.catch_up(self.peer, now);
            if shadow.entries > 0 && shadow.notifier.hold().is_none() {
                shadow.on(Event::Due { peer }, now);
            }
        }
        self.peer = peer;
    }

    /// Up to `now`.
    pub fn would(&mut self, now: Ns) -> Vec<Would> {
        let peer = self.peer;
        let would = |shadow: &mut Shadow| {
            shadow.catch_up(peer, now);
            Would {
                policy: shadow.notifier.policy().kind(),
                counts: *shadow.notifier.policy().counts(),
                waited: shadow.waited,
            }
        };
        self.all.iter_mut().map(would).collect()
    }
}

#[cfg(test)]
mod tests;
