//! Call paths, aggregated. Bounded: what would exceed the bounds is kept by function only, and
//! counted as such.
use crate::Index;
use crate::pair::{Call, Enter, Mark};
use hopscope_event::FunctionId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const NODES_MAX: usize = 1 << 18;
const DEPTH_MAX: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIx(pub u32);

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parent {
    /// No measured caller.
    Root,
    /// Callers unknown: records before the call were lost.
    AfterGap,
    /// Beyond the bounds of the tree: all such calls of the function, whatever their path.
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
    pub ticks: i128,
    pub self_ticks: i128,
    pub callees: u64,
    pub descendants: u128,
    pub max_ticks: i64,
    /// Entries that came by a jump from the end of another function at the same depth, and that
    /// function when it was always the same.
    pub tail_called: u64,
    pub tail_from: Option<FunctionId>,
    tail_from_several: bool,
    depth: u32,
}

/// What each entry touches, in half a cache line.
#[derive(Debug, Clone, Copy)]
struct Hot {
    /// The callee entered last: loops call the same function again and again.
    latest_function: FunctionId,
    latest: u32,
    entries: u64,
    recursive: bool,
    within_module: bool,
    beyond: bool,
}

impl Node {
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
}

const ROOT: u32 = u32::MAX;
const AFTER_GAP: u32 = u32::MAX - 1;
const BEYOND: u32 = u32::MAX - 2;

impl Tree {
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.0 as usize]
    }

    /// Calls that are kept by function only because their path exceeded the bounds.
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
        if counted && let Some(tail_of) = enter.tail_of {
            self.tail_called(ix, self.nodes[tail_of.node as usize].function);
        }
        let hot = &mut self.hot[ix as usize];
        hot.entries += u64::from(counted);
        if !hot.beyond {
            return Mark {
                node: ix,
                recursive: hot.recursive,
                within_module: hot.within_module,
            };
        }
        // No path to read it from: look at the open calls themselves.
        let module = index.module(enter.function);
        let mut outward = enter.open.iter().rev();
        Mark {
            node: ix,
            recursive: outward.clone().any(|f| f.function == enter.function),
            within_module: outward.any(|f| index.module(f.function) == module),
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
        if parent != BEYOND && (too_deep || self.nodes.len() >= NODES_MAX) {
            return self.child(BEYOND, function, index);
        }
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
        let ix = self.nodes.len() as u32;
        self.nodes.push(Node {
            function,
            parent: match parent {
                ROOT => Parent::Root,
                AFTER_GAP => Parent::AfterGap,
                BEYOND => Parent::Beyond,
                node => Parent::Node(NodeIx(node)),
            },
            entries: 0,
            calls: 0,
            ticks: 0,
            self_ticks: 0,
            callees: 0,
            descendants: 0,
            max_ticks: i64::MIN,
            tail_called: 0,
            tail_from: None,
            tail_from_several: false,
            depth: caller.map_or(0, |c| c.depth + 1),
        });
        self.hot.push(Hot {
            latest_function: FunctionId(0),
            latest: ROOT,
            entries: 0,
            recursive,
            within_module,
            beyond: parent == BEYOND,
        });
        self.children.insert(key(parent, function), ix);
        ix
    }

    /// Brings the entries to where they are read.
    pub(crate) fn settle(&mut self) {
        for (node, hot) in self.nodes.iter_mut().zip(&mut self.hot) {
            node.entries += std::mem::take(&mut hot.entries);
        }
    }

    #[inline]
    pub(crate) fn call(&mut self, call: &Call) {
        let node = &mut self.nodes[call.mark.node as usize];
        node.calls += 1;
        node.ticks += i128::from(call.inclusive);
        node.self_ticks += i128::from(call.inclusive - call.callee_ticks);
        node.callees += call.callees;
        node.descendants += u128::from(call.descendants);
        node.max_ticks = node.max_ticks.max(call.inclusive);
    }
}

fn key(parent: u32, function: FunctionId) -> u64 {
    u64::from(parent) << 32 | u64::from(function.0)
}
