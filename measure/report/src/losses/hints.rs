//! What would lose less, where much was lost.
use crate::recording::{Names, Recording};
use crate::units::{grouped, share};
use hopscope_analyze::AnalysisResult;
use hopscope_event::{FunctionId, callee};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Much: more than one record in so many.
const LOST_ONE_IN: u64 = 100;
/// Functions that are named, and the least part of all records that each has made.
const NAMED: usize = 5;
const RECORDS_ONE_IN: u64 = 50;
/// Largest ring that `record --buffer` takes.
const RING_MAX_BYTES: u64 = 1 << 30;
const RECORD_BYTES: u64 = 16;

#[derive(Default, Clone, Copy)]
struct Made {
    records: u64,
    own_ticks: i128,
}

/// One word to a shell, whatever is in it: names are as a target gave them.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    names: &Names<'_>,
    outcome: &AnalysisResult,
) -> io::Result<()> {
    let o = &outcome.oddities;
    if o.lost == 0 || o.lost.saturating_mul(LOST_ONE_IN) < o.records.saturating_add(o.lost) {
        return Ok(());
    }
    let mut functions: BTreeMap<FunctionId, Made> = BTreeMap::new();
    let mut all = Made::default();
    for node in outcome.tree.nodes() {
        let made = functions.entry(node.function).or_default();
        let own = crate::tree::own(node, outcome.correction.as_ref()).max(0);
        for made in [made, &mut all] {
            made.records += node.entries + node.calls;
            made.own_ticks += own;
        }
    }
    let mut most: Vec<(FunctionId, Made)> = functions.into_iter().collect();
    let measured = most.iter().filter(|(_, made)| made.records > 0).count();
    most.retain(|(_, made)| made.records * RECORDS_ONE_IN >= all.records);
    // Calls go with the function that makes them.
    most.retain(|(f, _)| !callee::is_call(&names.qualified(*f)));
    // Most records for the time that they tell of.
    let density = |made: &Made| made.records as f64 / (made.own_ticks.max(1) as f64);
    most.sort_by(|a, b| density(&b.1).total_cmp(&density(&a.1)));
    most.truncate(NAMED);
    // As few as leave a fifth of the records.
    let mut records = 0;
    let enough = most.iter().position(|(_, made)| {
        records += made.records;
        records * 5 >= all.records * 4
    });
    most.truncate(enough.map_or(NAMED, |at| at + 1));
    // Something is to be left to measure.
    most.truncate(measured.saturating_sub(1));
    if !most.is_empty() {
        let mut left_out = Made::default();
        for (_, made) in &most {
            left_out.records += made.records;
            left_out.own_ticks += made.own_ticks;
        }
        let patterns = most
            .iter()
            .map(|(f, _)| format!("-x {}", shell_word(&names.qualified(*f))));
        writeln!(
            out,
            "{:>14}  {}: {} of the records, {} of all own time",
            "without",
            patterns.collect::<Vec<_>>().join(" "),
            share(left_out.records.into(), all.records.into()),
            share(left_out.own_ticks, all.own_ticks)
        )?;
    }
    let ring_records = recording.meta.ring_records;
    let needed = ring_records.saturating_add(outcome.lost_at_once_max);
    let needed = needed
        .saturating_mul(RECORD_BYTES)
        .checked_next_power_of_two();
    match needed.filter(|needed| *needed <= RING_MAX_BYTES) {
        Some(needed) => writeln!(
            out,
            "{:>14}  --buffer {}M would have held the most that was lost at once: {} records",
            "or",
            (needed >> 20).max(1),
            grouped(outcome.lost_at_once_max)
        ),
        None => writeln!(
            out,
            "{:>14}  no --buffer would have held the most that was lost at once: {} records",
            "and",
            grouped(outcome.lost_at_once_max)
        ),
    }
}
