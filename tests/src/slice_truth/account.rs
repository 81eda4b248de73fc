//! Nothing is missing without a counter that says so, as often as it says.
use super::calls::{Calls, Direction};
use super::check::{Found, Read};
use super::traffic::Traffic;
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::slice::{Counter, SliceSummary};
use hopscope_tests::command::run;
use hopscope_tests::{compile_c, hopscope};
use std::collections::{BTreeMap, HashMap};
use std::process::Command;

/// Packets may be on their way still when the programs at both ends are gone.
const LOOKS: u32 = 400;

/// Of a slicer that runs: the packets that its counters have under way are those that its slots hold.
pub(super) fn slots_agree(pid: i32) -> Result<()> {
    let program = compile_c(&["slice/bpf_slots.c"], &["-O2", "-Wall"])?;
    let mut last = (0, 0);
    for _ in 0..LOOKS {
        let counted = in_flight(pid)?;
        let slots = run(Command::new(&program).arg(pid.to_string()))?.expect_code(0)?;
        last = (counted, slots.stdout.trim().parse()?);
        if last.0 == last.1 && counted == in_flight(pid)? {
            return Ok(());
        }
    }
    bail!(
        "{} under way by the counters, {} slots taken",
        last.0,
        last.1
    )
}

fn in_flight(pid: i32) -> Result<i64> {
    let out = hopscope(&["slice", "stat", "--of", &pid.to_string(), "--json"])?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let lines: Result<Vec<serde_json::Value>, _> = lines.collect();
    let lines = lines?;
    let ours = lines.iter().find(|line| line["pid"] == pid);
    let ours = ours.with_context(|| format!("no {pid} in {}", out.stdout))?;
    ours["in_flight"].as_i64().context("in_flight")
}

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
        + get(Counter::NoSlot)
        - get(Counter::PlacedLate);
    // A segment that software GSO cut and that found no slot was not seen before.
    let is_cut = get(Counter::Split) > 0;
    ensure!(
        get(Counter::Seen) == begun || (is_cut && get(Counter::Seen) < begun),
        "{counters:?}"
    );
    Ok(())
}

/// What was read and no record with a reader has.
#[derive(Debug, Default)]
struct Missing {
    /// Bytes; of UDP messages.
    units: u64,
    /// Without a record between them.
    stretches: u64,
}

/// Each byte once among the records with a reader. For the rest a record each was lost, and counted: as
/// long as the longest of those that are there.
pub(super) fn covered(
    traffic: &Traffic,
    found: &Found,
    calls: &HashMap<Direction, Calls>,
    summary: &SliceSummary,
) -> Result<()> {
    let mut missing = Missing::default();
    let mut longest = 1;
    for (direction, calls) in calls {
        let mut reads = found.get(direction).cloned().unwrap_or_default();
        reads.sort_unstable_by_key(|read| read.arrived);
        let mut ranges = Covered::default();
        for read in &reads {
            // What TCP sends again it may cut elsewhere: a packet may have bytes that were there already, and
            // some that were not.
            let is_right = match traffic.may_lose || traffic.may_reorder || traffic.may_duplicate {
                true => ranges.has_less(read),
                false => ranges.has_none(read),
            };
            ensure!(is_right, "{direction:?}: twice: {read:?}");
            ranges.add(read);
            longest = longest.max(read.to - read.from);
        }
        let ranges: Vec<(u64, u64)> = ranges.0.into_iter().collect();
        let mut has = Ranges::new(&ranges);
        let mut was_missing = false;
        for call in &calls.received {
            let units = if traffic.is_stream() { call.bytes } else { 1 };
            has.without(call.at, call.at + units, &mut missing, &mut was_missing);
        }
    }
    let lost = [
        Counter::NoSlot,
        Counter::RingFull,
        Counter::Aged,
        Counter::StaleEnded,
        Counter::Ambiguous,
        Counter::QueueFull,
    ];
    let lost = lost.iter().map(|counter| summary.counters.get(*counter));
    let lost = lost.sum::<u64>() + summary.in_flight;
    ensure!(
        missing.stretches <= lost && missing.units <= lost * longest,
        "{missing:?}, and {lost} records were lost: {:?}",
        summary.counters
    );
    if missing.units > 0 || lost > 0 {
        println!("{missing:?}, {lost} records lost: {:?}", summary.counters);
    }
    Ok(())
}

/// Ranges by where they begin, without overlap: to where.
#[derive(Default)]
struct Covered(BTreeMap<u64, u64>);

impl Covered {
    fn before(&self, at: u64) -> Option<(u64, u64)> {
        self.0
            .range(..at)
            .next_back()
            .map(|(from, to)| (*from, *to))
    }

    fn has_none(&self, read: &Read) -> bool {
        self.before(read.to).is_none_or(|(_, to)| to <= read.from)
    }

    /// Not every byte of it.
    fn has_less(&self, read: &Read) -> bool {
        let last = self.before(read.from + 1);
        last.is_none_or(|(_, to)| to < read.to)
    }

    fn add(&mut self, read: &Read) {
        let (mut from, mut to) = (read.from, read.to);
        while let Some((begin, end)) = self.before(to + 1)
            && end >= from
        {
            self.0.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.0.insert(from, to);
    }
}

/// Ranges in order, without overlap, asked in order.
struct Ranges<'a> {
    rest: &'a [(u64, u64)],
}

impl<'a> Ranges<'a> {
    fn new(all: &'a [(u64, u64)]) -> Ranges<'a> {
        Ranges { rest: all }
    }

    /// Adds what of `from` to `to` is in none. `was`: what lies before `from` is in none either.
    fn without(&mut self, from: u64, to: u64, missing: &mut Missing, was: &mut bool) {
        let mut at = from;
        while at < to {
            while let [(_, end), rest @ ..] = self.rest
                && *end <= at
            {
                self.rest = rest;
                *was = false;
            }
            let (begin, end) = self.rest.first().copied().unwrap_or((to, to));
            if begin <= at {
                *was = false;
                at = end.min(to);
                continue;
            }
            let until = begin.min(to);
            missing.units += until - at;
            missing.stretches += u64::from(!*was);
            *was = true;
            at = until;
        }
    }
}
