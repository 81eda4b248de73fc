//! The search for references to copies while the target runs: docs/adr/009.
//!
//! Pages are write-protected, then read; in the stop only those are read again that were written
//! since. Without write tracking all of it is left to the stop.
use super::error::LiveError;
use super::pages::{self, Hit, Reader};
use super::searched;
use super::table::PatchTable;
use hopscope_process::maps;
use hopscope_process::memory::TargetMemory;
use hopscope_process::write_track::WriteTrack;
use std::ops::Range;
use std::time::Duration;

/// How much memory may be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// 8 GiB while the target runs, 16 MiB while it is stopped: some milliseconds.
    Limited,
    /// All there is, however long it takes: some hundred milliseconds a GiB.
    All,
}

impl Extent {
    pub(super) fn stopped_bytes(self) -> u64 {
        match self {
            Extent::Limited => STOPPED_AT_MOST,
            Extent::All => u64::MAX,
        }
    }

    fn running_bytes(self) -> u64 {
        match self {
            Extent::Limited => RUNNING_AT_MOST,
            Extent::All => u64::MAX,
        }
    }
}

pub(super) const STOPPED_AT_MOST: u64 = 16 << 20;
const RUNNING_AT_MOST: u64 = 8 << 30;
/// So much is read in the stop sooner than the target's memory is protected.
const WORTH_TRACKING: u64 = 4 << 20;
/// Passes end when so little was written since the last one.
const ENOUGH: u64 = 512 << 10;
const PASSES: usize = 4;
/// More references than this are as good as all.
const HITS_AT_MOST: usize = 1 << 16;

pub(super) struct Survey<'a> {
    pub reader: Reader<'a>,
    ours: Vec<Range<u64>>,
    state: State,
    /// The longest stop that this took.
    pub pause: Duration,
}

enum State {
    New,
    /// Everything is left to the stop.
    Untracked,
    Tracked(Tracked),
}

/// What is known of pages that were not written since.
pub(super) struct Tracked {
    pub track: WriteTrack,
    /// Mappings of which pages can be protected, ascending.
    pub registered: Vec<Range<u64>>,
    /// Ascending.
    pub hits: Vec<Hit>,
    pub overflow: bool,
    /// Protected, and then not readable.
    pub unread: Vec<Range<u64>>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(memory: &'a TargetMemory, tables: &[&PatchTable]) -> Survey<'a> {
        let segments = tables.iter().flat_map(|t| &t.segments);
        let segments = segments.map(|s| s.at..s.at.saturating_add(s.len));
        Survey {
            reader: Reader::new(memory, segments.collect()),
            ours: searched::ours(tables),
            state: State::New,
            pause: Duration::ZERO,
        }
    }

    pub(super) fn ours(&self) -> &[Range<u64>] {
        &self.ours
    }

    pub(super) fn tracked(&self) -> Option<&Tracked> {
        match &self.state {
            State::Tracked(tracked) => Some(tracked),
            _ => None,
        }
    }

    /// Reads what is not known yet; nothing is stopped, but for the one thread that begins it.
    pub(super) fn refresh(&mut self, pid: i32, extent: Extent) -> Result<(), LiveError> {
        if matches!(self.state, State::New) {
            self.state = match self.begin(pid, extent)? {
                Some(tracked) => State::Tracked(tracked),
                None => State::Untracked,
            };
        }
        let State::Tracked(tracked) = &mut self.state else {
            return Ok(());
        };
        for _ in 0..PASSES {
            if tracked.pass(pid, &self.ours, &mut self.reader)? <= ENOUGH {
                break;
            }
        }
        Ok(())
    }

    fn begin(&mut self, pid: i32, extent: Extent) -> Result<Option<Tracked>, LiveError> {
        let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
        let mut bytes = 0u64;
        for m in &mappings {
            let Some(wanted) = searched::pages(m, &self.ours) else {
                continue;
            };
            let runs = pages::resident(pid, &m.range, wanted)?;
            bytes = bytes.saturating_add(runs.map_or(u64::MAX, |r| pages::bytes_of(&r)));
        }
        if !(WORTH_TRACKING..=extent.running_bytes()).contains(&bytes) {
            return Ok(None);
        }
        let mut one = hopscope_process::stop_one(pid)?;
        let track = WriteTrack::begin(&mut one);
        self.pause = self.pause.max(one.resume()?.pause());
        match track {
            Ok(track) => Ok(Some(Tracked {
                track,
                registered: Vec::new(),
                hits: Vec::new(),
                overflow: false,
                unread: Vec::new(),
            })),
            Err(e) => {
                log::info!(
                    "process {pid}: writes cannot be tracked, all is searched in a stop: {e}"
                );
                Ok(None)
            }
        }
    }
}

impl Tracked {
    /// Protects and reads what was written, or never read. Returns how many bytes that were.
    fn pass(
        &mut self,
        pid: i32,
        ours: &[Range<u64>],
        reader: &mut Reader<'_>,
    ) -> Result<u64, LiveError> {
        let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
        let mut bytes = 0;
        for m in &mappings {
            let Some(wanted) = searched::pages(m, ours) else {
                continue;
            };
            if !self.is_registered(&m.range) {
                // By a userfaultfd of its own, for example: then it is read in the stop.
                if self.track.register(&m.range).is_err() {
                    continue;
                }
                let after = self.registered.partition_point(|r| r.start < m.range.start);
                self.registered.insert(after, m.range.clone());
            }
            let Ok(runs) = self.track.written(&m.range, wanted) else {
                continue;
            };
            for run in runs {
                // First protected, then read: what is written in between counts as written.
                if self.track.protect(&run).is_err() {
                    continue;
                }
                bytes += run.end - run.start;
                if !self.hits.is_empty() {
                    self.hits.retain(|h| !run.contains(&h.at));
                }
                let full = |hits: &[Hit]| hits.len() > HITS_AT_MOST;
                if reader.read(&run, &mut self.hits, &full).is_err() {
                    // Gone meanwhile, or not to be read: the stop finds out.
                    self.unread.push(run);
                }
                self.overflow |= self.hits.len() > HITS_AT_MOST;
                self.hits.truncate(HITS_AT_MOST);
            }
        }
        self.hits.sort_unstable_by_key(|h| h.at);
        Ok(bytes)
    }

    /// Wholly in mappings that are registered.
    pub(super) fn is_registered(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        let first = self.registered.partition_point(|r| r.end <= at);
        for r in &self.registered[first..] {
            if at >= range.end || r.start > at {
                break;
            }
            at = at.max(r.end);
        }
        at >= range.end
    }
}
