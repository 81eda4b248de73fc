//! Instructions that come from no line of the source, as copies between registers at the begin of a block: the debugging
//! information leaves them out of a function's, although control goes through them amid its loops.
use super::flow::Body;
use super::places::{Place, has};
use std::collections::HashSet;

/// Between one of its own and what is taken.
const AWAY_AT_MOST: usize = 16;

impl Body<'_> {
    /// Those that lead nowhere but to the place are its own.
    pub(super) fn take_nobodys(&self, places: &[Place], n: usize) -> Vec<usize> {
        let runs = &places[n].runs;
        let mut taken = HashSet::new();
        let mut open: Vec<(usize, usize)> = runs
            .iter()
            .flat_map(Clone::clone)
            .map(|at| (at, 0))
            .collect();
        while let Some((at, away)) = open.pop() {
            for before in &self.ways.into[at] {
                let is_its = |at: usize| has(runs, at) || taken.contains(&at);
                let leads_here = || {
                    let mut out = self.ways.out[*before].iter();
                    out.all(|to| to.is_some_and(is_its))
                };
                let is_taken = away < AWAY_AT_MOST
                    && !is_its(*before)
                    && self.lines.is_nobodys(self.insns[*before].svma)
                    && !self.calls[*before]
                    && leads_here()
                    && !self.is_of_another(places, n, *before..*before + 1);
                if is_taken {
                    taken.insert(*before);
                    open.push((*before, away + 1));
                }
            }
        }
        taken.into_iter().collect()
    }
}
