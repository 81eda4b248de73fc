//! The patch table: written into the target's arena before its first byte changes, so that
//! whoever comes after a killed recorder can undo everything and knows what the rings hold.
//!
//! It starts a memfd that the target maps read-only under the name [`ARENA_NAME`]:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `hopsARNA` |
//! | 8 | 4 | version |
//! | 12 | 4 | [`State`] |
//! | 16 | 8 | length of the JSON that follows at 64 |
//! | 24 | 4 | 1: copies that were added to a recording while it ran ([`PatchTable::shares_rings`]) |
use super::fused::FusedCall;
use super::led_slot::GotPatch;
use super::site::Patch;
use hopscope_event::table::ModuleEntry;
use hopscope_event::{
    CaptureEntry, CounterEntry, FunctionEntry, FunctionId, ProcessEntry, RecordingMeta,
};
use hopscope_process::procfs;
use serde::{Deserialize, Serialize};
use std::ops::Range;

mod bounded;
mod check;
#[cfg(test)]
pub(crate) mod tests;

pub use check::TABLE_BYTES_AT_MOST;

pub const ARENA_NAME: &str = "hopscope-code";
pub const POOL_NAME: &str = "hopscope-rings";
const MAGIC: u64 = u64::from_le_bytes(*b"hopsARNA");
const VERSION: u32 = 4;
/// Bytes before the JSON.
pub const HEAD_BYTES: usize = 64;
pub const STATE_AT: u64 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Mapped; no byte of the target's code has changed.
    Prepared = 1,
    /// Entries may have been replaced.
    Patched = 2,
    /// Every entry is as it was; copies may still be on some stack.
    Restored = 3,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatchTable {
    pub target: i32,
    pub recorder: i32,
    /// Field 22 of /proc/PID/stat: tells the recorder from a later process with its id.
    pub recorder_started: u64,
    #[serde(deserialize_with = "bounded::segments")]
    pub segments: Vec<Area>,
    pub header: Area,
    pub contexts: Area,
    pub pool: Area,
    /// Where the pages of events are mapped ([`super::counter_pages`]); empty without counters.
    #[serde(default = "Area::nowhere")]
    pub counter_pages: Area,
    pub pool_contexts: u32,
    pub ring_records_log2: u32,
    #[serde(deserialize_with = "bounded::functions")]
    pub patches: Vec<Patch>,
    /// Ascending.
    #[serde(default, deserialize_with = "bounded::functions")]
    pub loops: Vec<LedLoop>,
    /// Ascending. Those of one address are for several functions that it may be bound to.
    #[serde(default, deserialize_with = "bounded::functions")]
    pub slots: Vec<GotPatch>,
    /// Calls between copies that go by words among these; ascending.
    #[serde(default, deserialize_with = "bounded::functions")]
    pub fused: Vec<FusedCall>,
    /// What a salvaged trace needs.
    #[serde(deserialize_with = "bounded::meta")]
    pub meta: RecordingMeta,
    #[serde(deserialize_with = "bounded::process")]
    pub process: ProcessEntry,
    #[serde(deserialize_with = "bounded::modules")]
    pub modules: Vec<ModuleEntry>,
    #[serde(deserialize_with = "bounded::functions")]
    pub functions: Vec<FunctionEntry>,
    #[serde(default, deserialize_with = "bounded::functions")]
    pub captures: Vec<CaptureEntry>,
    #[serde(default, deserialize_with = "bounded::counters")]
    pub counters: Vec<CounterEntry>,
    /// Some module switches stacks (`swapcontext` and its like), or is not known: what lies below a running frame may
    /// be a suspended one.
    #[serde(default = "unknown_is_true")]
    pub switches_stacks: bool,
    /// Contexts, rings and pages of events are those of the recording that these copies were added to, which has an arena
    /// of its own: whoever takes these away leaves them.
    #[serde(default)]
    pub shares_rings: bool,
    /// No copies, but what answers unwinders that ask for those of others (`lookup`); `contexts` are its slots.
    #[serde(default)]
    pub answers_unwinders: bool,
}

fn unknown_is_true() -> bool {
    true
}

/// A loop whose jump leads calls that run already into the copy: of its patches not one of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedLoop {
    /// Of that patch.
    pub at: u64,
    /// The same jump in the copy, which leads out of it once it is to go: what runs there may never return.
    pub back: Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    pub at: u64,
    pub len: u64,
}

impl Area {
    pub const fn nowhere() -> Area {
        Area { at: 0, len: 0 }
    }

