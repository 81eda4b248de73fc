//! Instructions of others that control passes on the way from a place to the same call of it.
use super::flow::Body;
use super::places::{Place, has};
use std::collections::BTreeSet;

/// Instructions that are connected.
const DETOUR_AT_MOST: usize = 16;

impl Body<'_> {
    /// All ways into them come from the place, all ways out lead back to it, and none to where another call begins.
    pub(super) fn take_detours(&self, places: &[Place], n: usize) -> BTreeSet<usize> {
        let place = &places[n];
        let mut taken = BTreeSet::new();
        for at in place.runs.iter().flat_map(Clone::clone) {
            for to in self.ways.out[at].iter().flatten() {
                if !has(&place.runs, *to) && !taken.contains(to) {
                    taken.extend(self.detour(places, n, *to).unwrap_or_default());
                }
            }
        }
        taken
    }

    fn detour(&self, places: &[Place], n: usize, first: usize) -> Option<BTreeSet<usize>> {
        let place = &places[n];
        let mut found = BTreeSet::from([first]);
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            let ends = self.ways.from_outside[at]
                || self.calls[at]
                || found.len() > DETOUR_AT_MOST
                || self.is_of_another(places, n, at..at + 1);
            if ends {
                return None;
            }
            let out = self.ways.out[at].iter();
            if out
                .clone()
                .any(|to| to.is_none_or(|to| place.begins.contains(&to)))
            {
                return None;
            }
            let beside = out.flatten().chain(&self.ways.into[at]);
            for beside in beside.filter(|at| !has(&place.runs, **at)) {
                if found.insert(*beside) {
                    open.push(*beside);
                }
            }
        }
        Some(found)
    }
}
