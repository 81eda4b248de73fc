//! Which function a run begins with, when the user does not say.
//!
//! Looked at is the begin of the recording. The outermost function that is called again and again
//! and in or beneath which packets' counts or numbers were captured is the root. Without such
//! captures it is, of those that call measured functions, the one that runs most often with most time
//! (the product of both): a rare command that walks a table makes many calls and takes long, and is
//! not the data path. Where nothing encloses the others, the polling loop that calls them is not
//! measured; a pass then begins with the function before which the longest pause lies, in which the
//! loop polls. A pause that is not clearly the longest is no reason: then nothing is suggested.
use crate::analysis::Thread;
use crate::balance::{Fate, Orphan};
use crate::batch::Batch;
use crate::pair::{Call, Enter, Mark, Sink};
use crate::run::{Root, RootChoice};
use crate::tree::{Node, NodeIx, Parent, Tree};
use crate::{Index, Window};
use hopscope_event::{FunctionId, ThreadIx};
use std::collections::{BTreeMap, HashMap};
use thiserror::Error;

/// Records examined: enough for thousands of passes.
pub const SEARCHED_RECORDS: u64 = 1 << 20;

/// The pause before a pass is so many times the next longest, at least.
const CLEARLY: i128 = 2;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum RootError {
    #[error("the recording holds no call")]
    NoCalls,
    #[error("no function encloses the others, and none is preceded by a clearly longer pause")]
    /// Functions that a pass could begin with, the likeliest first.
    Ambiguous(Vec<FunctionId>),
}

impl RootError {
    pub fn candidates(&self) -> &[FunctionId] {
        match self {
            RootError::NoCalls => &[],
            RootError::Ambiguous(functions) => functions,
        }
    }
}

#[derive(Debug)]
pub struct RootSearch {
    threads: HashMap<ThreadIx, Thread>,
    seen: Seen,
    records: u64,
    packets_in: Vec<FunctionId>,
}

#[derive(Debug)]
struct Seen {
    index: Index,
    window: Window,
    tree: Tree,
    /// Of each node: the sum of the pauses since the caller's last call ended, and their number.
    pauses: Vec<(i128, u64)>,
    /// Latest end of a call by thread and caller.
    ends: BTreeMap<(ThreadIx, Parent), u64>,
    thread: ThreadIx,
}

impl RootSearch {
    pub fn new(index: Index, window: Window) -> RootSearch {
        RootSearch {
            threads: HashMap::new(),
            seen: Seen {
                index,
                window,
                tree: Tree::default(),
                pauses: Vec::new(),
                ends: BTreeMap::new(),
                thread: ThreadIx(0),
            },
            records: 0,
            packets_in: Vec::new(),
        }
    }

    /// Functions in which packets' counts or numbers were captured.
    pub fn packets_in(mut self, functions: Vec<FunctionId>) -> RootSearch {
        self.packets_in = functions;
        self
    }

    /// Takes the next records; false when enough were seen.
    pub fn feed(&mut self, batch: &Batch<'_>) -> bool {
        let thread = self.threads.entry(batch.thread).or_default();
        self.seen.thread = batch.thread;
        let gap = thread.continues(batch);
        thread.pairer.gap(gap, &mut self.seen);
        thread.pairer.feed_batch(batch, &mut self.seen);
        self.records += batch.records.len() as u64;
        self.records < SEARCHED_RECORDS
    }

    /// What the polling loop calls first in a pass.
    ///
    /// # Errors
    /// As for [`RootSearch::suggest`].
    pub fn suggest_loop(mut self) -> Result<Root, RootError> {
        self.seen.tree.settle();
        let threads = self.threads.len() as u64;
        let mut level = self.seen.level(Parent::Root);
        while let [only] = level[..]
            && self.seen.tree.node(only).entries <= threads
        {
            level = self.seen.level(Parent::Node(only));
        }
        match level.is_empty() {
            true => Err(RootError::NoCalls),
            false => self.seen.first_of_loop(&level),
        }
    }

