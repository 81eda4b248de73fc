//! Nothing is missing without a counter that says so.
use super::calls::{Calls, Direction};
use super::check::Found;
use super::run::Traffic;
use anyhow::{Result, ensure};
use hopscope_event::slice::{Counter, SliceSummary};
use std::collections::HashMap;

pub(super) fn adds_up(summary: &SliceSummary, records: u64) -> Result<()> {
    let counters = &summary.counters;
    let get = |counter| counters.get(counter);
    ensure!(
        counters.in_flight() >= 0,
        "more ended than begun: {counters:?}"
    );
    ensure!(
        counters.in_flight() as u64 == summary.in_flight,
        "{summary:?}"
    );
    ensure!(
        get(Counter::Written) == records,
        "{records} records: {counters:?}"
    );
    let begun = get(Counter::Created) - get(Counter::Split)
        + get(Counter::Unmatched)
        + get(Counter::Unreadable)
        + get(Counter::NoSlot);
    // A segment that software GSO cut and that found no slot was not seen before.
    let is_cut = get(Counter::Split) > 0;
    ensure!(
        get(Counter::Seen) == begun || (is_cut && get(Counter::Seen) < begun),
        "{counters:?}"
    );
    Ok(())
}

/// Each byte once among the records with a reader; the rest is accounted for.
pub(super) fn covered(
    traffic: &Traffic,
    found: &Found,
    calls: &HashMap<Direction, Calls>,
    summary: &SliceSummary,
) -> Result<()> {
    let mut missing = 0;
    for (direction, calls) in calls {
        let mut ranges = found.get(direction).cloned().unwrap_or_default();
        ranges.sort_unstable();
        let mut upto = 0;
        for (from, to) in ranges {
            ensure!(from >= upto, "{direction:?}: {from} to {to} twice: {upto}");
            missing += from - upto;
            upto = to;
        }
        let unit = |bytes: u64| if traffic.protocol == "tcp" { bytes } else { 1 };
        let whole: u64 = calls.sent.iter().map(|call| unit(call.bytes)).sum();
        ensure!(upto <= whole, "{direction:?}: {upto} of {whole}");
        missing += whole - upto;
    }
    let explains = [
        Counter::NoSlot,
        Counter::RingFull,
        Counter::Aged,
        Counter::StaleEnded,
        Counter::QueueFull,
        Counter::Ambiguous,
        Counter::Dropped,
    ];
    let explained: u64 = explains
        .iter()
        .map(|counter| summary.counters.get(*counter))
        .sum();
    ensure!(
        missing == 0 || explained + summary.in_flight > 0,
        "{missing} have no record: {:?}",
        summary.counters
    );
    if missing > 0 || explained + summary.in_flight > 0 {
        println!("{missing} without a record: {:?}", summary.counters);
    }
    Ok(())
}
