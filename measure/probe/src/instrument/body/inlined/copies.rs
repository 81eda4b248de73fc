//! Where the compiler made copies of a place (unrolled loops), the debugging information has one place, and where its first
//! copy begins. Copies have the same instructions of the same places in the source.
use super::flow::Body;
use super::key::Key;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Instructions of others between two of its own that count as its own.
pub(super) const GAP_AT_MOST: usize = 8;

/// Of a place.
#[derive(Default)]
pub(super) struct Copies {
    /// One instruction of each: the first of those of which there are most.
    pub(super) marks: Vec<usize>,
    /// In what lies before how many copies each instruction of others is.
    before: HashMap<Key, usize>,
}

impl Copies {
    pub(super) fn of(body: &Body, runs: &[Range<usize>]) -> Copies {
        let all = runs.iter().flat_map(Clone::clone);
        let keys: Vec<(usize, Key)> = all.filter_map(|at| Some((at, body.key(at)?))).collect();
        let counts = counted(keys.iter().map(|(_, key)| *key));
        let copied = keys.iter().filter(|(_, key)| counts[key] > 1).count();
        // Who copies one of the instructions copies the others.
        if 2 * copied <= keys.len() {
            return Copies::default();
        }
        let most = keys.iter().rev().max_by_key(|(_, key)| counts[key]);
        let Some((_, most)) = most else {
            return Copies::default();
        };
        let marks = keys.iter().filter(|(_, key)| key == most);
        let marks: Vec<usize> = marks.map(|(at, _)| *at).collect();
        let mut around: Vec<&Range<usize>> = Vec::new();
        around.extend(
            marks
                .iter()
                .filter_map(|at| runs.iter().find(|run| run.contains(at))),
        );
        around.dedup();
        let before = around.iter().flat_map(|run| {
            let end = runs[..].partition_point(|r| r.end < run.start);
            let own = end.checked_sub(1).map_or(0, |n| runs[n].end);
            let first = own.max(run.start.saturating_sub(GAP_AT_MOST));
            let keys: HashSet<Key> = (first..run.start).filter_map(|at| body.key(at)).collect();
            keys
        });
        let before = counted(before);
        Copies { marks, before }
    }

    /// What follows a gap is another call: a copy begins in it, and the surrounding code in the gap was copied, too.
    pub(super) fn divide(&self, body: &Body, gap: &Range<usize>, behind: &Range<usize>) -> bool {
        let is_copied = |key: Key| self.before.get(&key).is_some_and(|count| *count > 1);
        let mut keys = gap.clone().filter_map(|at| body.key(at));
        self.marks.iter().any(|at| behind.contains(at)) && keys.any(is_copied)
    }
}

fn counted(keys: impl Iterator<Item = Key>) -> HashMap<Key, usize> {
    let mut counts = HashMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

impl Body<'_> {
    fn key(&self, at: usize) -> Option<Key> {
        // Once for all places, which lie within each other.
        let all = || (0..self.insns.len()).map(|at| self.key_of(at)).collect();
        self.keys.get_or_init(all)[at]
    }

    fn key_of(&self, at: usize) -> Option<Key> {
        let from = self.lines.at(self.insns[at].svma)?;
        Some(Key::of(from, &self.decoded(at)?))
    }
}
