//! Reading the memory of a process page by page, and the words in it that point into a range.
use super::error::LiveError;
use hopscope_process::memory::TargetMemory;
use hopscope_process::pagemap::PageMap;
use hopscope_process::write_track::Pages;
use std::io;
use std::ops::Range;

pub(super) use hopscope_process::pagemap::PAGE;

/// Read at once: large enough that the system call does not count.
const RUN_AT_MOST: u64 = 256 << 10;
/// Page tables of larger mappings (sanitizer shadow memory) are not read.
const SPAN_AT_MOST: u64 = 16 << 30;

/// A word of the target's memory, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub at: u64,
    pub word: u64,
}

/// Finds words that point into ranges.
pub(super) struct Reader<'a> {
    pub memory: &'a TargetMemory,
    /// Ascending.
    sought: Vec<Range<u64>>,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(memory: &'a TargetMemory, mut sought: Vec<Range<u64>>) -> Reader<'a> {
        sought.sort_unstable_by_key(|r| r.start);
        Reader {
            memory,
            sought,
            buffer: Vec::new(),
        }
    }

    /// Appends every aligned word of `run` that is sought, until `full` says so.
    pub(super) fn read(
        &mut self,
        run: &Range<u64>,
        hits: &mut Vec<Hit>,
        full: &dyn Fn(&[Hit]) -> bool,
    ) -> io::Result<()> {
        let base = self.sought.first().map_or(0, |r| r.start);
        let len = self.sought.last().map_or(0, |r| r.end - base);
        let mut at = run.start;
        while at < run.end {
            let n = RUN_AT_MOST.min(run.end - at);
            self.buffer.resize(n as usize, 0);
            self.memory.read(at, &mut self.buffer)?;
            for (page, bytes) in (at..)
                .step_by(PAGE as usize)
                .zip(self.buffer.chunks(PAGE as usize))
            {
                let words = || {
                    let words = bytes.chunks_exact(8);
                    words.map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")))
                };
                // Nearly every page has none: no branch for each word.
                if !words().fold(false, |any, w| any | (w.wrapping_sub(base) < len)) {
                    continue;
                }
                let found = (page..).step_by(8).zip(words());
                let near = found.filter(|(_, w)| w.wrapping_sub(base) < len);
                let found = near.filter(|(_, w)| contain(&self.sought, *w));
                hits.extend(found.map(|(at, word)| Hit { at, word }));
                if full(hits) {
                    return Ok(());
                }
            }
            at += n;
        }
        Ok(())
    }
}

/// Runs of pages that hold anything: untouched ones cannot refer to anything. `None` when the
/// range is too large to ask for.
pub(super) fn resident(
    pid: i32,
    range: &Range<u64>,
    pages: Pages,
) -> Result<Option<Vec<Range<u64>>>, LiveError> {
    if range.end - range.start > SPAN_AT_MOST {
        return Ok(None);
    }
    let first = range.start / PAGE;
    let count = range.end.div_ceil(PAGE) - first;
    let entries = PageMap::open(pid).and_then(|map| map.entries(first, count));
    let entries = entries.map_err(LiveError::io(pid, "reading its pagemap"))?;
    let mut runs: Vec<Range<u64>> = Vec::new();
    for (n, entry) in (0..count).zip(entries) {
        let not_ours = pages == Pages::Anonymous && entry.is_of_a_file();
        if !entry.is_touched() || entry.is_guard() || not_ours {
            continue;
        }
        let at = (first + n) * PAGE;
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += PAGE,
            _ => runs.push(at..at + PAGE),
        }
    }
    Ok(Some(runs))
}

pub(super) fn bytes_of(runs: &[Range<u64>]) -> u64 {
    runs.iter().map(|r| r.end - r.start).sum()
}

/// Whether `at` lies in one of the ascending `runs`.
pub(super) fn contain(runs: &[Range<u64>], at: u64) -> bool {
    let after = runs.partition_point(|r| r.start <= at);
    after > 0 && at < runs[after - 1].end
}
