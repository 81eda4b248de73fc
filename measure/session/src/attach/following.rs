//! Modules that targets load while they are recorded (`--follow-dlopen`).
use crate::error::{Context, Result};
use hopscope_event::{ProcessEntry, ProcessIx, RecordingMeta};
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::instrument::resolve::Policy;
use hopscope_probe::live::install::{InstallOptions, Installed};
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::following::{Follow, Followed, Following};
use hopscope_probe::recorder::{RecorderResult, Target};
use std::collections::HashMap;

/// Why not with `calls:`.
pub(crate) const NOT_WITH_CALLS: &str = "--follow-dlopen measures functions of what is loaded later, and not what calls: calls there: leave out one of the two";

/// How the functions of each process are judged.
pub(crate) type Judged = (bool, Policy);

pub(crate) fn begin(
    installed: &[(ProcessIx, Installed)],
    processes: &[ProcessEntry],
    mut judged: HashMap<ProcessIx, Judged>,
    plan: &Plan,
    (selections, meta, options): (&[Selection], &RecordingMeta, InstallOptions),
) -> Result<Following> {
    let mut followed = Vec::new();
    for ((ix, installed), process) in installed.iter().zip(processes) {
        let (shadow_stack, policy) = judged
            .remove(ix)
            .with_context(|| "a process that nobody looked into")?;
        let process = process.clone();
        followed.push(Followed::new(
            installed,
            process,
            shadow_stack,
            policy,
            plan,
        ));
        let measured = installed.sites.len() + installed.slots.len();
        if measured == 0 {
            crate::status::say!(
                "process {}: nothing is measured yet; what it loads is looked at",
                installed.pid
            );
        }
    }
    let follow = Follow {
        selections: selections.to_vec(),
        options,
        meta: meta.clone(),
        plan: Box::new(plan.going_on()),
    };
    Following::begin(follow, followed).with_context(|| "starting to follow what is loaded")
}

/// `following`: of these targets, in their order.
pub(crate) fn join(targets: &mut [Target], following: Option<&Following>) {
    let sides = following.into_iter().flat_map(Following::sides);
    for (target, (told, beside)) in targets.iter_mut().zip(sides) {
        target.follow(told, beside);
    }
}

/// The tables as they are at the end. What nothing ever matched is noted.
pub(crate) fn grown(outcome: &mut RecorderResult, plan: Plan, selections: &[Selection]) -> Plan {
    let plan = outcome.plan.take().map_or(plan, |grown| grown());
    let unmatched = plan.unmatched(selections);
    if !unmatched.is_empty() {
        let asked: Vec<String> = unmatched.iter().map(ToString::to_string).collect();
        outcome.notes.push(format!(
            "no module, loaded before or while recording, has functions that match {}",
            asked.join(", ")
        ));
    }
    plan
}
