//! Calls that are timed where they are made: when they are, and which functions are not measured but where they are called.
use crate::error::{Result, refuse};
use crate::status::text_line;
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::plan::{InCallers, Method, Plan};
use std::io::Write;

/// Whether calls are asked for, rather than functions.
///
/// # Errors
/// With what is taken along of functions, where none is measured.
pub(crate) fn are_asked_for(selections: &[Selection], method: Method) -> Result<bool> {
    if method != Method::Calls {
        return Ok(selections.iter().any(|s| s.calls.is_some()));
    }
    if selections.iter().any(|s| !s.captures.is_empty()) {
        refuse!(
            "--method calls leaves functions as they are, and values and counters are taken along at their entries: leave out one of the two"
        );
    }
    Ok(true)
}

/// As it is said of one.
fn described(one: &InCallers) -> String {
    let mut text = match one.callers {
        0 => "timed at some places that call it by its name".to_owned(),
        1 => "timed in the 1 function that calls it by its name".to_owned(),
        n => format!("timed in the {n} functions that call it by its name"),
    };
    let mut not_timed = Vec::new();
    match one.not_timed {
        0 => {}
        1 => not_timed.push("1 more that is not measured, or not in whole".to_owned()),
        n => not_timed.push(format!("{n} more that are not measured, or not in whole")),
    }
    match one.jumps {
        0 => {}
        1 => not_timed.push("1 function that ends in a jump to it".to_owned()),
        n => not_timed.push(format!("{n} functions that end in a jump to it")),
    }
    if one.is_pointed_to {
        not_timed.push("calls through pointers".to_owned());
    }
    if !not_timed.is_empty() {
        text += &format!(", not in {}", not_timed.join(", "));
    }
    match &one.why {
        Some(why) => format!("{text}; not measured itself: {why}"),
        None => text,
    }
}

/// What a measurement says of them: of each that was not asked for so, and of those that others reach otherwise, too.
pub(crate) fn notes(plan: &Plan) -> Vec<String> {
    const AT_MOST: usize = 3;
    let named = |one: &InCallers| format!("{}!{}", one.module, one.name);
    let (instead, asked): (Vec<&InCallers>, Vec<&InCallers>) =
        plan.in_callers.iter().partition(|one| one.why.is_some());
    let reached: Vec<&InCallers> = asked
        .iter()
        .filter(|one| one.jumps + one.not_timed > 0 || one.is_pointed_to)
        .copied()
        .collect();
    let few = reached.len() <= AT_MOST;
    let alone = instead
        .into_iter()
        .chain(reached.iter().copied().take(if few { AT_MOST } else { 0 }));
    let mut notes: Vec<String> = alone
        .map(|one| format!("{} is {}", named(one), described(one)))
        .collect();
    if !few {
        let some: Vec<String> = reached.iter().take(AT_MOST).map(|one| named(one)).collect();
        notes.push(format!(
            "{} of {} functions that are timed where they are called by name are also called by functions that are not measured, by jumps at the end of others, or through pointers, which is not counted: {}, … (record --dry-run lists all)",
            reached.len(),
            asked.len(),
            some.join(", ")
        ));
    }
    notes
}

/// A line for each, of `--dry-run`.
pub(crate) fn list(out: &mut impl Write, plan: &Plan, json: bool) -> std::io::Result<()> {
    for one in &plan.in_callers {
        if json {
            let line = serde_json::json!({"type": "function", "schema": 1, "module": one.module, "name": one.name,
                "svma": one.svma, "verdict": "in_callers", "reason": one.why, "callers": one.callers, "not_timed": one.not_timed, "jumps": one.jumps,
                "is_pointed_to": one.is_pointed_to});
            writeln!(out, "{line}")?;
        } else {
            text_line!(
                out,
                "calls    {}!{}: {}",
                one.module,
                one.name,
                described(one)
            )?;
        }
    }
    Ok(())
}
