//! From a tuple's hash to what has that tuple: open addressing, 8 bytes an entry, at most three quarters full.

/// Whom a tuple belongs to. The number is an index of that kind's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Connection(u32),
    Request(u32),
    TimeWait(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    hash: u32,
    /// Kind in the two highest bits, index below.
    target: u32,
}

const FREE: Entry = Entry { hash: 0, target: 0 };
const INDEX: u32 = (1 << 30) - 1;
const LEAST: usize = 64;

impl Target {
    fn pack(self) -> u32 {
        match self {
            Target::Connection(index) => 1 << 30 | index,
            Target::Request(index) => 2 << 30 | index,
            Target::TimeWait(index) => 3 << 30 | index,
        }
    }

    fn unpack(packed: u32) -> Target {
        let index = packed & INDEX;
        match packed >> 30 {
            1 => Target::Connection(index),
            2 => Target::Request(index),
            _ => Target::TimeWait(index),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Demux {
    entries: Vec<Entry>,
    len: usize,
}

impl Default for Demux {
    fn default() -> Demux {
        Demux {
            entries: vec![FREE; LEAST],
            len: 0,
        }
    }
}

impl Demux {
    /// The target with this hash of which `is` is true. `is` compares the tuples.
    pub(crate) fn find(&self, hash: u32, mut is: impl FnMut(Target) -> bool) -> Option<Target> {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = self.entries[at];
            if entry == FREE {
                return None;
            }
            let target = Target::unpack(entry.target);
            if entry.hash == hash && is(target) {
                return Some(target);
            }
            at = (at + 1) & mask;
        }
    }

    /// `target`'s tuple must not be in the table.
    pub(crate) fn insert(&mut self, hash: u32, target: Target) {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            self.resize(self.entries.len() * 2);
        }
        self.len += 1;
        self.place(Entry {
            hash,
            target: target.pack(),
        });
    }

    /// Moves what follows to where a search still finds it, so that no marks of removed entries remain.
    pub(crate) fn remove(&mut self, hash: u32, target: Target) {
        let mask = self.entries.len() - 1;
        let wanted = Entry {
            hash,
            target: target.pack(),
        };
        let mut hole = hash as usize & mask;
        while self.entries[hole] != wanted {
            if self.entries[hole] == FREE {
                return;
            }
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry == FREE {
                break;
            }
            let distance = at.wrapping_sub(entry.hash as usize) & mask;
            if distance >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = FREE;
        self.len -= 1;
        if self.entries.len() > LEAST && self.len * 8 < self.entries.len() {
            self.resize(self.entries.len() / 2);
        }
    }

    /// Another target takes over `from`'s tuple.
    pub(crate) fn replace(&mut self, hash: u32, from: Target, to: Target) {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        while self.entries[at] != FREE {
            if self.entries[at].hash == hash && self.entries[at].target == from.pack() {
                self.entries[at].target = to.pack();
                return;
            }
            at = (at + 1) & mask;
        }
        self.insert(hash, to);
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>()) as u64
    }

    fn place(&mut self, entry: Entry) {
        let mask = self.entries.len() - 1;
        let mut at = entry.hash as usize & mask;
        while self.entries[at] != FREE {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    fn resize(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.entries, vec![FREE; size]);
        for entry in old {
            if entry != FREE {
                self.place(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Hashes of few values, so that runs are long and overlap.
        #[test]
        fn finds_what_is_in_it(steps in prop::collection::vec((0u32..600, any::<bool>()), 1..2_000)) {
            let (mut demux, mut model) = (Demux::default(), HashSet::new());
            for (index, insert) in steps {
                let (hash, target) = (index % 37, Target::Request(index));
                match (insert, model.contains(&index)) {
                    (true, false) => { demux.insert(hash, target); model.insert(index); }
                    (false, _) => { demux.remove(hash, target); model.remove(&index); }
                    (true, true) => {}
                }
                prop_assert_eq!(demux.len, model.len());
            }
            for index in 0..600 {
                let found = demux.find(index % 37, |t| t == Target::Request(index));
                prop_assert_eq!(found.is_some(), model.contains(&index));
            }
        }
    }
}
