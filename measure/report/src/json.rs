//! The report for programs: one object a line, each with `type` and `schema`; times carry their
//! unit at the end of the field name (`_ns` or `_tsc`). The last line is the summary.
use crate::counters;
use crate::json_line::{Object, line};
use crate::order::sorted;
use crate::recording::{Names, Recording};
use crate::units::{Scale, TimeUnit};
use crate::{Layout, View, tree};
use hopscope_analyze::tree::Parent;
use hopscope_analyze::{AnalysisResult, Group, Row};
use hopscope_event::Refusal;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The line with which every report begins.
pub fn write_header_json(
    out: &mut impl Write,
    recording: &Recording<'_>,
    time: TimeUnit,
) -> io::Result<()> {
    let scale = Scale::new(time, recording.meta.tsc_frequency);
    #[derive(Serialize)]
    struct Head<'a> {
        r#type: &'static str,
        schema: u32,
        shown: &'a str,
        time_unit: &'static str,
        meta: &'a hopscope_event::RecordingMeta,
        processes: &'a [hopscope_event::ProcessEntry],
        threads: &'a [hopscope_event::ThreadEntry],
        #[serde(skip_serializing_if = "Vec::is_empty")]
        counters: Vec<Value>,
    }
    let head = Head {
        r#type: "recording",
        schema: 1,
        shown: recording.filter,
        time_unit: scale.suffix(),
        meta: recording.meta,
        processes: recording.processes,
        threads: recording.threads,
        counters: counters::entries(recording.counters),
    };
    line(out, &head)
}

pub fn write_json(
    out: &mut impl Write,
    recording: &Recording<'_>,
    outcome: &AnalysisResult,
    view: View,
) -> io::Result<()> {
    let names = Names::new(recording);
    let scale = Scale::new(view.time, recording.meta.tsc_frequency);
    write_header_json(out, recording, view.time)?;
    crate::packets::write_json(out, recording, &scale)?;
    match view.layout {
        Layout::Rows(group) => {
            let off_cpu = recording.has_off_cpu();
            for row in sorted(&names, outcome, view.sort) {
                let mut object = row_object(&names, outcome, &scale, group, off_cpu, row);
                counters::of_row(&mut object, recording.counters, &row.stats);
                line(out, &object)?;
            }
        }
        Layout::Tree => paths(out, &names, outcome, &scale, view)?,
    }
    for refusal in recording.refusals {
        #[derive(Serialize)]
        struct Line<'a> {
            r#type: &'static str,
            schema: u32,
            #[serde(flatten)]
            refusal: &'a Refusal,
        }
        let refused = Line {
            r#type: "refusal",
            schema: 1,
            refusal,
        };
        line(out, &refused)?;
    }
    summary(out, recording, outcome, &scale, view.layout)
}

fn row_object<'a>(
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &'a Scale,
    group: Group,
    off_cpu: bool,
    row: &Row,
) -> Object<'a> {
    let kind = match group {
        Group::Module => "module",
        Group::Function | Group::Thread | Group::Process => "function",
    };
    let mut o = Object::new(kind, scale);
    if let Some(process) = row.key.process {
        o.put("process", process.0);
        o.put("pid", names.process_entry(process).map(|p| p.pid));
    }
    if matches!(group, Group::Thread | Group::Process)
        && row.key.thread.is_none()
        && row.key.process.is_none()
    {
        // Of all threads beyond the rows that are kept apart.
        o.put("all_others", true);
    }
    if let Some(thread) = row.key.thread {
        o.put("thread", thread.0);
        o.put("tid", names.thread_entry(thread).map(|t| t.tid));
    }
    if let Some(module) = row.key.module {
        o.put("module", names.module(module));
    }
    if let Some(function) = row.key.function {
        o.put("function", names.function(function));
        o.put("function_id", function.0);
        if let Some(entry) = names.function_entry(function) {
            o.put("svma", entry.svma);
            o.put("file", entry.file.clone());
            o.put("line", entry.line);
        }
    }
    let s = &row.stats;
    let b = s.balance;
    o.put("calls", b.exits + b.tail_exits);
    o.put("balance", balance(b));
    o.time("total_raw", s.outer_ticks);
    o.time("self_raw", s.self_ticks);
    o.put("outermost_calls", s.outer_calls);
    o.put("fused_calls", s.fused);
    o.time("suspended", s.suspended_ticks);
    o.put("suspended_calls", s.suspended_calls);
    o.distribution("total_raw", &s.inclusive);
    o.distribution("self_raw", &s.own);
    if off_cpu {
        o.time("off_cpu", narrow(s.off_cpu.ticks));
        o.time("preempted", narrow(s.off_cpu.preempted_ticks));
        o.put("off_cpu_calls", s.off_cpu.calls);
        o.put("off_cpu_incomplete_calls", s.off_cpu.incomplete_calls);
    }
    if let Some(c) = &outcome.correction {
        o.corrected("total", s.corrected_total(c));
        o.corrected("self", s.corrected_self(c));
        o.distribution("total_corrected", &s.inclusive_corrected);
        o.distribution("self_corrected", &s.own_corrected);
    }
    o
}

fn narrow(ticks: u128) -> i128 {
    i128::try_from(ticks).unwrap_or(i128::MAX)
}

