//! The table of functions or modules, whole or apart for each thread or process.
use crate::order::{Sort, own, row_name, sorted, total};
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{Corrected, Distribution, Group, Outcome, ROWS_MAX, Row};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the table is about.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub group: Group,
    pub sort: Sort,
    /// Times without a processor are known.
    pub off_cpu: bool,
}

pub(crate) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &Outcome,
    scale: &Scale,
    shown: Shown,
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
        part(out, names, outcome, scale, &rows, shown.off_cpu)?;
    }
    Ok(())
}

fn part(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &Outcome,
    scale: &Scale,
    rows: &[&Row],
    off_cpu: bool,
) -> io::Result<()> {
    let correction = outcome.correction.as_ref();
    let whole: i128 = rows.iter().map(|r| own(&r.stats, correction)).sum();
    let mut lines = vec![titles(correction.is_some())];
    for row in rows {
        let s = &row.stats;
        let calls = grouped(s.balance.exits + s.balance.tail_exits);
        let name = row_name(names, &row.key);
        let line = |what: &str, sum: i128, range: Option<Corrected>, d: &Distribution| {
            cells(scale, what, sum, range, whole, d)
        };
        let mut block = match correction {
            Some(c) => {
                let (all, alone) = (s.corrected_total(c), s.corrected_self(c));
                vec![
                    line(
                        "total corrected",
                        all.median,
                        Some(all),
                        &s.inclusive_corrected,
                    ),
                    line("total raw", s.outer_ticks, None, &s.inclusive),
                    line(
                        "self corrected",
                        alone.median,
                        Some(alone),
                        &s.own_corrected,
                    ),
                    line("self raw", s.self_ticks, None, &s.own),
                ]
            }
            None => vec![
                line("total", total(s, None), None, &s.inclusive),
                line("self", own(s, None), None, &s.own),
            ],
        };
        block[0][0] = calls;
        block[0][NAME] = name;
        if s.suspended_ticks > 0 {
            let mut cells = Cells::default();
            cells[1] = "suspended".to_owned();
            cells[2] = scale.text(s.suspended_ticks);
            block.push(cells);
        }
        if off_cpu {
            // Beside the times as measured, of which it is a part.
            let raw = usize::from(correction.is_some());
            let off = |ticks: u128| i128::try_from(ticks).unwrap_or(i128::MAX);
            let (ticks, preempted) = (s.off_cpu.ticks, s.off_cpu.preempted_ticks);
            block[raw][OFF_CPU] = share(off(ticks), s.outer_ticks);
            block[raw][OFF_CPU + 1] = share(off(preempted), s.outer_ticks);
        }
        lines.append(&mut block);
    }
    if correction.is_none() {
        lines.iter_mut().for_each(|l| l[4].clear());
    }
    if !off_cpu {
        let clear = |l: &mut Cells| l[OFF_CPU..OFF_CPU + 2].iter_mut().for_each(String::clear);
        lines.iter_mut().for_each(clear);
    }
    aligned(out, &lines)
}

const COLUMNS: usize = 13;
/// And, in the next column, what of it was against the thread's will.
const OFF_CPU: usize = 5;
const NAME: usize = 12;

type Cells = [String; COLUMNS];

fn titles(corrected: bool) -> Cells {
    let range = if corrected { "lowest..highest" } else { "" };
    [
        "calls",
        "time",
        "sum",
        "of self",
        range,
        "off CPU",
        "preempted",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "name",
    ]
    .map(str::to_owned)
}

fn cells(
    scale: &Scale,
    what: &str,
    sum: i128,
    range: Option<Corrected>,
    whole: i128,
    distribution: &Distribution,
) -> Cells {
    let q = |parts| scale.quantile(distribution.quantile(parts));
    let range = range.map(|r| format!("{}..{}", scale.text(r.low), scale.text(r.high)));
    let part = match what {
        "self" | "self corrected" => share(sum, whole),
        _ => String::new(),
    };
    [
        String::new(),
        what.to_owned(),
        scale.text(sum),
        part,
        range.unwrap_or_default(),
        String::new(),
        String::new(),
        q(500),
        q(900),
        q(990),
        q(999),
        scale.quantile(distribution.max()),
        String::new(),
    ]
}

/// Numbers to the right, words to the left, names last so that long ones disturb nothing.
fn aligned(out: &mut impl Write, lines: &[Cells]) -> io::Result<()> {
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max();
    let widths: [usize; COLUMNS] = std::array::from_fn(|c| width(c).unwrap_or(0));
    for line in lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            match column {
                NAME => text.push_str(&format!("  {cell}")),
                _ if width == 0 => {}
                1 => text.push_str(&format!("  {cell:<width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(
            out,
            "{}",
            text.trim_end().strip_prefix("  ").unwrap_or(&text)
        )?;
    }
    Ok(())
}
