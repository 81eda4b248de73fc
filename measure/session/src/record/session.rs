//! One recording from start to end, in the recorder process.
use super::end::{self, Finished, Recorded};
use super::flight::{self, Tables};
use super::one_file::{Drained, NewFile};
use super::recorder::{Parts, open_switches};
use super::sampling::{self, Asked};
use super::slices::Beside;
use super::{RecordRequest, budget, check_cost, dry_stop};
use crate::attach::{
    Running, Shown, attach, calls, following, prepare, report_failures, require_functions, targets,
    watched, with_calibration, with_counters, write_listing, write_ready,
};
use crate::error::{Context, Result, refuse};
use crate::output;
use crate::signals::{ignored_at_start, stop_at_signals};
use hopscope_event::table::{ModuleEntry, TargetStops};
use hopscope_event::{FunctionId, OffCpuEntry, ProcessIx};
use hopscope_probe::counters::{clock_sync, counting};
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::live::install::{InstallOptions, host_has_bmi2};
use hopscope_probe::locate::basename;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::Target;
use hopscope_probe::recorder::flight::Flight;
use hopscope_process::{Held, fd_reserve, launch};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// # Errors
/// Nothing could be recorded, or the file is not what it should be. The targets were restored.
pub fn run(request: &RecordRequest) -> Result<Finished> {
    hopscope_process::fault::arm();
    if request.command.is_empty() {
        return record(request, None);
    }
    let held = launch(&request.command, &ignored_at_start())?;
    record(request, Some(held))
}

