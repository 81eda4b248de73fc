//! A slot of a global offset table that leads into a copy, and what may be found in it later.
use crate::locate::Load;
use serde::{Deserialize, Serialize};

/// A slot that may lead into a copy: addresses in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedSlot {
    pub at: u64,
    /// What it holds before it leads into the copy; the function's own address where that is to be waited for.
    pub found: u64,
    /// Of the module that it is in; `None`: whatever lies there.
    pub load: Option<Load>,
}

/// As the patch table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GotPatch {
    pub at: u64,
    /// Where the function begins: what it holds once it is bound to it.
    pub function: u64,
    /// What it is given back.
    pub found: u64,
    /// Where the copy begins.
    pub replaced: u64,
}

pub(super) const SLOT_BYTES: u64 = 8;

impl GotPatch {
    pub(super) fn is_open(&self, now: u64) -> bool {
        now == self.found || now == self.function
    }
}
