//! Which row comes first.
use crate::recording::Names;
use hopscope_analyze::{AnalysisResult, Correction, Key, Quantile, Row, Stats};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    Total,
    SelfTime,
    Calls,
    P50,
    P99,
    Max,
    Name,
}

/// Times are the corrected ones when the probe cost is known.
pub(crate) fn total(stats: &Stats, correction: Option<&Correction>) -> i128 {
    correction.map_or(stats.outer_ticks, |c| stats.corrected_total(c).median)
}

pub(crate) fn own(stats: &Stats, correction: Option<&Correction>) -> i128 {
    correction.map_or(stats.self_ticks, |c| stats.corrected_self(c).median)
}

fn ticks(quantile: Quantile) -> i128 {
    match quantile {
        Quantile::Empty => -2,
        Quantile::Negative => -1,
        Quantile::Ticks(ticks) => i128::from(ticks),
    }
}

fn measure(stats: &Stats, correction: Option<&Correction>, sort: Sort) -> i128 {
    let inclusive = match correction {
        Some(_) => &stats.inclusive_corrected,
        None => &stats.inclusive,
    };
    match sort {
        Sort::Total => total(stats, correction),
        Sort::SelfTime => own(stats, correction),
        Sort::Calls => i128::from(stats.balance.entries),
        Sort::P50 => ticks(inclusive.quantile(500)),
        Sort::P99 => ticks(inclusive.quantile(990)),
        Sort::Max => ticks(inclusive.max()),
        Sort::Name => 0,
    }
}

pub(crate) fn row_name(names: &Names<'_>, key: &Key) -> String {
    match (key.function, key.module) {
        (Some(function), _) => names.qualified(function),
        (None, Some(module)) => names.module(module),
        (None, None) => "unknown".to_owned(),
    }
}

/// Largest first, names ascending; equal rows by name, so that the order never varies.
pub(crate) fn sorted<'a>(
    names: &Names<'_>,
    outcome: &'a AnalysisResult,
    sort: Sort,
) -> Vec<&'a Row> {
    let correction = outcome.correction.as_ref();
    let mut rows: Vec<_> = outcome.rows.iter().collect();
    rows.sort_by_cached_key(|row| {
        let size = measure(&row.stats, correction, sort);
        (std::cmp::Reverse(size), row_name(names, &row.key), row.key)
    });
    rows
}
