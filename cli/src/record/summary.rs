//! What `record` says: a line each second, the closing numbers, the dry run.
use super::{RecordArgs, captures};
use hopscope_event::{CaptureEntry, FunctionId, OffCpuEntry, RecordingMeta, Summary};
use hopscope_probe::plan::{Plan, basename};
use hopscope_probe::recorder::Status;
use std::collections::BTreeMap;
use std::io::Write;

/// One line on stderr; on a terminal it replaces the last one.
pub(super) fn status(s: &Status, tty: bool) {
    let slowdown = s
        .slowdown_percent
        .map_or("unknown".into(), |p| format!("{p:.1} %"));
    let line = format!(
        "{:5.0} s  {:>12.0} records/s  lost {}  estimated slowdown {slowdown}",
        s.elapsed.as_secs_f64(),
        s.records_per_s,
        s.lost
    );
    if tty {
        eprint!("\r{line}\x1b[K");
    } else {
        eprintln!("{line}");
    }
}

fn reasons(plan: &Plan) -> BTreeMap<&str, usize> {
    plan.refusals.iter().fold(BTreeMap::new(), |mut m, r| {
        *m.entry(r.reason.as_str()).or_default() += 1;
        m
    })
}

fn captures_of(plan: &Plan, id: FunctionId) -> impl Iterator<Item = &CaptureEntry> {
    plan.captures.iter().filter(move |c| c.function == id)
}

fn not_captured_of(plan: &Plan, id: FunctionId) -> impl Iterator<Item = String> {
    let of = plan.not_captured.iter().filter(move |(f, _)| *f == id);
    of.map(|(_, why)| why.to_string())
}

pub fn dry_run(plan: &Plan, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for f in &plan.functions {
        let module = basename(plan.modules[f.module.0 as usize].path.as_ref());
        if json {
            let line = serde_json::json!({"type": "function", "schema": 1, "module": module, "name": f.name,
                "svma": f.svma, "size": f.size, "verdict": "relocate",
                "captures": captures_of(plan, f.id).collect::<Vec<_>>(),
                "not_captured": not_captured_of(plan, f.id).collect::<Vec<_>>()});
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "measure  {module}!{}", f.name)?;
            for capture in captures_of(plan, f.id) {
                writeln!(out, "         {}", captures::described(capture))?;
            }
            for why in not_captured_of(plan, f.id) {
                writeln!(out, "         not captured: {why}")?;
            }
        }
    }
    for r in &plan.refusals {
        if json {
            let line = serde_json::json!({"type": "function", "schema": 1, "module": r.module, "name": r.name,
                "svma": r.svma, "verdict": "refused", "reason": r.reason});
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "refuse   {}!{}: {}", r.module, r.name, r.reason)?;
        }
    }
    let (accepted, refused) = (plan.functions.len(), plan.refusals.len());
    if json {
        let line = serde_json::json!({"type": "summary", "schema": 1, "accepted": accepted, "refused": refused});
        writeln!(out, "{line}")?;
    } else {
        writeln!(
            out,
            "{accepted} functions would be measured, {refused} refused"
        )?;
    }
    Ok(())
}

pub(super) fn print(
    args: &RecordArgs,
    s: &Summary,
    off_cpu: Option<&OffCpuEntry>,
    plan: &Plan,
    meta: &RecordingMeta,
    bytes: u64,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let functions = plan.functions.len();
    if args.json {
        let mut line = serde_json::to_value(s)?;
        let extra = serde_json::json!({
            "type": "summary", "schema": 1, "file": args.output, "functions": functions,
            "refused": plan.refusals.len(), "refused_by_reason": reasons(plan),
            "captures": plan.captures, "not_captured": plan.not_captured.len(),
            "checked_copy_tsc": captures::copy_cost_ticks(plan),
            "bytes": bytes, "probe_cost": meta.probe_cost, "tsc_hz": meta.tsc_frequency,
            "off_cpu": off_cpu,
        });
        if let (Some(line), serde_json::Value::Object(extra)) = (line.as_object_mut(), extra) {
            line.extend(extra);
        }
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let us = |ns: &Vec<u64>| {
        ns.iter()
            .max()
            .map_or("-".into(), |ns| format!("{:.0} µs", *ns as f64 / 1e3))
    };
    writeln!(
        out,
        "{} records of {functions} functions on {} threads: {}",
        s.recorded, s.threads_measured, s.ended_because
    )?;
    writeln!(
        out,
        "lost {}, torn {}, calls of threads without a ring {}",
        s.lost, s.torn, s.calls_unmeasured
    )?;
    match off_cpu {
        Some(o) => writeln!(
            out,
            "off CPU {} times, to {} ns; {} switches lost, {} without their other half",
            o.intervals, o.clock_error_ns, o.lost, o.unpaired
        )?,
        None => writeln!(out, "off-CPU time not recorded")?,
    }
    for (reason, n) in reasons(plan) {
        writeln!(out, "refused {n}: {reason}")?;
    }
    captures::print(&mut out, plan)?;
    writeln!(
        out,
        "target stood still {} at attach, {} at detach",
        us(&s.attach_pause_ns),
        us(&s.detach_pause_ns)
    )?;
    match meta.probe_cost {
        Some(cost) => writeln!(
            out,
            "probe cost {} ticks a call ({}…{}), {} of them inside the measured time; tick = {:.3} ns",
            cost.pair_ticks[1],
            cost.pair_ticks[0],
            cost.pair_ticks[2],
            cost.bias_ticks[1],
            1e9 / meta.tsc_frequency.0 as f64
        )?,
        None => writeln!(out, "probe cost not measured: times are raw")?,
    }
    for note in &s.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(
        out,
        "{} ({:.1} MB); next: hopscope report {}",
        args.output.display(),
        bytes as f64 / 1e6,
        args.output.display()
    )?;
    Ok(())
}
