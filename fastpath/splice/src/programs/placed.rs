//! Threads whose affinity was changed, and what they had before: `struct placed` of `bpf/contract.h`. The kernel's
//! programs keep it true while threads make others, execute programs and end; who holds the map can restore them.
use super::ends::run;
use super::{Count, Counts, SpliceError};
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, compiled};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};
use nix::sched::CpuSet;
use std::os::fd::AsFd;

static OBJECT: &[u8] = compiled!("placed");
const WORDS: usize = 16;
const HEAD: usize = 4;
const VALUE: usize = 8 * (HEAD + WORDS);
const PAIR_COUNTS: [Count; 4] = [
    Count::Paired,
    Count::UnpairedSlower,
    Count::UnpairedOther,
    Count::MasksChanged,
];

/// `enum placed_state`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum PlacedState {
    /// Not checked, or this kernel does not keep the user's affinity (before 6.2).
    Unknown,
    /// The last to set its affinity was the accelerator.
    Kept,
    /// Another process has set it since.
    Changed,
    /// Restored, or made by one that was.
    Restored,
}

impl PlacedState {
    fn of(word: u64) -> Option<PlacedState> {
        use PlacedState::{Changed, Kept, Restored, Unknown};
        let all = [Unknown, Kept, Changed, Restored];
        all.into_iter().find(|state| *state as u64 == word)
    }
}

/// One thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Cookie of the server's end of the connection for which.
    pub pair: u64,
    /// Where it may run now.
    pub processor: usize,
    pub state: PlacedState,
    /// `asked_at`: the kernel's copy of the affinity that was asked for; 0 until it was looked at.
    asked_at: u64,
    /// Where it could run before.
    pub before: CpuSet,
}

impl Placed {
    pub fn new(pair: u64, processor: usize, before: CpuSet) -> Placed {
        Placed {
            pair,
            processor,
            state: PlacedState::Unknown,
            asked_at: 0,
            before,
        }
    }

    fn to_bytes(self) -> [u8; VALUE] {
        let mut words = [0u64; HEAD + WORDS];
        words[0] = self.pair;
        words[1] = self.processor as u64;
        words[2] = self.state as u64;
        words[3] = self.asked_at;
        for processor in (0..CpuSet::count()).filter(|n| self.before.is_set(*n) == Ok(true)) {
            words[HEAD + processor / 64] |= 1 << (processor % 64);
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
            if word(HEAD + processor / 64)? & (1 << (processor % 64)) != 0 {
                before.set(processor).ok()?;
            }
        }
        Some(Placed {
            pair: word(0)?,
            processor: usize::try_from(word(1)?).ok()?,
            state: PlacedState::of(word(2)?)?,
            asked_at: word(3)?,
            before,
        })
    }
}

/// All of an accelerator, by whoever holds the maps.
pub struct PlacedThreads {
    threads: MapHandle,
    counts: MapHandle,
    /// The program that looks at all threads; none where another process's programs keep the maps true.
    look: Option<Link>,
}

impl PlacedThreads {
    pub(super) fn new(threads: MapHandle, counts: MapHandle) -> PlacedThreads {
        PlacedThreads {
            threads,
            counts,
            look: None,
        }
    }

    /// Brings [`Placed::state`] of each up to date.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn look(&self) -> Result<(), SpliceError> {
        match &self.look {
            Some(look) => run(look, "looking at placed threads").map(|_| ()),
            None => Ok(()),
        }
    }

    /// # Errors
    /// There is no room.
    pub fn put(&self, thread: u32, placed: Placed) -> Result<(), SpliceError> {
        let key = thread.to_ne_bytes();
        self.threads
            .update(&key, &placed.to_bytes(), MapFlags::ANY)
            .map_err(SpliceError::bpf("noting a thread's affinity"))
    }

    /// Notes that it has again what it had; nothing where it has ended meanwhile.
    pub fn restored(&self, thread: u32, placed: Placed) {
        let state = PlacedState::Restored;
        let value = Placed { state, ..placed }.to_bytes();
        let _ = (self.threads).update(&thread.to_ne_bytes(), &value, MapFlags::EXIST);
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
    pub fn count(&self, which: Count, more: u64) -> Result<(), SpliceError> {
        let mut counted = self.counted();
        for (value, count) in counted.iter_mut().zip(PAIR_COUNTS) {
            *value += if count == which { more } else { 0 };
        }
        let bytes: Vec<u8> = counted.iter().flat_map(|n| n.to_ne_bytes()).collect();
        self.counts
            .update(&[0; 4], &bytes, MapFlags::ANY)
            .map_err(SpliceError::bpf("counting"))
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        for (value, count) in self.counted().into_iter().zip(PAIR_COUNTS) {
            counts.add(count, value);
        }
    }
}

/// The programs that keep it true.
pub struct Placing {
    pub threads: PlacedThreads,
    _links: Vec<Link>,
    _object: Object,
}

impl Placing {
    pub(super) fn start() -> Result<Placing, SpliceError> {
        Placing::on(None)
    }

    /// Programs of this process's own on the maps of another one: they go on when that one's end with it.
    ///
    /// # Errors
    /// The kernel does not take the programs.
    pub fn beside(of: &PlacedThreads) -> Result<Placing, SpliceError> {
        Placing::on(Some(of))
    }

    fn on(of: Option<&PlacedThreads>) -> Result<Placing, SpliceError> {
        let what = "watching threads";
        let object = object::load(OBJECT, "splice_threads", has_capabilities, |open| {
            for mut map in open.maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                if name.ends_with(".rodata") {
                    let words = map
                        .initial_value_mut()
                        .and_then(|data| data.first_chunk_mut());
                    let words = words.ok_or(BpfError::missing(what, "mask_words"))?;
                    *words = mask_words().to_ne_bytes();
                }
                let shared = match (name.as_str(), of) {
                    ("splice_placed", Some(of)) => &of.threads,
                    ("splice_pairs", Some(of)) => &of.counts,
                    _ => continue,
                };
                map.reuse_fd(shared.as_fd()).map_err(BpfError::call(what))?;
            }
            Ok(())
        })?;
        let map = |name| object::map_handle(&object, name);
        let mut threads = PlacedThreads::new(map("splice_placed")?, map("splice_pairs")?);
        let mut links = Vec::new();
        for program in object.progs_mut() {
            let link = program.attach().map_err(SpliceError::bpf(what))?;
            if program.name() == "placed_look" {
                threads.look = Some(link);
            } else {
                links.push(link);
            }
        }
        Ok(Placing {
            threads,
            _links: links,
            _object: object,
        })
    }
}

/// Of a `struct cpumask`: a bit for each possible processor (/sys/devices/system/cpu/possible, "0-3" or "0").
fn mask_words() -> u32 {
    let all = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = all.trim().rsplit([',', '-']).next();
    let last = last.and_then(|last| last.parse().ok());
    last.map_or(1, |last: u32| last / 64 + 1)
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
            state: PlacedState::Changed,
            asked_at: u64::MAX - 1,
            ..Placed::new(7, 3, before)
        };
        assert_eq!(Placed::of(&placed.to_bytes()), Some(placed));
        assert_eq!(Placed::of(&[0; VALUE - 1]), None);
    }
}
