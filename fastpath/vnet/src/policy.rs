//! When one end of a queue tells the other that there is work: pure state machines.
//!
//! The driver's *kicks* and the device's *calls* are the same question, so both ends run the same
//! machines. An entry is *published* when the peer can see it (available index, used index, or flag
//! written); a notification *announces* all entries published before it. What is published but not
//! announced must never be forgotten. [`Policy::on`] therefore gives one of four actions, and each says
//! who brings the next event:
//!
//! | action | unannounced afterwards | what happens next |
//! |---|---|---|
//! | [`Action::Notify`] | none | the caller notifies now |
//! | [`Action::Rest`] | none | the peer is awake and looks at the ring again before it sleeps |
//! | [`Action::More`] | some | another entry waits and fits: the caller publishes it now |
//! | [`Action::Hold`] | some | the caller sends [`Event::Due`] at that time |
//!
//! A rule only wishes; [`gate`](Policy) turns its wish into an action. Two wishes it cannot have:
//! waiting for an entry that is not there (with nothing waiting a batch ends), and waiting with a full
//! ring (nothing more can be published before the peer has worked). So no rule, however wrong, can
//! stall a queue for longer than [`HOLD_MAX`].
use crate::Ns;

mod adaptive;
mod ahc;
mod batch;
mod coalesce;
mod counts;
mod each;
mod gate;
mod kind;

pub(crate) use adaptive::{Average, PRICE_FIRST, PRICE_MAX};
pub use counts::{BATCH_BUCKETS, PolicyCounts};
pub use gate::Policy;
pub use kind::{BadPolicy, PolicyKind};

/// No entry is ever held back longer than this, whatever a rule wishes: 10 ms.
pub const HOLD_MAX: Ns = Ns::from_us(10_000);

/// Result of the suppression test of the peer (`NO_NOTIFY`/`NO_INTERRUPT`, or the event index:
/// virtio 1.3, 2.7.7 and 2.7.10), taken after the entry was published and a full barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Notifications are enabled: it will not poll the ring.
    Asleep,
    /// Notifications are disabled: it polls again, after it has enabled them, before it sleeps.
    Awake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// One more entry can be seen by the peer.
    Published {
        /// Entries at hand that could be published next: a backlog, never a hope.
        waiting: u32,
        /// Further entries that fit.
        free: u32,
        peer: Peer,
    },
    /// The time of [`Action::Hold`] has come.
    Due { peer: Peer },
    /// What a notification cost its sender, and whether it woke a sleeping peer.
    Notified { cost: Ns, woke: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Notify,
    Rest,
    More,
    Hold { until: Ns },
}

/// What a rule decides on: at least one entry is unannounced.
#[derive(Debug, Clone, Copy)]
struct Seen {
    unannounced: u32,
    /// When the oldest of them was published.
    oldest: Ns,
    waiting: u32,
    full: bool,
    /// The oldest has been held back already although nothing waited.
    held: bool,
    peer: Peer,
    now: Ns,
}

/// What a rule would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Notify, whatever the suppression test returns.
    Force,
    /// Notify if the peer has notifications enabled.
    Ask,
    /// Wait for entries that are at hand.
    Batch,
    /// Wait for entries that may come, until then.
    Wait(Ns),
}

#[cfg(test)]
mod tests;

trait Rule {
    fn wish(&mut self, seen: Seen) -> Wish;

    /// An entry was published, also when nothing has to be decided on it.
    fn published(&mut self, _now: Ns) {}

    fn notified(&mut self, _cost: Ns, _woke: bool) {}

    /// The longest that an entry is held back while nothing waits.
    fn bound(&self) -> Ns {
        Ns(0)
    }
}
