//! Entries of the unwind table that have no name and that nothing calls: is it a function, reached
//! through a pointer, or part of the function that jumps to it (`.cold`)?
//!
//! A jump to the middle of another entry joins the two: compilers make none between functions. A
//! jump to the first byte of an entry may be a tail call. So what is joined has one head, and what
//! only one function jumps to belongs to that one. What several functions jump to, at its first byte
//! only, is a function that they tail-call; what is joined to several is nobody's, and jumps to it
//! count as leaving the function, which they do.
use super::branches::BranchTargets;
use super::eh_frame::Fde;
use super::fragments::give;
use super::functions::{Function, NameSource};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Gives what are parts to their functions, which are returned without them. `certain` (ascending)
/// are parts for sure: the unwind table says that they are entered with a frame.
pub fn assign(
    functions: Vec<Function>,
    certain: &[Range<u64>],
    swept: &BranchTargets,
    fdes: &HashMap<u64, &Fde>,
) -> Vec<Function> {
    let mut entries = Entries::of(&functions, certain, swept);
    entries.join(swept.jumps());
    let owners = entries.owners(swept.jumps());
    let ranges: Vec<Range<u64>> = functions
        .iter()
        .map(|f| f.svma..f.svma.saturating_add(f.size))
        .chain(certain.iter().cloned())
        .collect();
    let mut slots: Vec<Option<Function>> = functions.into_iter().map(Some).collect();
    slots.resize_with(ranges.len(), || None);
    for (node, range) in ranges.into_iter().enumerate() {
        let Some(owner) = owners[node] else { continue };
        if owner != Owner::Function(node) {
            slots[node] = None;
        }
        if let Owner::Function(of) = owner
            && of != node
            && let Some(function) = &mut slots[of]
        {
            give(function, range, fdes);
        }
    }
    slots.into_iter().flatten().collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// By number, its own for a function.
    Function(usize),
    Nobody,
}

/// Functions first, then certain parts, by number.
struct Entries {
    starts: Vec<u64>,
    functions: usize,
    /// Whether it may be a part.
    open: Vec<bool>,
    /// Ascending: start, end, number.
    held: Vec<(u64, u64, usize)>,
    /// Union-find: what is joined has one root.
    parents: Vec<usize>,
    /// Of a root: the function that its members are joined to.
    joined_to: HashMap<usize, Owner>,
}

impl Entries {
    fn of(functions: &[Function], certain: &[Range<u64>], swept: &BranchTargets) -> Entries {
        let nameless = |f: &Function| f.source == NameSource::EhFrame && !swept.is_called(f.svma);
        let mut held = Vec::new();
        for (n, f) in functions.iter().enumerate() {
            held.push((f.svma, f.svma.saturating_add(f.size), n));
            held.extend(f.fragments.iter().map(|r| (r.start, r.end, n)));
        }
        let parts = certain.iter().enumerate();
        held.extend(parts.map(|(n, r)| (r.start, r.end, functions.len() + n)));
        held.sort_unstable();
        let all = functions.len() + certain.len();
        Entries {
            starts: functions
                .iter()
                .map(|f| f.svma)
                .chain(certain.iter().map(|r| r.start))
                .collect(),
            functions: functions.len(),
            open: (0..all)
                .map(|n| functions.get(n).is_none_or(nameless))
                .collect(),
            held,
            parents: (0..all).collect(),
            joined_to: HashMap::new(),
        }
    }

    fn holder(&self, at: u64) -> Option<usize> {
        let i = self.held.partition_point(|(start, ..)| *start <= at);
        let (_, end, n) = self.held[i.checked_sub(1)?];
        (at < end).then_some(n)
    }

    fn root(&mut self, mut n: usize) -> usize {
        while self.parents[n] != n {
            self.parents[n] = self.parents[self.parents[n]];
            n = self.parents[n];
        }
        n
    }

    /// Joins what jumps into each other's middle.
    fn join(&mut self, jumps: &[(u64, u64)]) {
        let mut to_functions = Vec::new();
        for (from, to) in jumps {
            let Some(target) = self.holder(*to) else {
                continue;
            };
            let middle = *to != self.starts[target];
            match self.holder(*from) {
                Some(source) if source == target || !middle => {}
                Some(source) => match (self.open[source], self.open[target]) {
                    (true, true) => {
                        let (a, b) = (self.root(source), self.root(target));
                        self.parents[a] = b;
                    }
                    (true, false) => to_functions.push((source, Owner::Function(target))),
                    (false, true) => to_functions.push((target, Owner::Function(source))),
                    (false, false) => {}
                },
                // Code that is known by neither a symbol nor an unwind entry.
                None if self.open[target] && middle => to_functions.push((target, Owner::Nobody)),
                None => {}
            }
        }
        for (part, owner) in to_functions {
            let root = self.root(part);
            let known = self.joined_to.entry(root).or_insert(owner);
            if *known != owner {
                *known = Owner::Nobody;
            }
        }
    }

