//! From wishes to actions: what is unannounced is kept here, out of reach of the rules.
use super::adaptive::Adaptive;
use super::ahc::{Ahc, AhcWindow};
use super::batch::Batch;
use super::coalesce::Coalesce;
use super::each::Each;
use super::{Action, BadPolicy, Event, HOLD_MAX, Peer, PolicyCounts, PolicyKind, Rule, Seen, Wish};
use crate::Ns;

/// A policy at work on one side of one queue.
pub struct Policy {
    kind: PolicyKind,
    rule: Box<dyn Rule + Send>,
    /// Published, and neither announced nor seen by a peer that is awake.
    unannounced: u32,
    oldest: Ns,
    held: bool,
    counts: PolicyCounts,
}

impl Policy {
    /// # Errors
    /// A limit of 0, or a time above [`HOLD_MAX`].
    pub fn new(kind: PolicyKind) -> Result<Policy, BadPolicy> {
        kind.check()?;
        let rule: Box<dyn Rule + Send> = match kind {
            PolicyKind::Plain => Box::new(Each { force: true }),
            PolicyKind::Suppress | PolicyKind::EventIdx => Box::new(Each { force: false }),
            PolicyKind::Tam { limit } => Box::new(Batch { limit, force: true }),
            PolicyKind::Batch { limit } => Box::new(Batch {
                limit,
                force: false,
            }),
            PolicyKind::Ahc { time, limit } => Box::new(Ahc { time, limit }),
            PolicyKind::AhcWindow { time, limit } => Box::new(AhcWindow::new(time, limit)),
            PolicyKind::Coalesce { packets, time } => Box::new(Coalesce { packets, time }),
            PolicyKind::Adaptive => Box::new(Adaptive::default()),
        };
        Ok(Policy::of(kind, rule))
    }

    fn of(kind: PolicyKind, rule: Box<dyn Rule + Send>) -> Policy {
        Policy {
            kind,
            rule,
            unannounced: 0,
            oldest: Ns(0),
            held: false,
            counts: PolicyCounts::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_rule(rule: Box<dyn Rule + Send>) -> Policy {
        Policy::of(PolicyKind::Plain, rule)
    }

    pub fn kind(&self) -> PolicyKind {
        self.kind
    }

    pub fn counts(&self) -> &PolicyCounts {
        &self.counts
    }

    /// Entries that were published and are neither announced nor seen.
    pub fn unannounced(&self) -> u32 {
        self.unannounced
    }

    /// When the oldest of them was published.
    pub fn oldest(&self) -> Option<Ns> {
        (self.unannounced > 0).then_some(self.oldest)
    }

    /// Whether `more` further entries are only waited for, as long as others are at hand.
    pub fn awaits(&self, more: u32) -> bool {
        match self.kind {
            PolicyKind::Tam { limit } | PolicyKind::Batch { limit } => {
                self.unannounced.saturating_add(more) < limit
            }
            _ => false,
        }
    }

    /// Lets go of what is held back, whatever the rule wishes: another policy takes over, or the queue ends.
    /// True: notify now.
    pub fn flush(&mut self, peer: Peer, now: Ns) -> bool {
        self.unannounced > 0 && self.ask(peer, now) == Action::Notify
    }

    /// The longest that this policy holds an entry back while nothing waits, at this moment.
    pub fn bound(&self) -> Ns {
        self.rule.bound().min(HOLD_MAX)
    }

    pub fn on(&mut self, event: Event, now: Ns) -> Action {
        match event {
            Event::Notified { cost, woke } => {
                self.rule.notified(cost, woke);
                // Only a report: what was to be done stays to be done.
                match self.unannounced {
                    0 => Action::Rest,
                    _ => Action::Hold { until: now },
                }
            }
            Event::Due { peer } => self.decide(0, 1, peer, now),
            Event::Published {
                waiting,
                free,
                peer,
            } => {
                if self.unannounced == 0 {
                    self.oldest = now;
                }
                self.unannounced += 1;
                self.counts.published += 1;
                self.counts.full += u64::from(free == 0);
                self.rule.published(now);
                self.decide(waiting, free, peer, now)
            }
        }
    }

    fn decide(&mut self, waiting: u32, free: u32, peer: Peer, now: Ns) -> Action {
        if self.unannounced == 0 {
            return Action::Rest;
        }
        let wish = self.rule.wish(Seen {
            unannounced: self.unannounced,
            oldest: self.oldest,
            waiting,
            full: free == 0,
            held: self.held,
            peer,
            now,
        });
        let follows = waiting > 0 && free > 0;
        match wish {
            Wish::Force => self.notify(now),
            Wish::Ask => self.ask(peer, now),
            // Another entry comes at once, and the rule is asked again with it.
            Wish::Batch | Wish::Wait(_) if follows => Action::More,
            // Nothing is at hand, or nothing fits: a batch is what there is.
            Wish::Batch => self.ask(peer, now),
            // A full ring moves only when the peer does.
            Wish::Wait(_) if free == 0 => self.ask(peer, now),
            Wish::Wait(until) => {
                let until = until.min(self.oldest + HOLD_MAX);
                if until <= now {
                    return self.ask(peer, now);
                }
                self.counts.holds += u64::from(!self.held);
                self.held = true;
                Action::Hold { until }
            }
        }
    }

    fn ask(&mut self, peer: Peer, now: Ns) -> Action {
        match peer {
            Peer::Asleep => self.notify(now),
            Peer::Awake => {
                self.counts.suppressed += 1;
                self.settle(now);
                Action::Rest
            }
        }
    }

    fn notify(&mut self, now: Ns) -> Action {
        self.counts.notified += 1;
        self.counts.batch(self.unannounced);
        self.settle(now);
        Action::Notify
    }

    fn settle(&mut self, now: Ns) {
        if self.held {
            self.counts.hold(now.since(self.oldest));
        }
        self.held = false;
        self.unannounced = 0;
    }
}
