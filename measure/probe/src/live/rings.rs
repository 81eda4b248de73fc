//! Rings get their memory from the recorder before a thread may have them. Shared memory counts for
//! whoever touches it first: a target under a memory limit would be killed for our rings.
use crate::memory::SharedWords;
use hopscope_event::layout::{
    POOL_HEADER_BYTES, RING_HEADER_BYTES, pool_bytes, ring_bytes, ring_offset,
};
use hopscope_event::ring::Pool;
use hopscope_process::memory_limit;
use std::collections::VecDeque;

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
    /// Where in the free queue rings lie that came back and kept their memory, oldest first.
    warm: VecDeque<u64>,
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
            warm: VecDeque::new(),
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
        // Nobody comes: what is there is enough.
        if taken == 0 || self.populated >= self.contexts.min(self.allowed) {
            return;
        }
        let before = self.populated;
        let wanted = match self.limited {
            // Those that came back are given away again.
            true => {
                let free = pool.offered().saturating_sub(pool.taken()) as usize;
                before.saturating_add(self.ahead().saturating_sub(free))
            }
            // They lie in the order in which they were offered, each once before any comes again.
            false => {
                let needed = self.given.saturating_add(taken);
                needed.saturating_add(self.ahead())
            }
        };
        self.populate_to(pid, words, wanted.min(before + A_VISIT));
        if self.limited {
            for ring in before..self.populated {
                pool.offer(ring as u32);
            }
        }
    }

    /// Offers the ring of a thread that is gone to another one. Free rings are taken in turn, so that
    /// in time all have memory, however few threads live at once: those beyond what is kept ahead
    /// give it back. The header stays: its counter goes on.
    pub fn give_back(&mut self, pid: i32, words: &SharedWords, pool: &Pool, ring: u32) {
        let taken = pool.taken();
        while self.warm.front().is_some_and(|at| *at < taken) {
            self.warm.pop_front();
        }
        // Where only rings with memory may be given away it was counted out beforehand.
        if self.limited || self.warm.len() < self.ahead() {
            self.warm.push_back(pool.offered());
        } else {
            let at = ring_offset(ring as usize, self.records_log2);
            let end = at + ring_bytes(self.records_log2);
            if let Err(e) = words.release(at + RING_HEADER_BYTES..end) {
                log::info!("process {pid}: a ring keeps its memory: {e}");
            }
        }
        pool.offer(ring);
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
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::Ordering;

    const LOG2: u32 = 12;
    const CONTEXTS: usize = 40;

    fn file_and_words() -> (File, SharedWords) {
        let file = File::from(memfd_create(c"rings", MFdFlags::MFD_CLOEXEC).unwrap());
        file.set_len(pool_bytes(CONTEXTS, LOG2) as u64).unwrap();
        let words = SharedWords::map(&file, pool_bytes(CONTEXTS, LOG2)).unwrap();
        (file, words)
    }

    fn words() -> SharedWords {
        file_and_words().1
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

    /// As a thread of the target does; it goes at once.
    fn come_and_go(words: &SharedWords, pool: &Pool, rings: &mut Rings) {
        let head = std::mem::offset_of!(hopscope_event::layout::PoolHeader, free_head) / 8;
        let taken = words.words()[head].fetch_add(1, Ordering::Relaxed);
        let ring = pool.free_entry(taken);
        let at = ring_offset(ring as usize, LOG2);
        for page in (at..at + ring_bytes(LOG2)).step_by(4096) {
            words.words()[page / 8].store(1, Ordering::Relaxed);
        }
        rings.keep_ahead(1, words, pool);
        rings.give_back(1, words, pool, ring);
    }

    #[test]
    fn threads_that_come_one_by_one_need_no_more_memory() {
        let (file, words) = file_and_words();
        let pool = Pool::new(words.words(), CONTEXTS, LOG2).unwrap();
        let mut rings = Rings::within(CONTEXTS, LOG2, None, false);
        rings.populate(1, &words, 1);
        rings.gave(1);
        (1..CONTEXTS).for_each(|ring| pool.offer(ring as u32));
        for _ in 0..5 * CONTEXTS {
            come_and_go(&words, &pool, &mut rings);
        }
        // One thread, as many ahead, as many that came back, and the headers.
        let most = (1 + 2 * rings.ahead()) * ring_bytes(LOG2) + CONTEXTS * RING_HEADER_BYTES;
        let bytes = file.metadata().unwrap().blocks() * 512;
        assert!(
            bytes <= (most + POOL_HEADER_BYTES) as u64,
            "{bytes} bytes, {most} at most"
        );
    }

    #[test]
    fn a_limited_target_needs_no_more_rings_when_threads_come_one_by_one() {
        let (_, words) = file_and_words();
        let pool = Pool::new(words.words(), CONTEXTS, LOG2).unwrap();
        let mut rings = Rings::within(CONTEXTS, LOG2, None, true);
        rings.populate(1, &words, 1);
        rings.gave(1);
        (1..rings.usable()).for_each(|ring| pool.offer(ring as u32));
        for _ in 0..5 * CONTEXTS {
            come_and_go(&words, &pool, &mut rings);
        }
        assert!(rings.usable() <= 2 + rings.ahead(), "{}", rings.usable());
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
