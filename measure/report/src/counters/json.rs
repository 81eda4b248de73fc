//! For programs: counts are whole numbers, means are not.
use super::{callees_not_corrected, has_ipc, ipc, left_out_of, per_call};
use crate::json_line::Object;
use hopscope_analyze::{AnalysisResult, CountSum, CounterStats, LeftOutCalls, Stats};
use hopscope_event::CounterEntry;
use serde_json::{Map, Value, json};

/// Of the recording: `mode` is the mode of the processor that was counted in.
pub(crate) fn entries(counters: &[CounterEntry]) -> Vec<Value> {
    let entry = |c: &CounterEntry| {
        json!({
            "name": c.name,
            "number": c.number,
            "mode": if c.event.is_software() { Value::Null } else { json!("user") },
            "perf_type": c.event.kind,
            "perf_config": c.event.config,
            "bits": c.bits,
            "cost": c.cost,
            "emulated": c.emulated,
        })
    };
    counters.iter().map(entry).collect()
}

/// `counters`, one for each that calls of the row have, and `instructions_per_cycle`.
pub(crate) fn of_row(line: &mut Object<'_>, counters: &[CounterEntry], stats: &Stats) {
    if counters.is_empty() {
        return;
    }
    let counted = counters.iter();
    let counted = counted.filter_map(|c| Some(of_counter(c, stats.counter(c.number)?)));
    line.put("counters", counted.collect::<Vec<Value>>());
    if has_ipc(counters) {
        line.put("instructions_per_cycle", ipc(counters, stats));
    }
}

fn of_counter(entry: &CounterEntry, counted: &CounterStats) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    put("name", json!(entry.name));
    put("calls", json!(counted.calls));
    put("left_out", reasons(&counted.left_out));
    put("self_left_out", reasons(&counted.own_left_out));
    put("mixed_calls", json!(counted.mixed_calls));
    let mut sum = |name: &str, calls: &str, sum: &CountSum| {
        let corrected = sum.corrected(entry.cost.as_ref());
        put(calls, json!(sum.calls));
        put(name, integer(sum.raw));
        put(
            &format!("{name}_corrected"),
            corrected.map_or(Value::Null, integer),
        );
        put(
            &format!("{name}_per_call"),
            json!(per_call(sum.raw, sum.calls)),
        );
        put(
            &format!("{name}_corrected_per_call"),
            json!(corrected.and_then(|c| per_call(c, sum.calls))),
        );
        put(
            &format!("{name}_callees_not_corrected"),
            json!(callees_not_corrected(sum, entry.cost.as_ref())),
        );
    };
    sum("total", "total_calls", &counted.total);
    sum("self", "self_calls", &counted.own);
    Value::Object(fields)
}

/// Exact up to 64 bits.
fn integer(n: i128) -> Value {
    match (i64::try_from(n), u64::try_from(n)) {
        (Ok(n), _) => json!(n),
        (_, Ok(n)) => json!(n),
        _ => json!(n as f64),
    }
}

fn reasons(left_out: &LeftOutCalls) -> Value {
    let reasons = left_out.reasons();
    let named = reasons.map(|(why, calls)| (why.name().to_owned(), json!(calls)));
    Value::Object(named.collect())
}

/// Of all calls in the rows, for the summary.
pub(crate) fn left_out(counters: &[CounterEntry], outcome: &AnalysisResult) -> Vec<Value> {
    let stats = || outcome.rows.iter().map(|row| &row.stats);
    let one = |c: &CounterEntry| {
        let (left_out, own) = left_out_of(stats(), c.number);
        let calls = stats().filter_map(|s| s.counter(c.number)).map(|s| s.calls);
        json!({
            "name": c.name,
            "calls": calls.sum::<u64>(),
            "left_out": reasons(&left_out),
            "self_left_out": reasons(&own),
        })
    };
    counters.iter().map(one).collect()
}
