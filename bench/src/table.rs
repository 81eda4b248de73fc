//! Results for people: columns as wide as their widest cell, goals, and what was not measured.
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use hopscope_compare::stats::Spread;
use std::fmt::{self, Display, Formatter, Write};

pub(crate) struct Table<const N: usize> {
    /// Columns of names come first, aligned to the left. Figures are aligned to the right.
    names: usize,
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Of `head` the first `names` columns are names.
    pub(crate) fn new(names: usize, head: [&str; N]) -> Table<N> {
        Table {
            names,
            rows: vec![head.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }
}

impl<const N: usize> Display for Table<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                if column < self.names {
                    write!(line, "{gap}{cell:<width$}")?;
                } else {
                    write!(line, "{gap}{cell:>width$}")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A line for each row.
pub(crate) fn lines<T>(
    out: &mut String,
    rows: impl IntoIterator<Item = T>,
    line: impl Fn(T) -> String,
) {
    for row in rows {
        *out += &line(row);
        out.push('\n');
    }
}

/// Median and 10th to 90th percentile, of a value in `unit`s.
pub(crate) fn spread(spread: Spread, unit: f64, decimals: usize) -> String {
    let [median, p10, p90] = [spread.median, spread.p10, spread.p90].map(|value| value / unit);
    format!("{median:.decimals$} ({p10:.decimals$} .. {p90:.decimals$})")
}

/// What a bench ends with.
pub(crate) fn closing(goals: &[Goal], not_measured: &[NotMeasured]) -> String {
    let mut out = String::new();
    if !goals.is_empty() {
        let mut table = Table::new(1, ["", "", "goal", ""]);
        for goal in goals {
            let number = |value| number(goal.name, value);
            table.row([
                goal.name.to_owned(),
                goal.measured.map_or("-".to_owned(), number),
                format!("{} {}", goal.sign(), number(goal.bound())),
                goal.verdict().to_owned(),
            ]);
        }
        let _ = write!(out, "{table}");
    }
    for missing in not_measured {
        let _ = writeln!(out, "not measured: {}: {}", missing.what, missing.reason);
    }
    out
}

/// The name tells the unit.
fn number(name: &str, value: f64) -> String {
    match name {
        name if name.ends_with("_pps") => format!("{:.2} M/s", value / 1e6),
        name if name.ends_with("_per_s") => format!("{:.2} M/s", value / 1e6),
        name if name.ends_with("_bytes") => format!("{:.2} MB", value / 1e6),
        name if name.ends_with("_ns") => format!("{value:.0} ns"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(1, ["module", "mean", "p50"]);
        table.row(["acl".into(), "12.5".into(), "-".into()]);
        let text = "module  mean  p50\nacl     12.5    -\n";
        assert_eq!(table.to_string(), text);
    }

    #[test]
    fn goals_come_before_what_was_not_measured() {
        let goals = [
            Goal::at_least("tx_pps", Some(2e6), 1e6),
            Goal::at_most("ratio", None, 1.05),
        ];
        let missing = NotMeasured::new("iperf3", "not installed");
        let text = closing(&goals, &[missing]);
        let lines = text.lines().map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.join(" ")
        });
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines[1], "tx_pps 2.00 M/s >= 1.00 M/s met");
        assert_eq!(lines[2], "ratio - <= 1.05 not measured");
        assert_eq!(lines[3], "not measured: iperf3: not installed");
    }
}
