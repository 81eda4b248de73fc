//! Where a frame has its readings of counters.

/// Its place among those of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

impl Default for Slot {
    fn default() -> Slot {
        Slot::NONE
    }
}

impl Slot {
    pub(crate) const NONE: Slot = Slot(u32::MAX);
}