    /// Whose each entry is; `None` for functions that cannot be parts.
    fn owners(&mut self, jumps: &[(u64, u64)]) -> Vec<Option<Owner>> {
        let all = self.starts.len();
        let mut groups = Groups {
            heads: vec![Vec::new(); all],
            jumpers: vec![Vec::new(); all],
            resolved: vec![None; all],
        };
        let mut jumped_to_inside = vec![false; all];
        for (from, to) in jumps {
            let Some(target) = self.holder(*to).filter(|t| self.open[*t]) else {
                continue;
            };
            let root = self.root(target);
            let source = match self.holder(*from) {
                Some(n) if self.open[n] => Jumper::Group(self.root(n)),
                Some(n) => Jumper::Function(n),
                None => Jumper::Unknown,
            };
            if source == Jumper::Group(root) {
                jumped_to_inside[target] |= *to == self.starts[target];
            } else if *to == self.starts[target] {
                groups.jumpers[root].push(source);
            }
        }
        let functions = jumped_to_inside.iter().take(self.functions);
        for (n, jumped_to) in functions.enumerate() {
            if !self.open[n] || *jumped_to {
                continue;
            }
            let root = self.root(n);
            groups.heads[root].push(n);
        }
        let roots: Vec<usize> = (0..all)
            .filter(|n| self.open[*n] && self.parents[*n] == *n)
            .collect();
        for root in &roots {
            groups.resolved[*root] = self.joined_to.get(root).copied();
        }
        groups.resolve(&roots, &self.starts);
        (0..all)
            .map(|n| match self.open[n] {
                true => Some(groups.resolved[self.root(n)].unwrap_or(Owner::Nobody)),
                false => None,
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jumper {
    Function(usize),
    Group(usize),
    Unknown,
}

/// What is joined, by root.
struct Groups {
    /// Functions of the group that no other member jumps to at their first byte.
    heads: Vec<Vec<usize>>,
    /// Who jumps from outside to the first byte of a member.
    jumpers: Vec<Vec<Jumper>>,
    resolved: Vec<Option<Owner>>,
}

impl Groups {
    /// Those whose jumpers are known first; of a cycle, the one that looks like a function begins.
    fn resolve(&mut self, roots: &[usize], starts: &[u64]) {
        let mut waiting = vec![0usize; self.heads.len()];
        let mut followers: HashMap<usize, Vec<usize>> = HashMap::new();
        for root in roots.iter().filter(|r| self.resolved[**r].is_none()) {
            for jumper in &self.jumpers[*root] {
                if let Jumper::Group(g) = jumper
                    && self.resolved[*g].is_none()
                {
                    waiting[*root] += 1;
                    followers.entry(*g).or_default().push(*root);
                }
            }
        }
        let mut begin: Vec<usize> = roots.to_vec();
        // Cold parts mostly lie first.
        begin.sort_by_key(|r| {
            (
                waiting[*r] > 0,
                !is_aligned(starts[*r]),
                u64::MAX - starts[*r],
            )
        });
        let mut ready = VecDeque::new();
        for root in begin {
            ready.push_back(root);
            while let Some(root) = ready.pop_front() {
                if self.resolved[root].is_some() {
                    continue;
                }
                self.resolved[root] = Some(self.owner(root, starts));
                for follower in followers.remove(&root).unwrap_or_default() {
                    waiting[follower] -= 1;
                    if waiting[follower] == 0 {
                        ready.push_back(follower);
                    }
                }
            }
        }
    }

    fn owner(&self, root: usize, starts: &[u64]) -> Owner {
        let heads = &self.heads[root];
        let mut aligned = heads.iter().filter(|n| is_aligned(starts[**n]));
        let itself = match (&heads[..], aligned.next(), aligned.next()) {
            ([head], ..) | (_, Some(head), None) => Owner::Function(*head),
            _ => Owner::Nobody,
        };
        let mut owners = self.jumpers[root].iter().filter_map(|j| match j {
            Jumper::Function(n) => Some(Owner::Function(*n)),
            Jumper::Unknown => Some(Owner::Nobody),
            Jumper::Group(g) => self.resolved[*g],
        });
        match owners.next() {
            Some(first @ Owner::Function(_)) if owners.all(|o| o == first) => first,
            _ => itself,
        }
    }
}

/// Compilers align functions, and cold parts only by chance.
fn is_aligned(start: u64) -> bool {
    start.is_multiple_of(16)
}
