//! The table of functions or modules, whole or apart for each thread or process.
mod aligned;
mod detail;
mod one_line;

use crate::counters::{self, Marks};
use crate::order::{Sort, sorted};
use crate::recording::Names;
use crate::units::{Scale, grouped};
use hopscope_analyze::{AnalysisResult, Group, ROWS_MAX, Row};
use hopscope_event::CounterEntry;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the table is about.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub group: Group,
    pub sort: Sort,
    /// Times without a processor are known.
    pub off_cpu: bool,
    /// Four lines a row: as measured too, and how far the corrected sums may be off.
    pub in_detail: bool,
    pub counters: &'a [CounterEntry],
}

pub(crate) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    shown: Shown<'_>,
) -> io::Result<()> {
    if shown.group == Group::Module {
        writeln!(
            out,
            "total: calls into the module from outside; self: each of its calls\n"
        )?;
    }
    let mut parts: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in sorted(names, outcome, shown.sort) {
        let part = (row.key.process, row.key.thread);
        parts.entry(part).or_default().push(row);
    }
    if parts.is_empty() {
        return writeln!(out, "no calls");
    }
    let mut is_any_uncertain = false;
    let mut marks = Marks::default();
    for (place, ((process, thread), rows)) in parts.into_iter().enumerate() {
        let process = process.map(|ix| names.process(ix));
        let mut heading: Vec<_> = thread
            .map(|ix| names.thread(ix))
            .into_iter()
            .chain(process)
            .collect();
        if heading.is_empty()
            && outcome.rows.len() >= ROWS_MAX
            && matches!(shown.group, Group::Thread | Group::Process)
        {
            heading.push(format!(
                "all others together, beyond {} rows",
                grouped(ROWS_MAX as u64)
            ));
        }
        if !heading.is_empty() {
            let gap = if place > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}", heading.join(" of "))?;
        }
        if shown.in_detail {
            detail::write(out, names, outcome, scale, &rows, shown, &mut marks)?
        } else {
            is_any_uncertain |=
                one_line::write(out, names, outcome, scale, &rows, shown, &mut marks)?
        }
    }
    if is_any_uncertain {
        writeln!(out, "{}", one_line::UNCERTAIN)?;
    }
    if !shown.in_detail {
        counters::legend(out, shown.counters)?;
    }
    marks.write(out)
}
