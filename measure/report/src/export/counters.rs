//! Columns of counters, in recordings that have some.
use super::{ColumnType, OwnedColumn, Schema, Value};
use hopscope_analyze::{CallCount, CountSum, CounterStats};
use hopscope_event::CounterEntry;

type Columns = [(&'static str, ColumnType, &'static str)];

const OF_CALLS: &Columns = &[
    (
        "total_raw",
        ColumnType::U64,
        "counted from entry to exit, as read",
    ),
    (
        "own_raw",
        ColumnType::I64,
        "the same without the measured calls made by it that have the counter",
    ),
    (
        "total_corrected",
        ColumnType::I64,
        "total_raw without what probes count; absent where that is not known",
    ),
    (
        "own_corrected",
        ColumnType::I64,
        "own_raw without what probes count; absent where that is not known",
    ),
    (
        "left_out",
        ColumnType::Text,
        "why a count is absent: rescheduled, not_counting, not_opened, incomplete, may_have_wrapped; of own counts only: suspended, callee",
    ),
];

const OF_FUNCTIONS: &Columns = &[
    (
        "calls",
        ColumnType::U64,
        "ended calls of the function, if it has the counter",
    ),
    (
        "left_out_calls",
        ColumnType::U64,
        "of these: no count is known",
    ),
    (
        "own_left_out_calls",
        ColumnType::U64,
        "of these: only the count with callees is known",
    ),
    (
        "mixed_calls",
        ColumnType::U64,
        "of these: in the own count are measured functions without the counter",
    ),
    (
        "total_calls",
        ColumnType::U64,
        "outermost calls in the sums with callees",
    ),
    ("total_raw", ColumnType::I64, "sum over these, as read"),
    (
        "total_corrected",
        ColumnType::I64,
        "total_raw without what probes count; absent where that is not known",
    ),
    (
        "own_calls",
        ColumnType::U64,
        "calls in the sums without callees",
    ),
    (
        "own_raw",
        ColumnType::I64,
        "sum over these, without the measured calls made by them that have the counter",
    ),
    (
        "own_corrected",
        ColumnType::I64,
        "own_raw without what probes count; absent where that is not known",
    ),
];

pub(super) fn with_calls(schema: &Schema, counters: &[CounterEntry]) -> Schema {
    with_columns(schema, counters, OF_CALLS)
}

pub(super) fn with_functions(schema: &Schema, counters: &[CounterEntry]) -> Schema {
    with_columns(schema, counters, OF_FUNCTIONS)
}

fn with_columns(schema: &Schema, counters: &[CounterEntry], columns: &Columns) -> Schema {
    let mut schema = schema.clone();
    for counter in counters {
        let name = column_name(counter, counters);
        schema
            .more
            .extend(columns.iter().map(|(what, kind, text)| OwnedColumn {
                name: format!("{name}_{what}"),
                kind: *kind,
                what: text,
            }));
    }
    schema
}

/// With the number where two would be one.
fn column_name(counter: &CounterEntry, counters: &[CounterEntry]) -> String {
    let plain = |c: &CounterEntry| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        c.name.chars().map(plain).collect()
    };
    let name = plain(counter);
    match counters.iter().filter(|c| plain(c) == name).count() {
        1 => name,
        _ => format!("{name}_{}", counter.number),
    }
}

fn narrow(n: i128) -> Value<'static> {
    Value::I64(n.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

pub(super) fn of_call(
    values: &mut Vec<Value<'_>>,
    counter: &CounterEntry,
    count: Option<&CallCount>,
) {
    let Some(count) = count else {
        return values.extend([Value::None; OF_CALLS.len()]);
    };
    let cost = counter.cost.as_ref();
    let corrected = |n: Result<Option<i128>, _>| n.ok().flatten().map_or(Value::None, narrow);
    let why = count.total.err().or(count.own().err());
    values.extend([
        count.total.ok().into(),
        count.own().ok().into(),
        corrected(count.total_corrected(cost)),
        corrected(count.own_corrected(cost)),
        why.map(|why| why.name()).into(),
    ]);
}

pub(super) fn of_function(
    values: &mut Vec<Value<'_>>,
    counter: &CounterEntry,
    counted: Option<&CounterStats>,
) {
    let Some(counted) = counted else {
        return values.extend([Value::None; OF_FUNCTIONS.len()]);
    };
    let corrected = |sum: &CountSum| {
        let sum = sum.corrected(counter.cost.as_ref());
        sum.map_or(Value::None, narrow)
    };
    values.extend([
        counted.calls.into(),
        counted.left_out.calls().into(),
        counted.own_left_out.calls().into(),
        counted.mixed_calls.into(),
        counted.total.calls.into(),
        narrow(counted.total.raw),
        corrected(&counted.total),
        counted.own.calls.into(),
        narrow(counted.own.raw),
        corrected(&counted.own),
    ]);
}