    /// # Errors
    /// When there is nothing to begin a run with, or nothing speaks for one function more than for
    /// others.
    pub fn suggest(mut self) -> Result<Root, RootError> {
        self.seen.tree.settle();
        let threads = self.threads.len() as u64;
        let beneath = self.seen.beneath(|node| node.entries);
        let level = self.seen.repeated(Parent::Root, threads, &beneath);
        if level.is_empty() {
            return Err(RootError::NoCalls);
        }
        if let Some(root) = self.seen.of_packets(&level, &self.packets_in, &beneath) {
            return Ok(root);
        }
        let ticks = self.seen.ticks();
        let enclosing = level.iter().filter(|n| beneath[n.0 as usize] > 0);
        let enclosing: Vec<NodeIx> = enclosing.copied().collect();
        let entries = |n: &NodeIx| self.seen.tree.node(*n).entries;
        let time = |n: &NodeIx| ticks[n.0 as usize].max(1) as f64;
        let weight = |n: &NodeIx| entries(n) as f64 * time(n);
        let all: f64 = enclosing.iter().map(weight).sum();
        let best = enclosing
            .iter()
            .max_by(|a, b| weight(a).total_cmp(&weight(b)))
            .filter(|best| weight(best) * 2.0 >= all);
        let Some(best) = best else {
            return self.seen.first_of_loop(&level);
        };
        let share = time(best) / enclosing.iter().map(time).sum::<f64>();
        Ok(Root {
            choice: RootChoice::Function(self.seen.tree.node(*best).function),
            suggested_because: Some(format!(
                "of what calls measured functions it runs most often with most time: {} calls, {:.1} % of \
                 the time",
                entries(best),
                share * 100.0
            )),
        })
    }
}

impl Seen {
    fn level(&self, parent: Parent) -> Vec<NodeIx> {
        let nodes = self.tree.nodes().iter().enumerate();
        let of = nodes.filter(|(_, n)| n.parent == parent && n.entries > 0);
        of.map(|(ix, _)| NodeIx(ix as u32)).collect()
    }

    /// Beneath this place: what is entered once a thread (a main loop, an initialization) gives way to
    /// what it calls.
    fn repeated(&self, place: Parent, threads: u64, beneath: &[u64]) -> Vec<NodeIx> {
        let mut found = Vec::new();
        let mut open = self.level(place);
        while let Some(ix) = open.pop() {
            let node = self.tree.node(ix);
            let once = node.entries <= threads || node.calls == 0;
            match once && beneath[ix.0 as usize] > 0 {
                true => open.extend(self.level(Parent::Node(ix))),
                false => found.push(ix),
            }
        }
        found.sort_unstable();
        found
    }

    /// The sum of `what` over all nodes beneath each, at any depth.
    fn beneath(&self, what: impl Fn(&Node) -> u64) -> Vec<u64> {
        let nodes = self.tree.nodes();
        let mut beneath = vec![0; nodes.len()];
        // Callees come after their caller.
        for (ix, node) in nodes.iter().enumerate().rev() {
            if let Parent::Node(parent) = node.parent {
                beneath[parent.0 as usize] += beneath[ix] + what(node);
            }
        }
        beneath
    }

    /// Ticks of each node; of one that was not left yet, those of what it called.
    fn ticks(&self) -> Vec<i128> {
        let nodes = self.tree.nodes();
        let mut of_callees = vec![0; nodes.len()];
        let mut ticks = vec![0; nodes.len()];
        for (ix, node) in nodes.iter().enumerate().rev() {
            ticks[ix] = node.ticks.max(of_callees[ix]);
            if let Parent::Node(parent) = node.parent {
                of_callees[parent.0 as usize] += ticks[ix];
            }
        }
        ticks
    }

