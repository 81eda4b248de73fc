//! A row for each function: counts and percentiles.
use super::counters;
use super::table::columns;
use super::{Facts, Rows, Schema, Value};
use crate::order::{Sort, sorted};
use crate::recording::Names;
use crate::timeline::tenths_ns;
use hopscope_analyze::{AnalysisResult, Correction, Distribution, Quantile, Stats};
use hopscope_event::{CounterEntry, TscFrequency};
use std::io;

/// Corrected times have the median probe cost taken out; they are absent where it is not known.
pub static FUNCTIONS: Schema = Schema {
    name: "functions",
    columns: columns! {
        "row" Text "function; note",
        "module" Text "path of the file that the function is in",
        "function" Text "demangled name",
        "function_id" U64 "row of the function in the recording",
        "entries" U64 "calls that began",
        "exits" U64 "of these: returned",
        "tail_exits" U64 "left by a jump to another function",
        "open_at_end" U64 "still open when the recording ended",
        "declared_lost" U64 "went on in the unmeasured original",
        "cut_by_loss" U64 "their end may be among lost records",
        "unwound" U64 "left without an exit: longjmp, exception, end of the thread",
        "moved" U64 "another thread ran on their stack meanwhile: their end is not known",
        "ends_without_begin" U64 "ends whose begin is not recorded",
        "total_raw_ns" F64 "sum over outermost calls, as measured",
        "own_raw_ns" F64 "sum without measured callees, as measured",
        "total_corrected_ns" F64 "total_raw_ns with the median probe cost taken out; absent where it is not known",
        "own_corrected_ns" F64 "own_raw_ns with the median probe cost taken out; absent where it is not known",
        "corrected" U64 "1: percentiles have the median probe cost taken out; 0: they are as measured",
        "call_p50_ns" F64 "percentiles of one call; absent when negative",
        "call_p90_ns" F64 "",
        "call_p99_ns" F64 "",
        "call_p99_9_ns" F64 "",
        "call_max_ns" F64 "",
        "own_p50_ns" F64 "the same of own times",
        "own_p90_ns" F64 "",
        "own_p99_ns" F64 "",
        "own_p99_9_ns" F64 "",
        "own_max_ns" F64 "",
        "negative_calls" U64 "calls whose time is negative after correction",
        "negative_own" U64 "calls whose own time is negative",
        "line" I64 "line of the function's begin, where debug information has it",
        "file" Text "its source file",
        "note" Text "what else must be known",
    },
    more: Vec::new(),
};

/// With columns for these counters.
pub fn functions_schema(of: &[CounterEntry]) -> Schema {
    counters::with_functions(&FUNCTIONS, of)
}

fn quantiles(d: &Distribution, frequency: TscFrequency) -> [Value<'static>; 5] {
    let ns = |q| match q {
        Quantile::Ticks(t) => {
            Value::F64(tenths_ns(frequency, i64::try_from(t).unwrap_or(i64::MAX)))
        }
        Quantile::Empty | Quantile::Negative => Value::None,
    };
    [
        ns(d.quantile(500)),
        ns(d.quantile(900)),
        ns(d.quantile(990)),
        ns(d.quantile(999)),
        ns(d.max()),
    ]
}

/// By total time, largest first.
///
/// # Errors
/// Those of the output.
pub fn write_functions(
    rows: &mut impl Rows,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    frequency: TscFrequency,
    counters: &[CounterEntry],
    facts: &Facts,
) -> io::Result<()> {
    let correction = outcome.correction.as_ref();
    let ns = |ticks: i128| {
        let ns = ticks as f64 * 1e9 / frequency.0.max(1) as f64;
        Value::F64((ns * 10.0).round() / 10.0)
    };
    for row in sorted(names, outcome, Sort::Total) {
        let Some(function) = row.key.function else {
            continue;
        };
        let (s, b) = (&row.stats, row.stats.balance);
        let entry = names.function_entry(function);
        let (call_times, own_times) = match correction {
            Some(_) => (&s.inclusive_corrected, &s.own_corrected),
            None => (&s.inclusive, &s.own),
        };
        let mut values: Vec<Value<'_>> = vec![
            "function".into(),
            names.raw_module_of(function).into(),
            names.raw_function(function).into(),
            function.0.into(),
        ];
        values.extend(
            [
                b.entries,
                b.exits,
                b.tail_exits,
                b.open_at_end,
                b.escaped,
                b.cut,
                b.unwound,
                b.moved,
                b.ends_open_at_start + b.ends_cut + b.ends_moved,
            ]
            .map(Value::U64),
        );
        values.extend([s.outer_ticks, s.self_ticks].map(ns));
        let corrected = |ticks: fn(&Stats, &Correction) -> i128| {
            correction.map_or(Value::None, |c| ns(ticks(s, c)))
        };
        values.push(corrected(|s, c| s.corrected_total(c).median));
        values.push(corrected(|s, c| s.corrected_self(c).median));
        values.push(u64::from(correction.is_some()).into());
        values.extend(quantiles(call_times, frequency));
        values.extend(quantiles(own_times, frequency));
        values.push(call_times.negative().into());
        values.push(own_times.negative().into());
        values.push(entry.and_then(|e| e.line).map(i64::from).into());
        values.push(entry.and_then(|e| e.file.as_deref()).into());
        for counter in counters {
            counters::of_function(&mut values, counter, s.counter(counter.number));
        }
        values.push(Value::None);
        rows.row(&values)?;
    }
    rows.finish(facts)
}
