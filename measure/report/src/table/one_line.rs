//! One line a row.
use super::{Shown, aligned};
use crate::counters::{self, MARK, Marks};
use crate::order::{own, row_name, total};
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{AnalysisResult, Corrected, Row};
use std::io::{self, Write};
use std::ops::Range;

const COLUMNS: usize = 10;
/// In front of the name are those of counters.
type Cells = Vec<String>;

const TITLES: [&str; COLUMNS] = [
    "calls",
    "total",
    "self",
    "self %",
    "p50",
    "p99",
    "max",
    "off CPU",
    "preempted",
    "suspended",
];
const OFF_CPU: usize = 7;
const SUSPENDED: usize = 9;

/// Below a table with a sum that [`is_uncertain`].
pub(super) const UNCERTAIN: &str = "? may be off by more than 10 %: -v shows the range";
const UNCERTAIN_PART: f64 = 0.1;

/// True when a sum is marked as uncertain. Percentiles are those of total times, corrected where the sums are.
pub(super) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    rows: &[&Row],
    shown: Shown<'_>,
    marks: &mut Marks,
) -> io::Result<bool> {
    let Shown {
        off_cpu, counters, ..
    } = shown;
    let correction = outcome.correction.as_ref();
    let whole: i128 = rows.iter().map(|r| own(&r.stats, correction)).sum();
    let mut is_any_uncertain = false;
    let titles = TITLES.map(str::to_owned).into_iter();
    let titles = titles.chain(counters::titles(counters));
    let mut lines: Vec<Cells> = vec![titles.chain(["name".to_owned()]).collect()];
    for row in rows {
        let s = &row.stats;
        let ranges = correction.map(|c| (s.corrected_total(c), s.corrected_self(c)));
        let mut sum = |ticks: i128, range: Option<Corrected>| {
            let is_uncertain = range.is_some_and(is_uncertain);
            is_any_uncertain |= is_uncertain;
            scale.text(ticks) + if is_uncertain { " ?" } else { "" }
        };
        let all = sum(total(s, correction), ranges.map(|(total, _)| total));
        let alone = sum(own(s, correction), ranges.map(|(_, own)| own));
        let distribution = match correction {
            Some(_) => &s.inclusive_corrected,
            None => &s.inclusive,
        };
        let off = |ticks: u128| {
            if off_cpu {
                share(i128::try_from(ticks).unwrap_or(i128::MAX), s.outer_ticks)
            } else {
                String::new()
            }
        };
        let mut line = vec![
            grouped(s.balance.exits + s.balance.tail_exits),
            all,
            alone,
            share(own(s, correction), whole),
            scale.quantile(distribution.quantile(500)),
            scale.quantile(distribution.quantile(990)),
            scale.quantile(distribution.max()),
            off(s.off_cpu.ticks),
            off(s.off_cpu.preempted_ticks),
            match s.suspended_ticks {
                0 => String::new(),
                ticks => scale.text(ticks),
            },
        ];
        line.extend(counters::cells(counters, s, marks));
        line.push(row_name(names, &row.key));
        lines.push(line);
    }
    if !off_cpu {
        lines[0][OFF_CPU..OFF_CPU + 2]
            .iter_mut()
            .for_each(String::clear);
    }
    if rows.iter().all(|r| r.stats.suspended_ticks == 0) {
        lines[0][SUSPENDED].clear();
    }
    if is_any_uncertain {
        room_for_marks(&mut lines, 1..3, "?");
    }
    for column in COLUMNS..COLUMNS + counters.len() {
        if lines.iter().any(|line| line[column].ends_with(MARK)) {
            room_for_marks(&mut lines, column..column + 1, MARK);
        }
    }
    aligned::write(out, &lines, &[])?;
    Ok(is_any_uncertain)
}

/// Whether either end of the range is far from what is stated.
fn is_uncertain(sum: Corrected) -> bool {
    let off = (sum.high - sum.median).max(sum.median - sum.low);
    off as f64 > UNCERTAIN_PART * sum.median.unsigned_abs() as f64
}

/// The units stay in line.
fn room_for_marks(lines: &mut [Cells], columns: Range<usize>, mark: &str) {
    let cells = lines.iter_mut().flat_map(|line| &mut line[columns.clone()]);
    for cell in cells.filter(|cell| !cell.ends_with(mark)) {
        cell.push_str("  ");
    }
}
