//! What the numbers do not contain: open, lost, cut, refused. Lines whose count is 0 are left out,
//! except the identity itself.
mod hints;

use crate::printable_text::printable;
use crate::recording::{Names, Recording};
use crate::units::grouped;
use hopscope_analyze::AnalysisResult;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Most reasons of refusal that are listed one by one.
const REASONS_MAX: usize = 12;

pub(crate) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    names: &Names<'_>,
    outcome: &AnalysisResult,
) -> io::Result<()> {
    let b = &outcome.balance;
    let n = |count: u64| grouped(count);
    let moved = match b.moved {
        0 => String::new(),
        moved => format!(" + {} moved between threads", n(moved)),
    };
    writeln!(
        out,
        "\n{} entries = {} exits + {} tail exits + {} open at end + {} declared lost + {} cut by \
         loss + {} unwound{moved}",
        n(b.entries),
        n(b.exits),
        n(b.tail_exits),
        n(b.open_at_end),
        n(b.escaped),
        n(b.cut),
        n(b.unwound)
    )?;
    let o = &outcome.oddities;
    let negative = |d: fn(&hopscope_analyze::Stats) -> &hopscope_analyze::Distribution| -> u64 {
        outcome.rows.iter().map(|r| d(&r.stats).negative()).sum()
    };
    let lines = [
        (
            b.ends_open_at_start,
            "calls were open at the start; only their end was recorded",
        ),
        (
            b.ends_cut,
            "ends whose entry was lost or came before the start",
        ),
        (
            b.calls_moved(),
            "calls moved between threads with their stack, or may have: not paired, and not timed",
        ),
        (
            o.early_batches,
            "batches of records were evaluated before all records of their time were read: migrations may be missed",
        ),
        (
            o.lost,
            "records were lost: overwritten before the recorder came",
        ),
        (o.torn, "records were torn: reserved and never stored"),
        (
            o.missing,
            "records are missing from the file: the part that held them is damaged",
        ),
        (
            o.gaps,
            "gaps, after each of which every open call of the thread is unknown",
        ),
        (
            o.unknown,
            "records name a kind or function that the recording does not know",
        ),
        (
            o.inversions,
            "records are stamped before their predecessor (a signal inside a probe)",
        ),
        (
            o.values_unreadable,
            "captured values are absent: memory not mapped",
        ),
        (
            o.values_left_out,
            "captured arrays are cut: they had more elements than a call records",
        ),
        (
            o.values_homeless,
            "captured values belong to no call: its entry or end was lost",
        ),
        (
            o.values_ambiguous,
            "values captured in a body may be another stack's: it was open there too",
        ),
        (
            o.values_unknown,
            "captured values have a content that this version does not know",
        ),
        (
            o.readings_homeless,
            "readings of counters belong to no call: its entry or end was lost",
        ),
        (
            o.negative,
            "calls end before they begin by the clock; counted, not timed",
        ),
        (
            o.revived,
            "calls were found again on a stack that lies close to another",
        ),
        (
            o.stacks_given_up,
            "stacks were given up: too many at once in one thread",
        ),
        (
            outcome
                .rows
                .iter()
                .map(|r| r.stats.off_cpu.incomplete_calls)
                .sum(),
            "calls in whose time context switches were lost: more of it may be off CPU",
        ),
        (
            outcome.rows.iter().map(|r| r.stats.suspended_calls).sum(),
            "calls were suspended while other stacks of their thread ran: that time is in total, not in self",
        ),
        (negative(|s| &s.own), "own times are negative as measured"),
        (
            negative(|s| &s.inclusive_corrected),
            "total times are negative after correction",
        ),
        (
            negative(|s| &s.own_corrected),
            "own times are negative after correction",
        ),
        (
            outcome.tree.beyond(),
            "calls exceed the bounds of the tree and lack their path",
        ),
    ];
    for (count, what) in lines.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{:>14}  {what}", n(*count))?;
    }
    crate::counters::losses(out, recording.counters, outcome)?;
    hints::write(out, recording, names, outcome)?;
    for (thread, odd) in outcome.threads.iter().filter(|(_, o)| o.lost + o.torn > 0) {
        let name = names.thread(*thread);
        writeln!(
            out,
            "{:>14}  of these lost in {name}, {} torn",
            n(odd.lost),
            n(odd.torn)
        )?;
    }
    refusals(out, recording)
}

fn refusals(out: &mut impl Write, recording: &Recording<'_>) -> io::Result<()> {
    if recording.refusals.is_empty() {
        return Ok(());
    }
    let mut reasons: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for refusal in recording.refusals {
        let reason = reasons.entry(&refusal.reason).or_insert((0, &refusal.name));
        reason.0 += 1;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, (count, _))| (std::cmp::Reverse(*count), *reason));
    let total = recording.refusals.len() as u64;
    writeln!(
        out,
        "\nasked for and not measured, functions: {}",
        grouped(total)
    )?;
    for (reason, (count, example)) in reasons.iter().take(REASONS_MAX) {
        let (reason, example) = (printable(reason), printable(example));
        writeln!(out, "{:>14}  {reason} (such as {example})", grouped(*count))?;
    }
    let rest: u64 = reasons.iter().skip(REASONS_MAX).map(|(_, (n, _))| n).sum();
    match rest {
        0 => Ok(()),
        rest => writeln!(
            out,
            "{:>14}  for other reasons; --json lists each",
            grouped(rest)
        ),
    }
}
