//! Call paths, aggregated. Bounded: what would exceed the bounds is kept by function only, and
//! counted as such. Where a tree may drop, the paths with the least time go then, leaves first, so that a
//! path that comes late is not worse off than one that came early.
use crate::Index;
use crate::correct::{Corrected, Correction};
use crate::mark::Mark;
use crate::measured::Measured;
use crate::sink::{Call, Enter};
use crate::stacks::Frame;
use hopscope_event::FunctionId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

const NODES_MAX: usize = 1 << 18;
const DEPTH_MAX: u32 = 1024;
/// When the tree is full so many are dropped at once.
const DROPPED_PART: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIx(pub u32);

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parent {
    /// No measured caller.
    Root,
    /// Callers unknown: records before the call were lost.
    AfterGap,
    /// Beyond the bounds of the tree, or dropped from it: all such calls of the function, whatever their
    /// path.
    Beyond,
    Node(NodeIx),
}

/// All calls with the same path. Ticks as measured.
#[derive(Debug, Clone)]
pub struct Node {
    pub function: FunctionId,
    pub parent: Parent,
    pub entries: u64,
    /// Paired and timed.
    pub calls: u64,
    /// Of these: those that `ticks` and `descendants` count. Fewer only of [`Parent::Beyond`], where a call may
    /// lie within another of the same row, whose time has it already.
    pub outer_calls: u64,
    /// Of both: their entry has the stamp of the exit before it.
    fused: [u64; 2],
    pub ticks: i128,
    pub self_ticks: i128,
    pub callees: Measured,
    pub descendants: Measured,
    /// Dropped paths whose time is not in `ticks`: it was, or may be, part of that of other calls of the row.
    pub lacks_time: bool,
    pub max_ticks: i64,
    /// Entries that came by a jump from the end of another function at the same depth, and that
    /// function when it was always the same.
    pub tail_called: u64,
    pub tail_from: Option<FunctionId>,
    tail_from_several: bool,
    depth: u32,
}

/// What each entry touches.
#[derive(Debug, Clone, Copy)]
struct Hot {
    /// The callee entered last: loops call the same function again and again.
    latest_function: FunctionId,
    latest: u32,
    entries: u64,
    /// Calls that have begun and not ended.
    open: u32,
    callees: u32,
    recursive: bool,
    within_module: bool,
    beyond: bool,
    /// Calls within one of this node are counted in their function's row beyond the bounds.
    has_calls_beyond: bool,
}

impl Node {
    /// `counted`: another call has its time, or it has that of calls that are counted already.
    fn take_in(&mut self, other: &Node, counted: bool) {
        self.calls += other.calls;
        self.fused[0] += other.fused[0];
        self.lacks_time |= counted || other.lacks_time;
        if !counted {
            self.outer_calls += other.outer_calls;
            self.fused[1] += other.fused[1];
            self.ticks += other.ticks;
            self.descendants += other.descendants;
        }
        self.self_ticks += other.self_ticks;
        self.callees += other.callees;
        self.max_ticks = self.max_ticks.max(other.max_ticks);
        self.tail_called += other.tail_called;
        self.tail_from_several |= other.tail_from_several
            || self
                .tail_from
                .is_some_and(|f| other.tail_from.is_some_and(|o| o != f));
        self.tail_from = self.tail_from.or(other.tail_from);
    }

    /// With the cost of probes taken out.
    pub fn corrected_total(&self, correction: &Correction) -> Corrected {
        let calls = Measured {
            calls: self.outer_calls,
            fused: self.fused[1],
        };
        correction.inclusive_sum(self.ticks, calls, self.descendants)
    }

    pub fn corrected_own(&self, correction: &Correction) -> Corrected {
        let calls = Measured {
            calls: self.calls,
            fused: self.fused[0],
        };
        correction.own_sum(self.self_ticks, calls, self.callees)
    }

    pub fn tail_from_several(&self) -> bool {
        self.tail_from_several
    }
}

/// Multiplicative hashing of one small key; the standard hasher costs more than the pairing.
#[derive(Debug, Default)]
pub(crate) struct PathHasher(u64);

impl Hasher for PathHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    hot: Vec<Hot>,
    children: HashMap<u64, u32, BuildHasherDefault<PathHasher>>,
    /// Most nodes, without those beyond the bounds; 0 is [`NODES_MAX`], of which none is dropped.
    nodes_max: usize,
    /// Places of dropped nodes.
    free: Vec<u32>,
    beyond_nodes: usize,
    dropped_paths: u64,
}

const ROOT: u32 = u32::MAX;
const AFTER_GAP: u32 = u32::MAX - 1;
const BEYOND: u32 = u32::MAX - 2;

impl Tree {
    /// One that drops paths when it is full. Each entered call is to be told to [`Tree::left`].
    pub(crate) fn dropping() -> Tree {
        Tree::with_bound(NODES_MAX)
    }

    fn with_bound(nodes_max: usize) -> Tree {
        Tree {
            nodes_max,
            ..Tree::default()
        }
    }

