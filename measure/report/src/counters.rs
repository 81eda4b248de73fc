//! What calls counted on counters of the processor and the kernel.
mod json;
mod text;

pub(crate) use json::{entries, left_out, of_row};
pub use text::write;
pub(crate) use text::{APPROXIMATE, MARK, Marks, PER_CALL, cells, legend, lines, losses, titles};

use hopscope_analyze::{CountSum, CounterStats, LeftOutCalls, Stats};
use hopscope_event::{CounterCost, CounterEntry};

/// `PERF_TYPE_HARDWARE` and numbers of its events (linux/perf_event.h); above them is the type of the unit where a
/// machine has several.
const HARDWARE: u32 = 0;
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;

/// A sum as it is shown: corrected where the cost is known.
fn shown(sum: &CountSum, cost: Option<&CounterCost>) -> i128 {
    sum.corrected(cost).unwrap_or(sum.raw)
}

/// `None` without calls.
fn per_call(sum: i128, calls: u64) -> Option<f64> {
    (calls > 0).then(|| sum as f64 / calls as f64)
}

/// Mean own count of a call, as it is shown.
fn own_per_call(entry: &CounterEntry, stats: &Stats) -> Option<f64> {
    let own = &stats.counter(entry.number)?.own;
    per_call(shown(own, entry.cost.as_ref()), own.calls)
}

fn of_hardware(counters: &[CounterEntry], config: u64) -> Option<&CounterEntry> {
    let is = |c: &&CounterEntry| c.event.kind == HARDWARE && c.event.config as u32 as u64 == config;
    counters.iter().find(is)
}

pub(crate) fn has_ipc(counters: &[CounterEntry]) -> bool {
    of_hardware(counters, CYCLES).is_some() && of_hardware(counters, INSTRUCTIONS).is_some()
}

/// Instructions per cycle, of own counts.
pub(crate) fn ipc(counters: &[CounterEntry], stats: &Stats) -> Option<f64> {
    let own = |config| own_per_call(of_hardware(counters, config)?, stats);
    let cycles = own(CYCLES).filter(|cycles| *cycles > 0.0)?;
    Some(own(INSTRUCTIONS)? / cycles)
}

/// What probes of other functions counted is in own counts, or may be.
fn is_approximate(entry: &CounterEntry, counted: &CounterStats) -> bool {
    counted.mixed_calls > 0 || callees_not_corrected(&counted.own, entry.cost.as_ref())
}

fn callees_not_corrected(sum: &CountSum, cost: Option<&CounterCost>) -> bool {
    sum.has_callees() && cost.is_some_and(|cost| cost.pair.is_none())
}

/// Calls that a counter does not tell of, in all rows.
fn left_out_of<'a>(
    rows: impl Iterator<Item = &'a Stats>,
    number: u8,
) -> (LeftOutCalls, LeftOutCalls) {
    let mut sums = (LeftOutCalls::default(), LeftOutCalls::default());
    for counted in rows.filter_map(|stats| stats.counter(number)) {
        sums.0.add_all(&counted.left_out);
        sums.1.add_all(&counted.own_left_out);
    }
    sums
}
