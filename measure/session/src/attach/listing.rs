//! What would be measured of which functions, and why others are refused.
use super::{calls, captures};
use crate::error::Result;
use crate::status::text_line;
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId};
use hopscope_probe::locate::basename;
use hopscope_probe::plan::Plan;
use std::io::Write;

fn captures_of(plan: &Plan, id: FunctionId) -> impl Iterator<Item = &CaptureEntry> {
    plan.captures.iter().filter(move |c| c.function == id)
}

fn not_captured_of(plan: &Plan, id: FunctionId) -> impl Iterator<Item = String> {
    let of = plan.not_captured.iter().filter(move |(f, _)| *f == id);
    of.map(|(_, why)| why.to_string())
}

/// On stdout.
pub(crate) fn write(plan: &Plan, json: bool) -> Result<()> {
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
            text_line!(out, "measure  {module}!{}", f.name)?;
            // A counter is read at both ends of a call, and named once.
            let once = |c: &&CaptureEntry| {
                c.method != CaptureMethod::Counter || c.at == CapturePlace::Entry
            };
            for capture in captures_of(plan, f.id).filter(once) {
                text_line!(out, "         {}", captures::described(capture))?;
            }
            for why in not_captured_of(plan, f.id) {
                text_line!(out, "         not captured: {why}")?;
            }
        }
    }
    calls::list(&mut out, plan, json)?;
    for r in &plan.refusals {
        if json {
            let line = serde_json::json!({"type": "function", "schema": 1, "module": r.module, "name": r.name,
                "svma": r.svma, "verdict": "refused", "reason": r.reason});
            writeln!(out, "{line}")?;
        } else {
            text_line!(out, "refuse   {}!{}: {}", r.module, r.name, r.reason)?;
        }
    }
    let (accepted, refused) = (plan.functions.len(), plan.refusals.len());
    if json {
        let line = serde_json::json!({"type": "summary", "schema": 1, "accepted": accepted, "refused": refused,
            "left_out": plan.left_out()});
        writeln!(out, "{line}")?;
    } else {
        text_line!(
            out,
            "{accepted} functions would be measured, {refused} refused{}",
            left_out(plan)
        )?;
    }
    Ok(())
}

/// By `-x`, as the end of a line.
pub(crate) fn left_out(plan: &Plan) -> String {
    match plan.left_out() {
        0 => String::new(),
        n => format!(", {n} left out by -x"),
    }
}
