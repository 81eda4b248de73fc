//! What is known of each row: sums and percentiles corrected and as measured, with the ranges of the sums.
use super::{Shown, aligned};
use crate::counters::{self, Marks};
use crate::order::{own, row_name, total};
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{AnalysisResult, Corrected, Distribution, Row};
use std::io::{self, Write};

pub(super) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    rows: &[&Row],
    shown: Shown<'_>,
    marks: &mut Marks,
) -> io::Result<()> {
    let off_cpu = shown.off_cpu;
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
        for [what, sum, mean] in counters::lines(shown.counters, s, marks) {
            let mut cells = Cells::default();
            (cells[1], cells[2], cells[RANGE]) = (what, sum, mean);
            block.push(cells);
        }
        lines.append(&mut block);
    }
    if correction.is_none() && shown.counters.is_empty() {
        lines.iter_mut().for_each(|l| l[RANGE].clear());
    }
    if !off_cpu {
        let clear = |l: &mut Cells| l[OFF_CPU..OFF_CPU + 2].iter_mut().for_each(String::clear);
        lines.iter_mut().for_each(clear);
    }
    aligned::write(out, &lines, &[1])
}

const COLUMNS: usize = 13;
const RANGE: usize = 4;
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
