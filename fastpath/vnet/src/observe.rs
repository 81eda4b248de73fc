//! What is noted beside the decisions of one end of a queue: how long entries were held back, and what other
//! policies would have sent. No clock is read here: the times are those that the policy is told.
use crate::Ns;
use crate::policy::{Event, Peer, Policy};
use crate::shadow::Shadows;

mod sojourn;
mod times;

pub use sojourn::Sojourn;
pub use times::Times;

#[derive(Default)]
pub struct Watch {
    /// One for each announcement, of one entry or of a batch: how long its oldest entry had been visible and
    /// unannounced, until the policy decided to notify, or found a peer that looks by itself.
    pub hold: Times,
    /// They cost more than all the rest of this: only on request.
    pub shadows: Option<Box<Shadows>>,
}

impl Watch {
    /// `oldest`: when the oldest unannounced entry was published, before this event.
    pub(crate) fn decided(
        &mut self,
        event: Event,
        oldest: Option<Ns>,
        policy: &Policy,
        notified: bool,
        now: Ns,
    ) {
        let published = matches!(event, Event::Published { .. });
        if !published && oldest.is_none() {
            return;
        }
        let settled = policy.unannounced() == 0;
        if settled {
            self.hold.record(now.since(oldest.unwrap_or(now)));
        }
        let Some(shadows) = &mut self.shadows else {
            return;
        };
        if let Event::Published {
            waiting,
            free,
            peer,
        } = event
        {
            shadows.published(waiting, free, peer, now);
        }
        if settled {
            shadows.settled(notified, now);
        }
    }

    /// The batch ends for those policies too that wait for more where the one at work does not.
    pub(crate) fn pause(&mut self, peer: Peer, now: Ns) {
        if let Some(shadows) = &mut self.shadows {
            shadows.pause(peer, now);
        }
    }

    /// The queue ends, or another policy takes over: what was held back since `oldest` is released.
    pub(crate) fn let_go(&mut self, oldest: Option<Ns>, notified: bool, peer: Peer, now: Ns) {
        if let Some(oldest) = oldest {
            self.hold.record(now.since(oldest));
        }
        if let Some(shadows) = &mut self.shadows {
            if oldest.is_some() {
                shadows.settled(notified, now);
            }
            shadows.let_go(peer, now);
        }
    }
}
