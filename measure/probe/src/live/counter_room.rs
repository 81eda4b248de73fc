//! How much room a target's counters take.
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::layout::PAGE;

/// Behind the contexts: what system calls that hand over descriptors need.
pub(super) const SCRATCH_BYTES: usize = 256;
/// Pages of events, and one behind them ([`super::counter_pages`]).
pub(super) const OF_A_CONTEXT: usize = (COUNTERS_MAX + 1) * PAGE;

/// With the last page, which is never mapped over.
pub(super) fn bytes(contexts: usize) -> u64 {
    (contexts * OF_A_CONTEXT + PAGE) as u64
}