fn balance(b: hopscope_analyze::Balance) -> Value {
    json!({
        "entries": b.entries,
        "exits": b.exits,
        "tail_exits": b.tail_exits,
        "open_at_end": b.open_at_end,
        "declared_lost": b.escaped,
        "cut_by_loss": b.cut,
        "unwound": b.unwound,
        "moved": b.moved,
        "ends_open_at_start": b.ends_open_at_start,
        "ends_cut_by_loss": b.ends_cut,
        "ends_moved": b.ends_moved,
    })
}

fn paths(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    view: View,
) -> io::Result<()> {
    let children = tree::children(names, outcome, view.sort);
    let roots = [Parent::Root, Parent::AfterGap, Parent::Beyond];
    let shown = tree::Shown::of(outcome, &children, view.paths);
    let list = |place| {
        let list = children.get(&place).into_iter().flatten().rev();
        list.copied().filter(|ix| shown.is(*ix))
    };
    let rest = |out: &mut _, place| {
        let hidden = shown.hidden(outcome, &children, place, outcome.correction.as_ref());
        let corrected = outcome.correction.is_some();
        hidden.map_or(Ok(()), |h| more_paths(out, scale, place, h, corrected))
    };
    let mut open: Vec<_> = roots.into_iter().rev().flat_map(list).collect();
    for root in roots {
        rest(out, root)?;
    }
    while let Some(ix) = open.pop() {
        open.extend(list(Parent::Node(ix)));
        let node = outcome.tree.node(ix);
        let mut o = Object::new("path", scale);
        o.put("path", ix.0);
        o.put("parent", parent(node.parent));
        o.put("function", names.qualified(node.function));
        o.put("function_id", node.function.0);
        o.put("entries", node.entries);
        o.put("calls", node.calls);
        if node.outer_calls < node.calls {
            o.put("outer_calls", node.outer_calls);
        }
        o.put("tail_called", node.tail_called);
        o.put("tail_from", node.tail_from.map(|f| names.qualified(f)));
        o.put("tail_from_several", node.tail_from_several());
        o.time("total_raw", node.ticks);
        o.time("self_raw", node.self_ticks);
        if shown.at_least(node) {
            o.time("total_at_least", shown.total(ix));
        }
        if node.calls > 0 {
            o.time("max_raw", i128::from(node.max_ticks));
        }
        if let Some(c) = &outcome.correction {
            o.corrected("total", node.corrected_total(c));
            o.corrected("self", node.corrected_own(c));
        }
        line(out, &o)?;
        rest(out, Parent::Node(ix))?;
    }
    Ok(())
}

fn parent(parent: Parent) -> Value {
    match parent {
        Parent::Node(parent) => json!(parent.0),
        Parent::Root => Value::Null,
        Parent::AfterGap => json!("unknown_after_loss"),
        Parent::Beyond => json!("beyond_bounds"),
    }
}

/// Paths that were not asked for, added up; times corrected where the probe cost is known, as their
/// names say.
fn more_paths(
    out: &mut impl Write,
    scale: &Scale,
    place: Parent,
    hidden: tree::Hidden,
    corrected: bool,
) -> io::Result<()> {
    let mut o = Object::new("more_paths", scale);
    o.put("parent", parent(place));
    o.put("paths", hidden.paths);
    o.put("calls", hidden.calls);
    let (total, own) = if corrected {
        ("total_corrected", "self_corrected")
    } else {
        ("total_raw", "self_raw")
    };
    o.time(total, hidden.total);
    o.time(own, hidden.own);
    line(out, &o)
}

fn summary(
    out: &mut impl Write,
    recording: &Recording<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    layout: Layout,
) -> io::Result<()> {
    let o = outcome.oddities;
    let threads: Vec<Value> = outcome
        .threads
        .iter()
        .map(
            |(ix, o)| json!({"thread": ix.0, "records": o.records, "lost": o.lost, "torn": o.torn}),
        )
        .collect();
    let mut s = Object::new("summary", scale);
    s.put("balance", balance(outcome.balance));
    s.put("records", o.records);
    s.put("lost", o.lost);
    s.put("torn", o.torn);
    s.put("missing", o.missing);
    s.put("gaps", o.gaps);
    s.put("values", o.values);
    s.put("values_unreadable", o.values_unreadable);
    s.put("values_left_out", o.values_left_out);
    s.put("values_homeless", o.values_homeless);
    s.put("values_ambiguous", o.values_ambiguous);
    s.put("values_unknown", o.values_unknown);
    if !recording.counters.is_empty() {
        s.put("readings", o.readings);
        s.put("readings_homeless", o.readings_homeless);
        if let Layout::Rows(_) = layout {
            s.put("counters", counters::left_out(recording.counters, outcome));
        }
    }
    s.put("unknown_records", o.unknown);
    s.put("inversions", o.inversions);
    s.put("negative_durations", o.negative);
    s.put("escape_records", o.escape_records);
    s.put("revived", o.revived);
    s.put("stacks_given_up", o.stacks_given_up);
    s.put("early_batches", o.early_batches);
    s.put("calls_beyond_tree", outcome.tree.beyond());
    s.put("paths_dropped", outcome.tree.dropped_paths());
    s.put("corrected", outcome.correction.is_some());
    s.put("refused", recording.refusals.len());
    s.put("threads", threads);
    s.put("recorder", serde_json::to_value(recording.summary)?);
    s.put("damage", recording.damage);
    for (name, value) in crate::choices::values(recording) {
        s.put(name, value);
    }
    line(out, &s)
}