    /// The function that encloses most calls with captured counts or numbers of packets. One that only
    /// receives them, and is called by a loop as often as what handles them, does not.
    fn of_packets(
        &self,
        level: &[NodeIx],
        packets: &[FunctionId],
        beneath: &[u64],
    ) -> Option<Root> {
        let captured = |node: &Node| match packets.contains(&node.function) {
            true => node.entries,
            false => 0,
        };
        let inner = self.beneath(captured);
        let of = |n: &NodeIx| captured(self.tree.node(*n)) + inner[n.0 as usize];
        let all: u64 = level.iter().map(of).sum();
        let best = *level.iter().max_by_key(|n| of(n))?;
        if all == 0 || of(&best) * 2 < all {
            return None;
        }
        let entries = self.tree.node(best).entries;
        let as_often = |n: &&NodeIx| **n != best && self.tree.node(**n).entries * 2 > entries;
        if beneath[best.0 as usize] == 0 && level.iter().any(|n| as_often(&n)) {
            return None;
        }
        Some(Root {
            choice: RootChoice::Function(self.tree.node(best).function),
            suggested_because: Some(format!(
                "packets' counts or numbers are captured in it, or in what it calls: {entries} calls of it"
            )),
        })
    }

    fn first_of_loop(&self, level: &[NodeIx]) -> Result<Root, RootError> {
        let nodes = level.iter().map(|ix| (*ix, self.tree.node(*ix)));
        if let [only] = level {
            return Ok(Root {
                choice: RootChoice::Function(self.tree.node(*only).function),
                suggested_because: Some("no other function was called".to_owned()),
            });
        }
        let most = nodes.clone().map(|(_, n)| n.entries).max().unwrap_or(0);
        // What is called far more rarely belongs to some passes only.
        let often = nodes.filter(|(_, n)| n.entries * 2 > most);
        let mut pauses: Vec<_> = often
            .map(|(ix, n)| {
                let (ticks, count) = self.pauses.get(ix.0 as usize).copied().unwrap_or_default();
                (ticks / i128::from(count.max(1)), n.function)
            })
            .collect();
        pauses.sort_by_key(|(ticks, function)| (std::cmp::Reverse(*ticks), *function));
        match pauses[..] {
            [(longest, first), (next, _), ..] if longest > 0 && longest >= next * CLEARLY => {
                Ok(Root {
                    choice: RootChoice::PollingLoop(first),
                    suggested_because: Some(format!(
                        "no function encloses the others, and the pause before it is the longest: \
                         {longest} ticks on average, then {next}"
                    )),
                })
            }
            _ => Err(RootError::Ambiguous(
                pauses.into_iter().map(|(_, function)| function).collect(),
            )),
        }
    }
}

impl Sink for Seen {
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        let counted = self.window.contains(enter.tsc);
        let mark = self.tree.enter(&enter, &self.index, counted);
        let at = mark.node as usize;
        if self.pauses.len() <= at {
            self.pauses.resize(at + 1, (0, 0));
        }
        let parent = self.tree.node(NodeIx(mark.node)).parent;
        if let Some(end) = self.ends.get(&(self.thread, parent))
            && counted
        {
            self.pauses[at].0 += i128::from(enter.tsc) - i128::from(*end);
            self.pauses[at].1 += 1;
        }
        mark
    }

    fn call(&mut self, call: &Call) {
        if call.inclusive < 0 {
            return;
        }
        if self.window.contains(call.entry) {
            self.tree.call(call);
        }
        let parent = self.tree.node(NodeIx(call.mark.node)).parent;
        let end = call.entry.wrapping_add_signed(call.inclusive);
        self.ends.insert((self.thread, parent), end);
    }

    fn fate(&mut self, _: FunctionId, _: Mark, _: u64, _: Fate) {}
    fn orphan(&mut self, _: FunctionId, _: u64, _: Orphan) {}

    fn known(&self, function: FunctionId) -> bool {
        self.index.module(function).is_some()
    }
}