fn record(request: &RecordRequest, held: Option<Held>) -> Result<Finished> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_at_signals(&stop)?;
    let asked = Asked::of(request)?;
    let selections = request.attach.functions.iter();
    let selections: Vec<Selection> = selections
        .map(|p| Selection::parse(p))
        .collect::<std::result::Result<_, _>>()?;
    if request.budget_percent.is_some() && selections.iter().any(|s| s.inlined) {
        refuse!(
            "--budget leaves out functions one by one, and inlined ones have no probes that could be taken away alone: leave out one of the two"
        );
    }
    if request.check_cost.is_some() && selections.iter().any(|s| s.inlined) {
        refuse!(
            "--check-cost switches functions off where they are entered, which inlined ones are not: leave out one of the two"
        );
    }
    let calls = calls::are_asked_for(&selections, request.attach.method)?;
    if calls && request.follow_dlopen {
        refuse!("{}", following::NOT_WITH_CALLS);
    }
    let takes_probes_away = request.budget_percent.is_some() || request.check_cost.is_some();
    if calls && takes_probes_away {
        refuse!(
            "--budget and --check-cost take the probes of functions away, and those around calls (calls:) are in the function that calls: leave out one of the two"
        );
    }
    let pids = match &held {
        Some(held) => vec![held.pid()],
        None => targets::pids(&request.attach)?,
    };
    if request.dry_stop {
        dry_stop::run(request, &pids, &stop)?;
        return Ok(Finished::default());
    }
    let mut plan = Plan::new(
        Pattern::parse_all(&request.attach.exclude)?,
        request.attach.assume_no_exceptions,
    );
    plan.all_frames = request.symbols.is_some();
    let names = selections.iter().flat_map(Selection::counters);
    plan.counters = counting::chosen(names, request.attach.emulate_counters)?;
    plan.method = request.attach.method;
    plan.follows_loads = request.follow_dlopen;
    plan.times_in_callers = !request.follow_dlopen && !takes_probes_away;
    let shown = Shown::begin();
    let running: Vec<Running> = pids.iter().map(|pid| Running::now(*pid)).collect();
    let (mut wanted, mut failures) = (Vec::new(), Vec::new());
    let mut judged = HashMap::new();
    for (n, pid) in pids.iter().enumerate() {
        match prepare(
            *pid,
            &selections,
            &request.attach,
            !request.dry_run,
            &mut plan,
        ) {
            Ok(found) => {
                let process = ProcessIx(n as u32);
                judged.insert(process, (found.shadow_stack, found.policy));
                wanted.push((targets::entry(process, *pid), found.items));
            }
            Err(e) => failures.push(running[n].or_exited(e, "looked into")),
        }
    }
    if request.dry_run {
        drop(shown);
        write_listing(&plan, request.json)?;
        report_failures(&mut failures, wanted.is_empty())?;
        return Ok(Finished::default());
    }
    report_failures(&mut failures, wanted.is_empty())?;
    require_functions(&plan, request.json)?;

    let options = InstallOptions {
        contexts: request.attach.threads,
        ring_records_log2: request.attach.ring_records_log2,
        bmi2: host_has_bmi2(),
        stores: request.stores,
        switchable: request.check_cost.is_some(),
        ordered_stamps: request.attach.ordered_stamps,
        follow_forks: request.follow_forks,
        fused_stamps: request.budget_percent.is_none(),
    };
    // Before anything else takes them.
    fd_reserve::reserve(wanted.len()).with_context(|| {
        format!(
            "{} files may be open in hopscope, which are too few to attach and restore for sure; raise the limit (ulimit -n)",
            fd_reserve::limit()
        )
    })?;
    // A kernel that refuses is found out before any target is touched.
    let beside = Beside::prepare(request, &pids)?;
    let roots = sampling::roots(request, &plan)?;
    let (mut meta, off_ticks) = with_calibration(&request.attach, &options);
    with_counters(&mut plan.counters, &mut meta, &request.attach, &options);
    let triggers = asked.calls(request, &plan, &roots, meta.tsc_frequency)?;
    let governor = super::distress::governor(request, &plan, &roots, meta.tsc_frequency)?;
    let file = match request.flight {
        Some(_) => None,
        None => Some(NewFile::create(request, beside)?),
    };
    let watched_first = request.budget_percent.is_some() && held.is_none();
    let pids: Vec<i32> = wanted.iter().map(|(process, _)| process.pid).collect();
    // Before the first probe: every call is to lie within what is known of switches.
    let switches = (!watched_first).then(|| open_switches(request, &pids));
    let (mut installed, mut processes) = (Vec::new(), Vec::new());
    for (process, items) in wanted {
        match attach(&process, &items, &mut plan, &meta, &options) {
            Ok(mut done) => {
                if request.attach.assume_no_exceptions {
                    done.notes.push(ASSUMED.to_owned());
                }
                if held.is_some() {
                    done.notes.extend(constructors(&plan, process.pid));
                }
                installed.push((process.ix, done));
                processes.push(process);
            }
            Err(e) => failures.push(running[process.ix.0 as usize].or_exited(e, "attached to")),
        }
    }
    report_failures(&mut failures, installed.is_empty())?;
    let following = request.follow_dlopen.then(|| {
        following::begin(
            &installed,
            &processes,
            judged,
            &plan,
            (&selections, &meta, options),
        )
    });
    let following = following.transpose()?;
    let mut targets = watched(installed, &plan, request.follow_forks);
    following::join(&mut targets, following.as_ref());
    let chosen = request
        .budget_percent
        .map(|percent| {
            let budget = budget::budget(percent, &meta, watched_first);
            let slow = governor.slow_calls.iter().flat_map(|t| &t.functions);
            let needed: Vec<FunctionId> = roots.iter().chain(slow).copied().collect();
            budget::choose(budget, &mut targets, &mut plan, &needed, &stop)
        })
        .transpose()?;
    drop(shown);
    if watched_first {
        meta.start = clock_sync();
    }
    let switches = switches.unwrap_or_else(|| open_switches(request, &pids));
    let off_cpu = OffCpuEntry {
        why_not: switches.as_ref().err().cloned(),
        ..OffCpuEntry::default()
    };
    let tables = Tables {
        meta: &meta,
        plan: &plan,
        processes: &processes,
        off_cpu: &off_cpu,
        budget: chosen.as_ref().map(|chosen| &chosen.entry),
    };
    let file = file.map(|file| file.begin(&tables)).transpose()?;
    let stops = |target: &Target| target.installed.stops.totals(target.installed.pid);
    let attach_stops: Vec<TargetStops> = targets.iter().map(stops).collect();
    let pids: Vec<i32> = targets.iter().map(|t| t.installed.pid).collect();
    write_symbols(request, &targets)?;
    let early = asked.begin();
    write_ready(&request.attach, &pids)?;
    let started = held.map(Held::start).transpose();
    let child = started.map_err(|e| match running.first() {
        Some(running) => running.or_exited(e.into(), "attached to"),
        None => e.into(),
    })?;
    let parts = Parts {
        request,
        targets,
        following,
        processes: running.len(),
        budget: chosen.as_ref().map(|chosen| chosen.budget),
        meta: &meta,
        switches: switches.ok(),
        governor,
        stop: &stop,
    };
    let mut recorded = match (file, &request.flight) {
        (Some(mut file), _) => Recorded {
            drained: file.record(parts, request.every, roots)?,
            file: Some(file),
            flight: None,
        },
        (None, flight) => {
            let drive = |flight: &mut Flight<'_, _>| parts.drive(flight);
            let flight = flight.as_ref().with_context(|| "no file")?;
            let (mut outcome, counts, saved) =
                flight::run(request, flight, &tables, &asked, triggers, drive)?;
            outcome.notes.extend(early);
            Recorded {
                drained: Drained {
                    outcome,
                    thin: None,
                    slices: None,
                },
                file: None,
                flight: Some((counts, saved)),
            }
        }
    };
    let found = check_cost::found(
        request.check_cost,
        &recorded.drained.outcome,
        &meta,
        off_ticks,
    );
    let plan = match request.follow_dlopen {
        true => following::grown(&mut recorded.drained.outcome, plan, &selections),
        false => plan,
    };
    recorded.drained.outcome.notes.extend(calls::notes(&plan));
    let incomplete = end::finish(
        request,
        recorded,
        attach_stops,
        &plan,
        &meta,
        found,
        chosen.map(|chosen| chosen.entry),
    )?;
    Ok(Finished { incomplete, child })
}

