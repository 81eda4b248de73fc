//! `--budget`: functions are left out so that probes take no more than a part of the targets' time.
use crate::error::{Result, refuse};
use crate::status::text_line;
use hopscope_event::{
    BudgetEntry, FunctionEntry, FunctionId, Ns, ProcessIx, RecordingMeta, TscFrequency,
};
use hopscope_probe::locate::basename;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::Target;
use hopscope_probe::recorder::budget::{Budget, FirstPass, first_pass};
use hopscope_process::stop_times;
use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of a function that was left out before the recording.
const LEFT_OUT: &str = "its probes would take more than the budget has room for (--budget)";

/// What a call's probes take where they end the overlap of what surrounds them: measured in a NAT (docs/figures.md),
/// against 40 to 60 in a loop of calls.
const IN_PLACE_TICKS: u64 = 130;

/// Two clock reads in a row, where nothing was measured.
const LEAST_TICKS: u64 = 40;

/// Named in the summary.
const NAMED_AT_MOST: usize = 5;

/// Of what a call's probes may take, much: a budget is not to be exceeded for want of a better number.
///
/// `watched_first`: before anything is recorded. A program that is still held is not: it is recorded from its first
/// instruction.
pub(super) fn budget(percent: f64, meta: &RecordingMeta, watched_first: bool) -> Budget {
    let in_a_loop = meta.probe_cost.map_or(0, |cost| cost.pair_ticks[2]);
    Budget {
        percent,
        pair_ticks: in_a_loop.max(IN_PLACE_TICKS),
        least_ticks: meta
            .probe_cost
            .map_or(LEAST_TICKS, |cost| cost.pair_ticks[0]),
        frequency: meta.tsc_frequency,
        watched_first,
    }
}

/// What is left, and what goes on.
pub(super) struct Chosen {
    pub budget: Budget,
    pub entry: BudgetEntry,
}

/// Functions that are left out are refused in `plan` from then on. `needed` never are.
pub(super) fn choose(
    budget: Budget,
    targets: &mut [Target],
    plan: &mut Plan,
    needed: &[FunctionId],
    stop: &AtomicBool,
) -> Result<Chosen> {
    for target in targets.iter_mut() {
        target.counts_calls(needed);
    }
    let pass = match budget.watched_first {
        true => first_pass(targets, budget, &|| stop.load(Ordering::Relaxed)),
        false => Ok(FirstPass::default()),
    };
    for target in targets.iter_mut() {
        let stops = stop_times::take(target.installed.pid);
        target.installed.stops.join(&stops);
    }
    let pass = pass?;
    let left_out = pass.left_out.iter().map(|one| (one.process, one.function));
    let left_out: HashSet<(ProcessIx, FunctionId)> = left_out.collect();
    let mut measured: HashSet<FunctionId> = HashSet::new();
    for target in targets.iter() {
        let sites = target.installed.sites.iter().map(|(_, id)| *id);
        measured.extend(sites.filter(|id| !left_out.contains(&(target.process, *id))));
    }
    for one in &pass.left_out {
        if measured.contains(&one.function) {
            continue;
        }
        let (module, f) = named(plan, one.function);
        plan.refuse(&module, &f.name, f.svma, LEFT_OUT.into());
    }
    if measured.is_empty() {
        for target in targets.iter_mut() {
            target.installed.detach()?;
        }
        refuse!(
            "every function would take more than the budget of {} %: raise it, or choose functions that are called less",
            budget.percent
        );
    }
    let entry = BudgetEntry {
        percent: budget.percent,
        first_pass_ns: Ns(pass.lasted.as_nanos() as u64),
        first_pass_percent: pass.percent,
        measured: measured.len() as u64,
        left_out: pass.left_out,
    };
    Ok(Chosen { budget, entry })
}

/// A function, and the name of its module.
fn named(plan: &Plan, function: FunctionId) -> (String, FunctionEntry) {
    let f = plan.functions[function.0 as usize].clone();
    let module = &plan.modules[f.module.0 as usize].path;
    (basename(module.as_ref()).to_owned(), f)
}

/// The closing words.
pub(super) fn text(
    out: &mut impl Write,
    budget: &BudgetEntry,
    plan: &Plan,
    frequency: TscFrequency,
) -> std::io::Result<()> {
    let (before, during): (Vec<_>, Vec<_>) =
        budget.left_out.iter().partition(|one| one.at.is_none());
    let first = match (budget.first_pass_ns, budget.first_pass_percent) {
        (Ns(0), _) => "from the command's first instruction".to_owned(),
        (Ns(lasted), percent) => format!(
            "after a first pass of {:.1} s, in which {} were left out, {}",
            lasted as f64 / 1e9,
            before.len(),
            match percent {
                Some(percent) => format!("and at whose end probes took at most {percent:.1} %"),
                None => "and nothing ran at its end".to_owned(),
            }
        ),
    };
    text_line!(
        out,
        "budget {} %: {} functions measured {first}; {} left out while recording",
        budget.percent,
        budget.measured,
        during.len()
    )?;
    for (when, mut which) in [("left out", before), ("left out while recording", during)] {
        which.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        let more = which.len().saturating_sub(NAMED_AT_MOST);
        for one in which.into_iter().take(NAMED_AT_MOST) {
            let (module, f) = named(plan, one.function);
            let own = one.own_ticks.map_or(String::new(), |ticks| {
                format!(", {} ns each in itself", frequency.ns(ticks as i64))
            });
            text_line!(
                out,
                "{when}: {module}!{}: {} calls/s{own}, {:.1} %",
                f.name,
                one.calls_per_s,
                one.percent
            )?;
        }
        if more > 0 {
            text_line!(out, "{when}: and {more} more")?;
        }
    }
    Ok(())
}
