//! Counts of each used-buffer notification policy of a queue.
use super::queue_state::ByPolicy;
use crate::Ns;
use crate::observe::Times;
use crate::policy::{PolicyCounts, PolicyKind};
use crate::shadow::Shadows;

/// Policies of one queue whose counts are kept; each takes 30 kB.
pub(super) const POLICIES_MAX: usize = 16;

/// What was kept of a queue, over all its rings.
#[derive(Default)]
pub(super) struct KeptPolicies {
    pub(super) policies: Vec<ByPolicy>,
    /// While no ring is live; else they are with it.
    pub(super) shadows: Option<Box<Shadows>>,
    pub(super) shadows_since: Ns,
    /// A split ring was served: how full it was could be seen.
    pub(super) split: bool,
}

pub(super) fn keep(
    policies: &mut Vec<ByPolicy>,
    policy: PolicyKind,
    counts: &PolicyCounts,
    hold: &Times,
) {
    let found = policies.iter().position(|one| one.policy == policy);
    let n = found.unwrap_or_else(|| {
        policies.push(ByPolicy {
            policy,
            counts: PolicyCounts::default(),
            hold: Times::default(),
        });
        policies.len() - 1
    });
    policies[n].counts.add(counts);
    policies[n].hold.add(hold);
}