    /// Paths that were dropped when the tree was full; one that came again counts again.
    pub fn dropped_paths(&self) -> u64 {
        self.dropped_paths
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.0 as usize]
    }

    /// Calls that are kept by function only: their path exceeded the bounds or was dropped.
    pub fn beyond(&self) -> u64 {
        let beyond = self.nodes.iter().filter(|n| n.parent == Parent::Beyond);
        beyond.map(|n| n.entries).sum()
    }

    #[inline]
    pub(crate) fn enter(&mut self, enter: &Enter<'_>, index: &Index, counted: bool) -> Mark {
        let parent = match enter.open.last() {
            Some(caller) => caller.mark.node,
            None if enter.after_gap => AFTER_GAP,
            None => ROOT,
        };
        let ix = self.child(parent, enter.function, index);
        if counted && let Some(from) = enter.tail_from {
            self.tail_called(ix, from);
        }
        let hot = &mut self.hot[ix as usize];
        hot.open += 1;
        hot.entries += u64::from(counted);
        if !hot.beyond {
            return Mark {
                node: ix,
                recursive: hot.recursive,
                within_module: hot.within_module,
                within_own_node: false,
            };
        }
        // No path to read it from: look at the open calls themselves.
        let module = index.module(enter.function);
        let mut open = enter.open.iter();
        let same = |f: &&Frame| f.function == enter.function;
        let within_own_node = open.clone().rev().find(same).map(|f| f.mark.node) == Some(ix);
        let outermost = open.clone().find(same).map(|f| f.mark.node);
        if let Some(kept) = outermost.filter(|kept| *kept != ix)
            && let Some(hot) = self.hot.get_mut(kept as usize)
        {
            hot.has_calls_beyond = true;
        }
        Mark {
            node: ix,
            recursive: outermost.is_some(),
            within_module: open.any(|f| index.module(f.function) == module),
            within_own_node,
        }
    }

    #[inline]
    fn child(&mut self, parent: u32, function: FunctionId, index: &Index) -> u32 {
        if let Some(hot) = self.hot.get(parent as usize)
            && hot.latest_function == function
            && hot.latest != ROOT
        {
            return hot.latest;
        }
        let ix = match self.children.get(&key(parent, function)) {
            Some(ix) => *ix,
            None => self.grow(parent, function, index),
        };
        if let Some(hot) = self.hot.get_mut(parent as usize) {
            (hot.latest_function, hot.latest) = (function, ix);
        }
        ix
    }

    fn tail_called(&mut self, ix: u32, from: FunctionId) {
        let node = &mut self.nodes[ix as usize];
        node.tail_called += 1;
        node.tail_from_several |= node.tail_from.is_some_and(|f| f != from);
        node.tail_from = Some(from);
    }

    #[cold]
    fn grow(&mut self, parent: u32, function: FunctionId, index: &Index) -> u32 {
        let caller = self.nodes.get(parent as usize);
        let too_deep =
            caller.is_some_and(|c| c.depth + 1 >= DEPTH_MAX || c.parent == Parent::Beyond);
        if parent != BEYOND && (too_deep || self.is_full()) {
            return self.child(BEYOND, function, index);
        }
        let caller = self.nodes.get(parent as usize);
        let (mut recursive, mut within_module) = (false, false);
        let mut outer = parent;
        while let Some(node) = self.nodes.get(outer as usize) {
            recursive |= node.function == function;
            within_module |= index.module(node.function) == index.module(function);
            outer = match node.parent {
                Parent::Node(ix) => ix.0,
                _ => ROOT,
            };
        }
        let depth = caller.map_or(0, |c| c.depth + 1);
        let node = Node {
            function,
            parent: match parent {
                ROOT => Parent::Root,
                AFTER_GAP => Parent::AfterGap,
                BEYOND => Parent::Beyond,
                node => Parent::Node(NodeIx(node)),
            },
            entries: 0,
            calls: 0,
            outer_calls: 0,
            fused: [0; 2],
            ticks: 0,
            self_ticks: 0,
            callees: Measured::NONE,
            descendants: Measured::NONE,
            lacks_time: false,
            max_ticks: i64::MIN,
            tail_called: 0,
            tail_from: None,
            tail_from_several: false,
            depth,
        };
        let hot = Hot {
            latest_function: FunctionId(0),
            latest: ROOT,
            entries: 0,
            open: 0,
            callees: 0,
            recursive,
            within_module,
            beyond: parent == BEYOND,
            has_calls_beyond: false,
        };
        self.beyond_nodes += usize::from(parent == BEYOND);
        if let Some(caller) = self.hot.get_mut(parent as usize) {
            caller.callees += 1;
        }
        let ix = match self.free.pop() {
            Some(ix) => {
                (self.nodes[ix as usize], self.hot[ix as usize]) = (node, hot);
                ix
            }
            None => {
                self.nodes.push(node);
                self.hot.push(hot);
                self.nodes.len() as u32 - 1
            }
        };
        self.children.insert(key(parent, function), ix);
        ix
    }

    fn kept(&self) -> usize {
        self.nodes.len() - self.free.len() - self.beyond_nodes
    }

    /// True when there is no room for another node, and none could be made.
    fn is_full(&mut self) -> bool {
        if self.nodes_max == 0 {
            return self.nodes.len() >= NODES_MAX;
        }
        if self.kept() >= self.nodes_max {
            self.drop_least();
        }
        self.kept() >= self.nodes_max
    }

    /// What a drop is decided by: least time first, then least calls.
    fn weight(&self, ix: u32) -> (i128, u64) {
        let node = &self.nodes[ix as usize];
        (node.ticks, self.hot[ix as usize].entries)
    }

    fn is_leaf(&self, ix: u32) -> bool {
        let hot = &self.hot[ix as usize];
        hot.open == 0 && hot.callees == 0 && !hot.beyond
    }

    fn drop_least(&mut self) {
        let mut is_free = vec![false; self.nodes.len()];
        self.free.iter().for_each(|ix| is_free[*ix as usize] = true);
        let all = 0..self.nodes.len() as u32;
        let leaves = all.filter(|ix| !is_free[*ix as usize] && self.is_leaf(*ix));
        let leaves = leaves.map(|ix| Reverse((self.weight(ix), ix)));
        let mut leaves: BinaryHeap<_> = leaves.collect();
        let keep = self.nodes_max - (self.nodes_max / DROPPED_PART).max(1);
        while self.kept() > keep
            && let Some(Reverse((_, ix))) = leaves.pop()
        {
            if let Parent::Node(caller) = self.drop_leaf(ix)
                && self.is_leaf(caller.0)
            {
                leaves.push(Reverse((self.weight(caller.0), caller.0)));
            }
        }
    }

    /// Its calls are kept by function; gives the caller.
    fn drop_leaf(&mut self, ix: u32) -> Parent {
        let node = self.nodes[ix as usize].clone();
        let Hot {
            entries,
            recursive,
            has_calls_beyond,
            ..
        } = self.hot[ix as usize];
        let from = match node.parent {
            Parent::Node(caller) => {
                let hot = &mut self.hot[caller.0 as usize];
                hot.callees -= 1;
                if hot.latest == ix {
                    hot.latest = ROOT;
                }
                caller.0
            }
            Parent::AfterGap => AFTER_GAP,
            Parent::Root | Parent::Beyond => ROOT,
        };
        self.children.remove(&key(from, node.function));
        let to = match self.children.get(&key(BEYOND, node.function)) {
            Some(to) => *to,
            None => {
                // The module does not matter: nodes beyond the bounds have no path to read it from.
                self.grow(BEYOND, node.function, &Index::new(&[], &[]))
            }
        };
        self.hot[to as usize].entries += entries;
        self.nodes[to as usize].take_in(&node, recursive || has_calls_beyond);
        self.free.push(ix);
        self.dropped_paths += 1;
        node.parent
    }

    /// The call of this mark has ended, one way or other.
    #[inline]
    pub(crate) fn left(&mut self, mark: Mark) {
        if let Some(hot) = self.hot.get_mut(mark.node as usize) {
            hot.open -= 1;
        }
    }

    /// Dropped places go.
    fn close_up(&mut self) {
        let mut is_free = vec![false; self.nodes.len()];
        self.free
            .drain(..)
            .for_each(|ix| is_free[ix as usize] = true);
        let mut to = 0;
        let place: Vec<u32> = is_free
            .iter()
            .map(|free| {
                let place = to;
                to += u32::from(!free);
                place
            })
            .collect();
        let mut at = 0;
        self.nodes.retain_mut(|node| {
            if let Parent::Node(caller) = &mut node.parent {
                caller.0 = place[caller.0 as usize];
            }
            at += 1;
            !is_free[at - 1]
        });
        (self.hot, self.children) = (Vec::new(), HashMap::default());
    }

    /// Brings the entries to where they are read. No call comes any more.
    pub(crate) fn settle(&mut self) {
        for (node, hot) in self.nodes.iter_mut().zip(&mut self.hot) {
            node.entries += std::mem::take(&mut hot.entries);
        }
        if !self.free.is_empty() {
            self.close_up();
        }
    }

    #[inline]
    pub(crate) fn call(&mut self, call: &Call) {
        let node = &mut self.nodes[call.mark.node as usize];
        node.calls += 1;
        node.fused[0] += u64::from(call.fused);
        if !call.mark.within_own_node {
            node.outer_calls += 1;
            node.fused[1] += u64::from(call.fused);
            node.ticks += i128::from(call.inclusive);
            node.descendants += call.descendants;
        }
        node.self_ticks += i128::from(call.inclusive - call.callee_ticks);
        node.callees += call.callees;
        node.max_ticks = node.max_ticks.max(call.inclusive);
    }
}

fn key(parent: u32, function: FunctionId) -> u64 {
    u64::from(parent) << 32 | u64::from(function.0)
}

#[cfg(test)]
mod tests;
