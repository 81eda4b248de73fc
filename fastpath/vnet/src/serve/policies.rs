//! What a queue keeps of itself for whoever asks, and its policy of calls, which can change while it runs.
use super::counts::QueueCounts;
use super::live::{Live, QueueError};
use super::policy_counts::{POLICIES_MAX, keep};
use super::queue::Queue;
use super::queue_state::{QueueState, RingNow, Shadowed};
use crate::Ns;
use crate::end::Unchanged;
use crate::policy::PolicyKind;
use crate::ring::{Memory, RingError};
use crate::shadow::{Shadows, advise};
use hopscope_serving::clock::Clock;

/// In shadow mode beside the active policy.
const SHADOWS: [&str; 8] = [
    "plain",
    "event-idx",
    "tam",
    "batch",
    "batch:64",
    "ahc:50:64",
    "coal:64:20",
    "adaptive",
];

impl Queue {
    /// A ring begins.
    pub(super) fn watched(&mut self) {
        let Some(live) = &mut self.live else { return };
        let ring = live.taken.ring();
        self.kept.split |= !live.taken.packed();
        self.sojourn.begin(live.layout.size);
        live.back.watch.shadows = self.kept.shadows.take();
        if let Some(shadows) = &mut live.back.watch.shadows {
            shadows.asked_by_index(ring.event_idx);
        }
    }

    /// A ring has ended: what its policy did is kept under its name.
    pub(super) fn retire(&mut self, mut live: Live) {
        let counts = *live.back.notifier().policy().counts();
        let watch = &mut live.back.watch;
        keep(&mut self.kept.policies, self.calls, &counts, &watch.hold);
        self.kept.shadows = watch.shadows.take();
    }

    /// Whether another policy could be kept beside those that there were.
    pub(super) fn can_keep(&self, policy: PolicyKind) -> bool {
        let known = &self.kept.policies;
        known.len() < POLICIES_MAX || known.iter().any(|one| one.policy == policy)
    }

    /// Switches the notification policy. Nothing that the previous one held back stays unannounced.
    pub(super) fn call_by(
        &mut self,
        policy: PolicyKind,
        memory: Option<&Memory>,
        clock: Clock,
    ) -> Result<(), QueueError> {
        if policy == self.calls {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.calls, policy);
        if let (Some(live), Some(memory)) = (&mut self.live, memory) {
            let changed = live.back.change(memory, policy, clock.now());
            let (call, counts) = changed.map_err(|error| match error {
                // Its text was parsed by the same rules.
                Unchanged::Policy(_) => RingError::Empty,
                Unchanged::Ring(error) => error,
            })?;
            let hold = &mut live.back.watch.hold;
            keep(&mut self.kept.policies, before, &counts, hold);
            hold.clear();
            if call {
                self.call(clock)?;
            }
        }
        if self.has_shadows() {
            self.cast_shadows(true, clock.now());
        }
        Ok(())
    }

    fn has_shadows(&self) -> bool {
        match &self.live {
            Some(live) => live.back.watch.shadows.is_some(),
            None => self.kept.shadows.is_some(),
        }
    }

    /// Shadows begin anew, or end.
    pub(super) fn cast_shadows(&mut self, wanted: bool, now: Ns) {
        let others = SHADOWS
            .iter()
            .filter_map(|text| text.parse::<PolicyKind>().ok());
        let others = others.filter(|kind| *kind != self.calls);
        let shadows = if wanted {
            Shadows::of(std::iter::once(self.calls).chain(others)).ok()
        } else {
            None
        };
        self.kept.shadows_since = now;
        let mut shadows = shadows.map(Box::new);
        match &mut self.live {
            Some(live) => {
                if let Some(shadows) = &mut shadows {
                    shadows.asked_by_index(live.taken.ring().event_idx);
                }
                live.back.watch.shadows = shadows;
            }
            None => self.kept.shadows = shadows,
        }
    }

    /// Everything up to `now`; advice lets packets wait for `wait` on the average.
    pub(super) fn report(&mut self, now: Ns, wait: Ns) -> QueueCounts {
        let mut counts = self.counts.clone();
        let mut policies = self.kept.policies.clone();
        let (mut ring, mut shadows) = (None, self.kept.shadows.as_mut());
        if let Some(live) = &mut self.live {
            let at_work = *live.back.notifier().policy().counts();
            keep(&mut policies, self.calls, &at_work, &live.back.watch.hold);
            ring = Some(RingNow {
                size: live.layout.size,
                packed: live.taken.packed(),
                event_idx: live.taken.ring().event_idx,
            });
            shadows = live.back.watch.shadows.as_mut();
        }
        for one in &policies {
            counts.call_policy.add(&one.counts);
        }
        let is_sent = self.index % 2 == 1;
        let per = |n: u64| (counts.packets > 0).then(|| n as f64 / counts.packets as f64);
        counts.seen = Some(QueueState {
            policy: self.calls,
            kick_policy: self.kicks,
            ring,
            kicks_per_packet: per(counts.kicks),
            calls_per_packet: per(counts.calls),
            policies,
            sojourn: is_sent.then(|| self.sojourn.times.clone()),
            ring_full: (is_sent && self.kept.split).then_some(self.sojourn.full),
            shadows: shadows.map(|shadows| {
                let would = shadows.would(now);
                let advice = advise(self.calls, &would, wait);
                Shadowed {
                    since: self.kept.shadows_since,
                    did: shadows.did(),
                    said: advice.to_string(),
                    would,
                    advice,
                }
            }),
        });
        counts
    }
}
