//! Running processes found, their functions chosen, and probes attached to them: of `record`, and of `top`.
mod calibrate;
pub(crate) mod calls;
pub(crate) mod captures;
mod exited_targets;
pub(crate) mod following;
mod listing;
mod progress;
mod request;
pub(crate) mod targets;

pub use calibrate::CALIBRATION;
pub use hopscope_calibration::run as be_calibrated;
pub use request::AttachRequest;

pub(crate) use calibrate::{with_calibration, with_counters};
pub(crate) use exited_targets::Running;
pub(crate) use listing::{left_out, write as write_listing};
pub(crate) use progress::Shown;

use crate::error::{Context, Error, Result, in_one_line, refuse};
use hopscope_event::{ProcessEntry, ProcessIx, RecordingMeta};
use hopscope_probe::instrument::capture::parse::{Expr, Selection, Wanted};
use hopscope_probe::instrument::resolve::Policy;
use hopscope_probe::live::found;
use hopscope_probe::live::install::{InstallOptions, Installed, install};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::plan::{Item, Plan};
use hopscope_probe::recorder::Target;
use hopscope_probe::recorder::callees::{Callees, Numbering};
use std::fs;

/// What of a process is to be measured, and how its functions are judged.
pub(crate) struct Prepared {
    pub items: Vec<Item>,
    pub shadow_stack: bool,
    pub policy: Policy,
}

/// What of a process is to be measured, which `plan` knows of from then on. `may_stop`: its threads, to look into them.
pub(crate) fn prepare(
    pid: i32,
    selections: &[Selection],
    request: &AttachRequest,
    may_stop: bool,
    plan: &mut Plan,
) -> Result<Prepared> {
    let preflight = hopscope_process::preflight(pid)?;
    if preflight.shadow_stack {
        refuse!(
            "process {pid} runs with a user shadow stack, under which no system call can be made safely in it"
        );
    }
    found::check_free(pid)?;
    let is_value = |wanted: &Wanted| !matches!(wanted.what, Expr::Counter(_));
    let captures = selections.iter().any(|s| s.captures.iter().any(is_value));
    let no_checked_copy = if captures && !request.trust_pointers {
        hopscope_process::copies_allowed::forbids_copies(pid, may_stop)?
    } else {
        None
    };
    let policy = Policy {
        trust_pointers: request.trust_pointers,
        no_checked_copy,
    };
    let shadow_stack = preflight.shadow_stack;
    Ok(Prepared {
        items: plan.add_selected(pid, selections, shadow_stack, &policy)?,
        shadow_stack,
        policy,
    })
}

/// Every matching function may be refused: then the reasons are listed, and that is an error.
pub(crate) fn require_functions(plan: &Plan, json: bool) -> Result<()> {
    if plan.functions.is_empty() && !plan.follows_loads {
        write_listing(plan, json)?;
        refuse!("every matching function is refused; the reasons are above");
    }
    Ok(())
}

/// Functions that turn out to be refused are so in `plan`, too.
pub(crate) fn attach(
    process: &ProcessEntry,
    items: &[Item],
    plan: &mut Plan,
    meta: &RecordingMeta,
    options: &InstallOptions,
) -> Result<Installed> {
    if items.is_empty() && !plan.follows_loads {
        refuse!(
            "process {}: every matching function is refused",
            process.pid
        );
    }
    let mut table = PatchTable::new(
        meta.clone(),
        process.clone(),
        plan.modules.clone(),
        plan.functions.clone(),
    );
    table.captures = plan.captures.clone();
    table.counters = plan.counters.clone();
    table.switches_stacks = plan.switches_stacks(process.pid);
    let selected: Vec<_> = items.iter().map(Item::selected).collect();
    let nothing = plan.follows_loads.then(|| table.clone());
    let installed = match (install(process.pid, selected, options, table), nothing) {
        // All of it was unloaded meanwhile: as if it had not been there yet.
        (Err(e), Some(table)) if e.is_of_what_was_chosen() => {
            plan.forget_all(process.pid);
            install(process.pid, Vec::new(), options, table)?
        }
        (installed, _) => installed?,
    };
    let gone = plan.refuse_late(&installed.refused);
    plan.forget(process.pid, |module| gone.contains(&module.path));
    Ok(installed)
}

/// As the recorder takes them.
pub(crate) fn watched(
    installed: Vec<(ProcessIx, Installed)>,
    plan: &Plan,
    follow_forks: bool,
) -> Vec<Target> {
    let next = Numbering::after(plan.functions.len(), plan.modules.len());
    let target = |(ix, installed): (ProcessIx, Installed)| {
        let watch = plan.watch(installed.pid);
        let callees = Callees::of_plan(plan, installed.pid, next.clone());
        let target = Target::new(installed, ix).watched(watch).naming(callees);
        match follow_forks {
            true => target.with_children(),
            false => target,
        }
    };
    installed.into_iter().map(target).collect()
}

/// Prints every failure but returns the last one when nothing is left to do.
pub(crate) fn report_failures(failures: &mut Vec<Error>, nothing_left: bool) -> Result<()> {
    let last = if nothing_left { failures.pop() } else { None };
    for e in failures.drain(..) {
        crate::status::say!("{}", in_one_line(&e));
    }
    last.map_or(Ok(()), Err)
}

/// Whoever waits for the file may go on: all targets are being measured.
pub(crate) fn write_ready(request: &AttachRequest, pids: &[i32]) -> Result<()> {
    hopscope_process::fault::panic_point(hopscope_process::fault::PANIC);
    hopscope_process::fault::ready();
    let Some(path) = &request.ready_file else {
        return Ok(());
    };
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    fs::write(path, pids.join("\n") + "\n").with_context(|| format!("writing {}", path.display()))
}
