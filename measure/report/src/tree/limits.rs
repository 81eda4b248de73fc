//! Which paths are shown, when not all are: the ones with most time, and each with its callers.
use super::{Children, own};
use hopscope_analyze::{AnalysisResult, Correction, Node, NodeIx, tree::Parent};
use std::collections::BinaryHeap;

/// Bounds of what is shown of the call tree; what is not is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathLimits {
    /// Levels; 1 is the outermost calls alone.
    pub depth: Option<usize>,
    /// Parts in a million of all time that a path must have.
    pub min_share_ppm: u32,
    /// Paths; those with most time.
    pub number: Option<usize>,
}

/// Paths that are not shown, beneath one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) paths: u64,
    /// Of those right beneath the place, and own time and calls of all.
    pub(crate) total: i128,
    pub(crate) own: i128,
    pub(crate) calls: u64,
}

pub(crate) struct Shown {
    /// By node.
    is: Vec<bool>,
    totals: Vec<i128>,
}

/// Calls have no known end, or were dropped and may lie within others of their row.
fn is_at_least(node: &Node) -> bool {
    node.calls < node.entries || node.lacks_time
}

/// What each node's calls took, at least. Of calls without a known end (open, or cut by a loss) only
/// what they called is known.
pub(super) fn totals(outcome: &AnalysisResult, children: &Children) -> Vec<i128> {
    let correction = outcome.correction.as_ref();
    let nodes = outcome.tree.nodes();
    let mut totals: Vec<i128> = nodes.iter().map(|n| super::total(n, correction)).collect();
    // Callers before callees, so that the way back meets callees first.
    let mut order: Vec<NodeIx> = children.get(&Parent::Root).cloned().unwrap_or_default();
    for place in [Parent::AfterGap, Parent::Beyond] {
        order.extend(children.get(&place).into_iter().flatten());
    }
    let mut at = 0;
    while at < order.len() {
        order.extend(children.get(&Parent::Node(order[at])).into_iter().flatten());
        at += 1;
    }
    for ix in order.into_iter().rev() {
        let node = &nodes[ix.0 as usize];
        if is_at_least(node) {
            let callees = children.get(&Parent::Node(ix)).into_iter().flatten();
            let callees: i128 = callees.map(|c| totals[c.0 as usize]).sum();
            let known = own(node, correction) + callees;
            totals[ix.0 as usize] = totals[ix.0 as usize].max(known);
        }
    }
    totals
}

impl Shown {
    pub(crate) fn of(outcome: &AnalysisResult, children: &Children, limits: PathLimits) -> Shown {
        let totals = totals(outcome, children);
        let total = |ix: NodeIx| totals[ix.0 as usize];
        let roots = [Parent::Root, Parent::AfterGap, Parent::Beyond];
        let list = |place: Parent| children.get(&place).into_iter().flatten().copied();
        let roots: Vec<NodeIx> = roots.into_iter().flat_map(list).collect();
        // Own times: totals of calls beyond the bounds are in those of their callers, too.
        let nodes = outcome.tree.nodes().iter();
        let whole: i128 = nodes.map(|n| own(n, outcome.correction.as_ref())).sum();
        let least = i128::from(limits.min_share_ppm);
        // A time may be negative after correction.
        let enough = |ix: NodeIx| least == 0 || total(ix) * 1_000_000 >= whole * least;
        let deepest = limits.depth.unwrap_or(usize::MAX);
        let mut is = vec![false; totals.len()];
        let mut left = limits.number.unwrap_or(usize::MAX);
        // The largest of those whose callers are shown, again and again.
        let place = |ix: NodeIx, depth| (total(ix), std::cmp::Reverse(ix), depth);
        let mut next: BinaryHeap<_> = roots.into_iter().map(|ix| place(ix, 1usize)).collect();
        while let Some((_, std::cmp::Reverse(ix), depth)) = next.pop() {
            if left == 0 {
                break;
            }
            if depth > deepest || !enough(ix) {
                continue;
            }
            left -= 1;
            is[ix.0 as usize] = true;
            next.extend(list(Parent::Node(ix)).map(|callee| place(callee, depth + 1)));
        }
        Shown { is, totals }
    }

    pub(crate) fn is(&self, ix: NodeIx) -> bool {
        self.is[ix.0 as usize]
    }

    pub(crate) fn total(&self, ix: NodeIx) -> i128 {
        self.totals[ix.0 as usize]
    }

    /// True when `total` is only known to be at least that.
    pub(crate) fn at_least(&self, node: &Node) -> bool {
        is_at_least(node)
    }

    pub(crate) fn count(&self) -> u64 {
        self.is.iter().filter(|is| **is).count() as u64
    }

    /// What is not shown beneath a place that is.
    pub(crate) fn hidden(
        &self,
        outcome: &AnalysisResult,
        children: &Children,
        place: Parent,
        correction: Option<&Correction>,
    ) -> Option<Hidden> {
        let list = |place: Parent| children.get(&place).into_iter().flatten().copied();
        let mut open: Vec<NodeIx> = list(place).filter(|ix| !self.is(*ix)).collect();
        let mut hidden = Hidden {
            total: open.iter().map(|ix| self.total(*ix)).sum(),
            ..Hidden::default()
        };
        while let Some(ix) = open.pop() {
            let node = outcome.tree.node(ix);
            hidden.paths += 1;
            hidden.own += own(node, correction);
            hidden.calls += node.calls;
            open.extend(list(Parent::Node(ix)));
        }
        if place == Parent::Beyond {
            hidden.total = hidden.own;
        }
        (hidden.paths > 0).then_some(hidden)
    }
}
