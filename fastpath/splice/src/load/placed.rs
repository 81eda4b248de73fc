//! Threads whose affinity was changed, and what they had before: `struct placed` of `bpf/contract.h`. The kernel's
//! programs keep it true while threads make others, execute programs and end; who holds the map can restore them.
use super::{Count, Counts, LoadError, object};
use crate::object::aligned;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};
use nix::sched::CpuSet;

static OBJECT: &[u8] = aligned!("placed");
const WORDS: usize = 16;
const VALUE: usize = 8 * (2 + WORDS);
const PAIR_COUNTS: [Count; 4] = [
    Count::Paired,
    Count::UnpairedSlower,
    Count::UnpairedOther,
    Count::MasksChanged,
];

/// One thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Cookie of the server's end of the connection for which.
    pub pair: u64,
    /// Where it may run now.
    pub processor: usize,
    /// Where it could run before.
    pub before: CpuSet,
}

impl Placed {
    fn to_bytes(self) -> [u8; VALUE] {
        let mut words = [0u64; 2 + WORDS];
        words[0] = self.pair;
        words[1] = self.processor as u64;
        for processor in (0..CpuSet::count()).filter(|n| self.before.is_set(*n) == Ok(true)) {
            words[2 + processor / 64] |= 1 << (processor % 64);
        }
        let mut bytes = [0; VALUE];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Placed> {
        let word = |at: usize| {
            let word = bytes.get(8 * at..8 * at + 8)?;
            Some(u64::from_ne_bytes(word.try_into().ok()?))
        };
        let mut before = CpuSet::new();
        for processor in 0..CpuSet::count().min(64 * WORDS) {
            if word(2 + processor / 64)? & (1 << (processor % 64)) != 0 {
                before.set(processor).ok()?;
            }
        }
        Some(Placed {
            pair: word(0)?,
            processor: usize::try_from(word(1)?).ok()?,
            before,
        })
    }
}

/// All of an accelerator, by whoever holds the maps.
pub struct PlacedThreads {
    threads: MapHandle,
    counts: MapHandle,
}

impl PlacedThreads {
    pub(super) fn new(threads: MapHandle, counts: MapHandle) -> PlacedThreads {
        PlacedThreads { threads, counts }
    }

    /// # Errors
    /// There is no room.
    pub fn put(&self, thread: u32, placed: Placed) -> Result<(), LoadError> {
        let key = thread.to_ne_bytes();
        self.threads
            .update(&key, &placed.to_bytes(), MapFlags::ANY)
            .map_err(LoadError::bpf("noting a thread's affinity"))
    }

    pub fn remove(&self, thread: u32) {
        // It may have ended meanwhile.
        let _ = self.threads.delete(&thread.to_ne_bytes());
    }

    /// Those of one connection, or all.
    pub fn of(&self, pair: Option<u64>) -> Vec<(u32, Placed)> {
        let keys: Vec<_> = self.threads.keys().collect();
        let look = |key: Vec<u8>| {
            let value = self.threads.lookup(&key, MapFlags::ANY).ok()??;
            let thread = u32::from_ne_bytes(key.try_into().ok()?);
            Some((thread, Placed::of(&value)?))
        };
        let all = keys.into_iter().filter_map(look);
        all.filter(|(_, placed)| pair.is_none_or(|pair| placed.pair == pair))
            .collect()
    }

    fn counted(&self) -> [u64; PAIR_COUNTS.len()] {
        let value = self.counts.lookup(&[0; 4], MapFlags::ANY);
        let bytes = value.ok().flatten().unwrap_or_default();
        let mut counted = [0; PAIR_COUNTS.len()];
        for (to, from) in counted.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(from);
            *to = u64::from_ne_bytes(word);
        }
        counted
    }

    /// Only one process counts at a time: the accelerator, or the keeper after it.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn count(&self, which: Count, more: u64) -> Result<(), LoadError> {
        let mut counted = self.counted();
        for (value, count) in counted.iter_mut().zip(PAIR_COUNTS) {
            *value += if count == which { more } else { 0 };
        }
        let bytes: Vec<u8> = counted.iter().flat_map(|n| n.to_ne_bytes()).collect();
        self.counts
            .update(&[0; 4], &bytes, MapFlags::ANY)
            .map_err(LoadError::bpf("counting"))
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        for (value, count) in self.counted().into_iter().zip(PAIR_COUNTS) {
            counts.add(count, value);
        }
    }
}

/// The programs that keep it true.
pub(super) struct Placing {
    pub(super) threads: PlacedThreads,
    _links: Vec<Link>,
    _object: Object,
}

impl Placing {
    pub(super) fn start() -> Result<Placing, LoadError> {
        let what = "watching threads";
        let object = object::load(OBJECT, "splice_threads", |_| Ok(()))?;
        let map = |name: &'static str| {
            let found = object.maps().find(|map| map.name() == name);
            let found = found.ok_or(LoadError::missing(what, name))?;
            MapHandle::try_from(&found).map_err(LoadError::bpf(what))
        };
        let threads = PlacedThreads::new(map("splice_placed")?, map("splice_pairs")?);
        let mut links = Vec::new();
        for program in object.progs_mut() {
            links.push(program.attach().map_err(LoadError::bpf(what))?);
        }
        Ok(Placing {
            threads,
            _links: links,
            _object: object,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_survives_its_bytes() {
        let mut before = CpuSet::new();
        for processor in [0, 3, 64, 1023] {
            before.set(processor).unwrap();
        }
        let placed = Placed {
            pair: 7,
            processor: 3,
            before,
        };
        assert_eq!(Placed::of(&placed.to_bytes()), Some(placed));
        assert_eq!(Placed::of(&[0; VALUE - 1]), None);
    }
}
