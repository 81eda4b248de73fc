//! For people: columns of means, and what they do not contain.
use super::{
    callees_not_corrected, has_ipc, ipc, is_approximate, left_out_of, own_per_call, per_call, shown,
};
use crate::printable_text::printable;
use crate::units::grouped;
use hopscope_analyze::{AnalysisResult, LeftOut, LeftOutCalls, Stats};
use hopscope_event::CounterEntry;
use std::io::{self, Write};

/// Below a table with a count that is marked.
pub(crate) const APPROXIMATE: &str = "~ approximate: contains calls of functions without this counter, or calls whose cost is not known";

/// Behind a number that is explained below.
pub(crate) const MARK: &str = " ~";
/// What the columns hold.
pub(crate) const PER_CALL: &str =
    "mean of a call, without what measured calls made by it counted that have the counter";

/// Lines of a header.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, counters: &[CounterEntry]) -> io::Result<()> {
    for (nth, counter) in counters.iter().enumerate() {
        let title = if nth == 0 { "counters" } else { "" };
        writeln!(
            out,
            "{title:<10} {}{}: {}",
            printable(&counter.name),
            if counter.event.is_software() {
                ", counted by the kernel"
            } else {
                " in user mode"
            },
            about(counter)
        )?;
    }
    Ok(())
}

fn about(counter: &CounterEntry) -> String {
    let cost = match counter.cost {
        None => "what probes count of themselves was not measured: not corrected".to_owned(),
        Some(cost) => {
            let [low, median, high] = cost.bias.map(grouped);
            let pair = match cost.pair {
                Some(pair) => format!(" and adds {} to its caller's: taken out", grouped(pair)),
                None => {
                    ": taken out; what it adds to its caller's is not known and stays in".into()
                }
            };
            format!("a call counts {median} ({low}..{high}) too many{pair}")
        }
    };
    match counter.emulated {
        true => format!(
            "EMULATED (answered by the measured program in a test, not counted by a processor); {cost}"
        ),
        false => cost,
    }
}

/// What the table has to explain below it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    pub(crate) approximate: bool,
}

impl Marks {
    fn marked(&mut self, text: String, approximate: bool) -> String {
        self.approximate |= approximate;
        text + if approximate { MARK } else { "" }
    }

    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        match self.approximate {
            true => writeln!(out, "{APPROXIMATE}"),
            false => Ok(()),
        }
    }
}

/// Below a table with columns of these.
pub(crate) fn legend(out: &mut impl Write, counters: &[CounterEntry]) -> io::Result<()> {
    let names: Vec<_> = counters.iter().map(|c| printable(&c.name)).collect();
    match names[..] {
        [] => Ok(()),
        _ => writeln!(out, "{}: {PER_CALL}", names.join(", ")),
    }
}

/// A column for each counter, of own counts a call, and instructions per cycle.
pub(crate) fn titles(counters: &[CounterEntry]) -> Vec<String> {
    let title = |c: &CounterEntry| printable(&c.name);
    let ipc = has_ipc(counters).then(|| "IPC".to_owned());
    counters.iter().map(title).chain(ipc).collect()
}

/// The cells of a row. No cell where its calls do not have the counter; `-`: all of them are left out.
pub(crate) fn cells(counters: &[CounterEntry], stats: &Stats, marks: &mut Marks) -> Vec<String> {
    let mut cells: Vec<String> = (counters.iter())
        .map(|counter| {
            let Some(counted) = stats.counter(counter.number) else {
                return String::new();
            };
            let Some(mean) = own_per_call(counter, stats) else {
                return "-".to_owned();
            };
            marks.marked(number(mean), is_approximate(counter, counted))
        })
        .collect();
    if has_ipc(counters) {
        cells.push(ipc(counters, stats).map_or(String::new(), |ipc| format!("{ipc:.2}")));
    }
    cells
}

/// What is counted, sum and mean: lines of the detailed table.
pub(crate) fn lines(
    counters: &[CounterEntry],
    stats: &Stats,
    marks: &mut Marks,
) -> Vec<[String; 3]> {
    let mut lines = Vec::new();
    for counter in counters {
        let Some(counted) = stats.counter(counter.number) else {
            continue;
        };
        let corrected = if counter.cost.is_some() {
            " corrected"
        } else {
            ""
        };
        for (what, sum) in [("total", &counted.total), ("self", &counted.own)] {
            let shown = shown(sum, counter.cost.as_ref());
            let mean = per_call(shown, sum.calls);
            let approximate = match what {
                "self" => is_approximate(counter, counted),
                _ => callees_not_corrected(sum, counter.cost.as_ref()),
            };
            lines.push([
                format!("{} {what}{corrected}", printable(&counter.name)),
                marks.marked(grouped(shown), approximate),
                mean.map_or("-".to_owned(), |mean| format!("{} a call", number(mean))),
            ]);
        }
    }
    if let Some(ipc) = ipc(counters, stats) {
        let ipc = format!("{ipc:.2}");
        lines.push(["instructions per cycle, self".into(), ipc, String::new()]);
    }
    lines
}

fn number(mean: f64) -> String {
    match mean.abs() {
        size if size < 99.95 => format!("{mean:.1}"),
        _ => grouped(mean.round() as i128),
    }
}

/// Calls that counts do not contain.
pub(crate) fn losses(
    out: &mut impl Write,
    counters: &[CounterEntry],
    outcome: &AnalysisResult,
) -> io::Result<()> {
    for counter in counters {
        let stats = outcome.rows.iter().map(|row| &row.stats);
        let (left_out, own) = left_out_of(stats, counter.number);
        let name = printable(&counter.name);
        let mut line = |left_out: LeftOutCalls, what: &str| match left_out.calls() {
            0 => Ok(()),
            calls => {
                let reasons: Vec<String> = (left_out.reasons())
                    .map(|(why, calls)| format!("{} {}", grouped(calls), reason(why)))
                    .collect();
                let reasons = reasons.join("; ");
                writeln!(
                    out,
                    "{:>14}  calls are not in the {what} of {name}: {reasons}",
                    grouped(calls)
                )
            }
        };
        line(left_out, "counts")?;
        line(own, "own counts")?;
    }
    Ok(())
}

fn reason(why: LeftOut) -> &'static str {
    match why {
        LeftOut::Rescheduled => "lost the processor, or the event its counter, meanwhile",
        LeftOut::NotCounting => "had no counter of the processor",
        LeftOut::NotOpened => "began before the thread's counter was opened",
        LeftOut::Incomplete => "lack a reading",
        LeftOut::MayHaveWrapped => "took so long that the counter may have wrapped",
        LeftOut::Suspended => "were suspended while other stacks of their thread ran",
        LeftOut::Callee => "called one whose count is not known",
    }
}