const ASSUMED: &str = "--assume-no-exceptions: nothing was refused because exceptions or ending threads \
     could unwind it; if one had, the target would have ended";

/// A command is held at its program's entry point: its libraries have been set up by then.
fn constructors(plan: &Plan, pid: i32) -> Option<String> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let asked = |module: &ModuleEntry| plan.functions.iter().any(|f| f.module == module.ix);
    let modules = plan
        .modules
        .iter()
        .filter(|m| program != Path::new(&m.path));
    let names: Vec<&str> = modules
        .filter(|m| asked(m))
        .map(|m| basename(m.path.as_ref()))
        .collect();
    let others = match names.len().checked_sub(NAMED_AT_MOST) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let named = names.iter().take(NAMED_AT_MOST).copied();
    let named: Vec<&str> = named.collect();
    (!names.is_empty()).then(|| {
        format!(
            "measured from the program's entry point on: what constructors of shared libraries called before in {}{others} \
             is not recorded",
            named.join(", ")
        )
    })
}

/// Libraries in one note.
const NAMED_AT_MOST: usize = 5;

/// Before anybody is told that the recording has begun: whoever looks at a target finds them.
fn write_symbols(request: &RecordRequest, targets: &[Target]) -> Result<()> {
    let Some(path) = &request.symbols else {
        return Ok(());
    };
    for target in targets.iter().map(|t| &t.installed) {
        let mut name = path.clone().into_os_string();
        if targets.len() > 1 {
            name.push(format!(".{}", target.pid));
        }
        let (file, place) = output::create(Path::new(&name), request.mode)?;
        target.write_symbols(&file)?;
        place.put()?;
    }
    Ok(())
}
