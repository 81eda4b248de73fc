//! A policy with its pending hold, as kept by an end of a queue, real or simulated.
use crate::Ns;
use crate::policy::{Action, BadPolicy, Event, Peer, Policy, PolicyKind};

pub struct Notifier {
    policy: Policy,
    hold: Option<Ns>,
}

impl Notifier {
    /// # Errors
    /// As for [`Policy::new`].
    pub fn new(kind: PolicyKind) -> Result<Notifier, BadPolicy> {
        Ok(Notifier {
            policy: Policy::new(kind)?,
            hold: None,
        })
    }

    /// True: notify now.
    pub fn on(&mut self, event: Event, now: Ns) -> bool {
        let action = self.policy.on(event, now);
        self.hold = match action {
            Action::Hold { until } => Some(until),
            // What was promised to those held back stands, should the next entry be delayed.
            Action::More => self.hold,
            Action::Notify | Action::Rest => None,
        };
        action == Action::Notify
    }

    /// What a notification cost: the policy learns, and nothing is decided.
    pub fn learn(&mut self, cost: Ns, woke: bool) {
        self.policy.on(Event::Notified { cost, woke }, Ns(0));
    }

    /// As [`Policy::flush`].
    pub fn flush(&mut self, peer: Peer, now: Ns) -> bool {
        self.hold = None;
        self.policy.flush(peer, now)
    }

    /// When [`Event::Due`] has to come, if nothing else comes before.
    pub fn hold(&self) -> Option<Ns> {
        self.hold
    }

    pub fn due(&self, now: Ns) -> bool {
        self.hold.is_some_and(|until| until <= now)
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}