    pub fn contains(&self, address: u64) -> bool {
        address >= self.at && address - self.at < self.len
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("the arena does not start with hopscope's mark")]
    NotOurs,
    #[error(
        "the arena is of version {0}, this hopscope knows {VERSION}; use the version that attached"
    )]
    Version(u32),
    #[error("the arena's table is damaged: {0}")]
    Damaged(String),
}

impl PatchTable {
    /// A table of this recorder without addresses: the attach fills those in.
    pub fn new(
        meta: RecordingMeta,
        process: ProcessEntry,
        modules: Vec<ModuleEntry>,
        functions: Vec<FunctionEntry>,
    ) -> PatchTable {
        let recorder = std::process::id() as i32;
        let nowhere = Area::nowhere();
        PatchTable {
            target: process.pid,
            recorder,
            recorder_started: procfs::start_time(recorder).unwrap_or(0),
            segments: Vec::new(),
            header: nowhere,
            contexts: nowhere,
            pool: nowhere,
            counter_pages: nowhere,
            pool_contexts: 0,
            ring_records_log2: 0,
            patches: Vec::new(),
            loops: Vec::new(),
            slots: Vec::new(),
            fused: Vec::new(),
            meta,
            process,
            modules,
            functions,
            captures: Vec::new(),
            counters: Vec::new(),
            switches_stacks: true,
            shares_rings: false,
            answers_unwinders: false,
        }
    }

    /// What goes with it, besides its copies and itself.
    pub(super) fn data(&self) -> Vec<Area> {
        let data = [self.contexts, self.pool, self.counter_pages];
        let own = data.into_iter().filter(|a| a.len > 0 && !self.shares_rings);
        own.collect()
    }

    /// One of its functions, which ascend: of what was added to a recording it has those that were added.
    pub(super) fn function(&self, id: FunctionId) -> Option<&FunctionEntry> {
        let at = self.functions.binary_search_by_key(&id, |f| f.id).ok()?;
        Some(&self.functions[at])
    }

    /// Header region, padded to whole pages.
    pub fn to_bytes(&self, state: State) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("plain data");
        let mut out = Vec::with_capacity(HEAD_BYTES + json.len());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(state as u32).to_le_bytes());
        out.extend_from_slice(&(json.len() as u64).to_le_bytes());
        out.extend_from_slice(&u32::from(self.shares_rings).to_le_bytes());
        out.resize(HEAD_BYTES, 0);
        out.extend_from_slice(&json);
        out.resize(out.len().next_multiple_of(4096), 0);
        out
    }

    /// The bytes come from another process: nothing in them is used unchecked.
    pub fn from_bytes(bytes: &[u8]) -> Result<(PatchTable, State), TableError> {
        let head = bytes.first_chunk().ok_or(TableError::NotOurs)?;
        let head = Head::parse(head, bytes.len() as u64)?;
        let table =
            PatchTable::from_json(&bytes[head.json.start as usize..head.json.end as usize])?;
        Ok((table, head.state))
    }

    /// What [`Head::json`] names.
    pub(super) fn from_json(json: &[u8]) -> Result<PatchTable, TableError> {
        let table: PatchTable =
            serde_json::from_slice(json).map_err(|e| TableError::Damaged(e.to_string()))?;
        table.check()?;
        Ok(table)
    }
}

/// The fixed part of a table, with the length of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub state: State,
    /// Where the JSON lies, from the start of the head on.
    pub json: Range<u64>,
    /// As [`PatchTable::shares_rings`], without reading the JSON.
    pub shares_rings: bool,
}

impl Head {
    /// Of a table that has `room` bytes, this head included.
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES], room: u64) -> Result<Head, TableError> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if long(0) != MAGIC {
            return Err(TableError::NotOurs);
        }
        if word(8) != VERSION {
            return Err(TableError::Version(word(8)));
        }
        let state = match word(STATE_AT as usize) {
            1 => State::Prepared,
            2 => State::Patched,
            3 => State::Restored,
            other => return Err(TableError::Damaged(format!("state {other}"))),
        };
        let (start, len) = (HEAD_BYTES as u64, long(16));
        if len > TABLE_BYTES_AT_MOST || len > room.saturating_sub(start) {
            return Err(TableError::Damaged(format!(
                "{len} bytes of table announced"
            )));
        }
        Ok(Head {
            state,
            json: start..start + len,
            shares_rings: word(24) == 1,
        })
    }
}
