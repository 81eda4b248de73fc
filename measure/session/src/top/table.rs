//! The rows of a picture: chosen, ordered, in words.
use super::by::By;
use super::live::{Numbers, Snapshot};
use super::names::Name;
use hopscope_analyze::Quantile;
use std::cmp::Reverse;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its place among the names.
    pub at: usize,
    pub numbers: Numbers,
    pub calls_per_s: f64,
    /// Of the own time of all measured functions, 0 … 1.
    pub share: f64,
}

/// Which part of a snapshot is looked at, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChoice {
    pub by: By,
    /// Part of a name; empty for all.
    pub filter: String,
    /// Since the start instead of the last interval.
    pub whole: bool,
}

pub fn rows(snapshot: &Snapshot, choice: &RowChoice) -> Vec<Row> {
    let names = &snapshot.names;
    let (all, span_s) = if choice.whole {
        (&snapshot.whole, snapshot.since_start_s)
    } else {
        (&snapshot.now, snapshot.span_s)
    };
    let own: i128 = all.iter().map(|n| n.own_ticks.max(0)).sum();
    let filter = choice.filter.to_lowercase();
    let wanted = |name: &Name| {
        let qualified = format!("{}!{}", name.module, name.function).to_lowercase();
        qualified.contains(&filter)
    };
    let mut rows: Vec<Row> = all
        .iter()
        .zip(names.iter())
        .enumerate()
        .filter(|(_, (_, name))| wanted(name))
        .map(|(at, (numbers, _))| Row {
            at,
            numbers: *numbers,
            calls_per_s: numbers.calls as f64 / span_s.max(1e-9),
            share: numbers.own_ticks.max(0) as f64 / own.max(1) as f64,
        })
        .collect();
    let name = |row: &Row| names[row.at].function.clone();
    match choice.by {
        By::Name => rows.sort_by_cached_key(name),
        by => rows.sort_by_cached_key(|row| (Reverse(size(row, by)), name(row))),
    }
    rows
}

fn size(row: &Row, by: By) -> i128 {
    let ticks = |quantile| match quantile {
        Quantile::Empty => -2,
        Quantile::Negative => -1,
        Quantile::Ticks(ticks) => i128::from(ticks),
    };
    match by {
        By::Share => row.numbers.own_ticks,
        By::Calls => i128::from(row.numbers.calls),
        By::P50 => ticks(row.numbers.p50),
        By::P99 => ticks(row.numbers.p99),
        By::Max => ticks(row.numbers.max),
        By::Name => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(calls: u64, own: i128, max: u64) -> Numbers {
        Numbers {
            calls,
            own_ticks: own,
            max: Quantile::Ticks(max),
            ..Numbers::default()
        }
    }

    fn choice(by: By, filter: &str) -> RowChoice {
        RowChoice {
            by,
            filter: filter.into(),
            whole: false,
        }
    }

    #[test]
    fn order_filter_and_shares() {
        let name = |function: &str, module: &str| Name {
            function: function.into(),
            module: module.into(),
        };
        let names = vec![name("acl", "acl.so"), name("nat", "nf"), name("Ab", "nf")];
        let snapshot = Snapshot {
            now: vec![
                numbers(10, 300, 5),
                numbers(30, 100, 90),
                numbers(20, -7, 50),
            ],
            whole: vec![Numbers::default(); 3],
            span_s: 2.0,
            names: names.into(),
            ..Snapshot::default()
        };
        let order = |by, filter: &str| -> Vec<usize> {
            let rows = rows(&snapshot, &choice(by, filter));
            rows.iter().map(|r| r.at).collect()
        };
        assert_eq!(order(By::Share, ""), [0, 1, 2]);
        assert_eq!(order(By::Calls, ""), [1, 2, 0]);
        assert_eq!(order(By::Max, ""), [1, 2, 0]);
        assert_eq!(order(By::Name, ""), [2, 0, 1]);
        assert_eq!(order(By::Name, "NF!"), [2, 1]);
        let first = rows(&snapshot, &choice(By::Share, ""))[0];
        assert_eq!((first.calls_per_s, first.share), (5.0, 0.75));
    }
}
