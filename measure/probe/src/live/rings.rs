//! Rings get their memory from the recorder before a thread may have them. Shared memory counts for
//! whoever touches it first: a target under a memory limit would be killed for our rings.
use super::memory_limit;
use crate::memory::SharedWords;
use hopscope_event::layout::{POOL_HEADER_BYTES, pool_bytes, ring_bytes, ring_offset};
use hopscope_event::ring::Pool;

/// Given memory ahead of need, and at attach at most, where no limit asks for more: larger rings of
/// many threads get theirs as they are used.
const AHEAD_BYTES: usize = 64 << 20;
const AHEAD: std::ops::RangeInclusive<usize> = 2..=16;
/// Rings given memory in one visit of the recorder, which has to come back in time.
const A_VISIT: usize = 4;

/// The rings of one target, in the order in which they are given away for the first time.
#[derive(Debug, Clone)]
pub struct Rings {
    contexts: usize,
    records_log2: u32,
    /// Those before have their memory.
    populated: usize,
    /// More may not have it: the recorder has a limit too.
    allowed: usize,
    /// Threads of the target may have only those that are populated.
    limited: bool,
    /// Rings given to threads at attach.
    given: usize,
}

impl Rings {
    /// Before the target is touched; `threads` are there to be given one.
    pub fn plan(pid: i32, contexts: usize, records_log2: u32) -> Rings {
        let own = memory_limit::room(std::process::id() as i32);
        let own = own.into_iter().chain(available()).min();
        // A limit that the rings stay far below is none.
        let all = pool_bytes(contexts, records_log2) as u64;
        let limited = memory_limit::room(pid).is_some_and(|room| room / 2 < all);
        Rings::within(contexts, records_log2, own, limited)
    }

    /// Half of the recorder's room: its own memory grows too.
    fn within(contexts: usize, records_log2: u32, room: Option<u64>, limited: bool) -> Rings {
        let allowed = room.map_or(contexts, |bytes| {
            (bytes / 2 / ring_bytes(records_log2) as u64).min(contexts as u64) as usize
        });
        Rings {
            contexts,
            records_log2,
            populated: 0,
            allowed,
            limited,
            given: 0,
        }
    }

    fn ahead(&self) -> usize {
        (AHEAD_BYTES / ring_bytes(self.records_log2)).clamp(*AHEAD.start(), *AHEAD.end())
    }

    /// Gives the rings that `threads` will get at attach their memory, and some more. What had to be
    /// left out, for the user.
    pub fn populate(&mut self, pid: i32, words: &SharedWords, threads: usize) -> Option<String> {
        let wanted = match self.limited {
            true => threads + self.ahead(),
            false => threads.min(AHEAD_BYTES / ring_bytes(self.records_log2)),
        };
        self.populate_to(pid, words, wanted);
        let short = self.limited && self.populated < threads.min(self.contexts);
        short.then(|| {
            format!(
                "process {pid}: rings for {} of {threads} threads only: its memory is limited, and the recorder has no memory for more ({} KiB each; try a smaller --buffer)",
                self.populated,
                ring_bytes(self.records_log2) >> 10
            )
        })
    }

    fn populate_to(&mut self, pid: i32, words: &SharedWords, wanted: usize) {
        let end = wanted.min(self.allowed).min(self.contexts);
        while self.populated < end {
            // The header of the pool goes with the first.
            let start = match self.populated {
                0 => 0,
                n => ring_offset(n, self.records_log2),
            };
            let end = ring_offset(self.populated + 1, self.records_log2);
            if let Err(e) = words.populate(start..end) {
                log::info!("process {pid}: rings get their memory later: {e}");
                self.allowed = self.populated;
                return;
            }
            self.populated += 1;
        }
    }

    /// How many rings may be given away.
    pub fn usable(&self) -> usize {
        match self.limited {
            true => self.populated,
            false => self.contexts,
        }
    }

    /// The first `given` rings have gone to the threads that were there; the rest was offered.
    pub fn gave(&mut self, given: usize) {
        self.given = given;
    }

    /// Called at every visit: as many threads may have come as took a ring.
    pub fn keep_ahead(&mut self, pid: i32, words: &SharedWords, pool: &Pool) {
        let taken = usize::try_from(pool.taken()).unwrap_or(usize::MAX);
        let needed = self.given.saturating_add(taken);
        // Nobody comes: what is there is enough.
        if taken == 0 || self.populated >= self.contexts.min(self.allowed) {
            return;
        }
        let wanted = needed.saturating_add(self.ahead());
        let before = self.populated;
        self.populate_to(pid, words, wanted.min(before + A_VISIT));
        if self.limited {
            for ring in before..self.populated {
                pool.offer(ring as u32);
            }
        }
    }
}

/// `MemAvailable` of this machine in bytes.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

const _: () = assert!(POOL_HEADER_BYTES == ring_offset(0, 12));

#[cfg(test)]
mod tests {
    use super::*;

    const LOG2: u32 = 12;
    const CONTEXTS: usize = 40;

    fn words() -> SharedWords {
        let name = format!("hopscope-rings-{:?}", std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(pool_bytes(CONTEXTS, LOG2) as u64).unwrap();
        SharedWords::map(&file, pool_bytes(CONTEXTS, LOG2)).unwrap()
    }

    #[test]
    fn a_limited_target_gets_only_rings_that_have_their_memory() {
        let words = words();
        let pool = Pool::new(words.words(), CONTEXTS, LOG2).unwrap();
        let mut rings = Rings::within(CONTEXTS, LOG2, None, true);
        assert_eq!(rings.populate(1, &words, 3), None);
        assert_eq!(rings.usable(), 3 + 16);
        rings.gave(3);
        for ring in 3..rings.usable() {
            pool.offer(ring as u32);
        }
        rings.keep_ahead(1, &words, &pool);
        assert_eq!(rings.usable(), 3 + 16, "nobody came");
    }

    #[test]
    fn what_the_recorder_may_not_hold_is_said() {
        let words = words();
        let room = 10 * ring_bytes(LOG2) as u64;
        let mut rings = Rings::within(CONTEXTS, LOG2, Some(room), true);
        let note = rings.populate(1, &words, 8).unwrap();
        assert!(note.contains("5 of 8 threads"), "{note}");
        assert_eq!(rings.usable(), 5);
        // Without a limit of the target it is no reason to leave a thread out.
        let mut rings = Rings::within(CONTEXTS, LOG2, Some(room), false);
        assert_eq!(rings.populate(1, &words, 8), None);
        assert_eq!(rings.usable(), CONTEXTS);
    }
}
