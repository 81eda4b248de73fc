//! One look at running processes: attach as `record` does, drain into memory, detach.
use super::intervals::Intervals;
use super::live::{Live, Shared, Snapshot};
use super::request::TopRequest;
use super::show::show;
use super::shown::Shown;
use crate::attach::{
    attach, calls, following, prepare, report_failures, require_functions, targets, watched,
    with_calibration, write_ready,
};
use crate::error::{Context, Result, refuse};
use crate::signals::stop_at_signals;
use hopscope_analyze::Correction;
use hopscope_event::{ProcessIx, RecordingMeta};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::live::install::{InstallOptions, Installed, Stores, host_has_bmi2};
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::following::Following;
use hopscope_probe::recorder::governor::Governor;
use hopscope_probe::recorder::{Ended, Limits, Numbers, Recorder, RecorderResult, Target};
use hopscope_report::{Scale, TimeUnit};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a screen or pipe that takes nothing is waited for at the end, when the targets are
/// restored already.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// True when it ended before its time.
///
/// # Errors
/// Nothing could be looked at, or shown. The targets were restored.
pub fn run(request: &TopRequest) -> Result<bool> {
    hopscope_process::fault::arm();
    let stop = Arc::new(AtomicBool::new(false));
    stop_at_signals(&stop)?;
    let Begun {
        following,
        installed,
        plan,
        meta,
        selections,
    } = begin(request)?;
    let shown = shown(request, &installed, &plan, &meta);
    let mut live = Live::new(meta.probe_cost.map(Correction::new));
    live.add(&plan.modules, &plan.functions);
    let live = Rc::new(RefCell::new(live));
    let (sender, receiver) = sync_channel(4);
    let output = output(shown, receiver, &stop);
    let intervals = Intervals::new(request.interval, live.clone(), sender);
    let mut targets = watched(installed, &plan, false);
    following::join(&mut targets, following.as_ref());
    let targets = (following, targets);
    let mut outcome = look(request, targets, &meta, live, &stop, &intervals);
    if request.follow_dlopen {
        following::grown(&mut outcome, plan, &selections);
    }
    let missed = intervals.finish(outcome.calls_unmeasured);
    end(&outcome, missed, output)
}

struct Begun {
    following: Option<Following>,
    installed: Vec<(ProcessIx, Installed)>,
    plan: Plan,
    meta: RecordingMeta,
    selections: Vec<Selection>,
}

fn begin(request: &TopRequest) -> Result<Begun> {
    let asked = &request.attach;
    let functions = asked.functions.iter();
    let selections: Vec<_> = functions
        .map(|text| Selection::without_captures(text))
        .collect::<std::result::Result<_, _>>()?;
    let calls = calls::are_asked_for(&selections, asked.method)?;
    if calls && request.follow_dlopen {
        refuse!("{}", following::NOT_WITH_CALLS);
    }
    let mut plan = Plan::new(
        Pattern::parse_all(&asked.exclude)?,
        asked.assume_no_exceptions,
    );
    plan.method = asked.method;
    plan.follows_loads = request.follow_dlopen;
    plan.times_in_callers = !request.follow_dlopen;
    let (mut wanted, mut judged) = (Vec::new(), HashMap::new());
    let mut failures = Vec::new();
    for (n, pid) in targets::pids(asked)?.into_iter().enumerate() {
        match prepare(pid, &selections, asked, true, &mut plan) {
            Ok(found) => {
                let process = ProcessIx(n as u32);
                judged.insert(process, (found.shadow_stack, found.policy));
                wanted.push((targets::entry(process, pid), found.items));
            }
            Err(e) => failures.push(e),
        }
    }
    report_failures(&mut failures, wanted.is_empty())?;
    require_functions(&plan, request.json)?;
    let options = InstallOptions {
        contexts: asked.threads,
        ring_records_log2: asked.ring_records_log2,
        bmi2: host_has_bmi2(),
        stores: Stores::Records,
        switchable: false,
        ordered_stamps: asked.ordered_stamps,
        follow_forks: false,
        fused_stamps: true,
    };
    let (meta, _) = with_calibration(asked, &options);
    let (mut installed, mut processes) = (Vec::new(), Vec::new());
    for (process, items) in wanted {
        match attach(&process, &items, &mut plan, &meta, &options) {
            Ok(done) => {
                installed.push((process.ix, done));
                processes.push(process);
            }
            Err(e) => failures.push(e),
        }
    }
    report_failures(&mut failures, installed.is_empty())?;
    let following = request.follow_dlopen.then(|| {
        let what = (&selections[..], &meta, options);
        following::begin(&installed, &processes, judged, &plan, what)
    });
    let following = following.transpose()?;
    let pids: Vec<i32> = installed.iter().map(|(_, i)| i.pid).collect();
    // The screen would hide what is said now, and whoever waits for the file would wait for ever.
    write_ready(asked, &pids)?;
    for note in calls::notes(&plan) {
        crate::status::say!("{note}");
    }
    if !plan.refusals.is_empty() {
        let n = plan.refusals.len();
        crate::status::say!("{n} matching functions are refused; hopscope functions shows why");
    }
    Ok(Begun {
        following,
        installed,
        plan,
        meta,
        selections,
    })
}

fn shown(
    request: &TopRequest,
    installed: &[(ProcessIx, Installed)],
    plan: &Plan,
    meta: &RecordingMeta,
) -> Shown {
    let pids: Vec<_> = installed.iter().map(|(_, i)| i.pid.to_string()).collect();
    Shown {
        title: format!(
            "pid {}, {} functions",
            pids.join(", "),
            plan.functions.len()
        ),
        scale: Scale::new(TimeUnit::Ns, meta.tsc_frequency),
        corrected: meta.probe_cost.is_some(),
        by: request.sort,
        raw: request.raw,
        json: request.json,
    }
}

/// The thread that shows. However it ends, the recorder stops, because nobody looks any more.
fn output(
    shown: Shown,
    snapshots: Receiver<Snapshot>,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<std::io::Result<()>> {
    struct StopAtEnd(Arc<AtomicBool>);
    impl Drop for StopAtEnd {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = StopAtEnd(stop.clone());
    std::thread::spawn(move || show(&shown, &snapshots, &stop.0))
}

fn look(
    request: &TopRequest,
    (following, targets): (Option<Following>, Vec<Target>),
    meta: &RecordingMeta,
    live: Rc<RefCell<Live>>,
    stop: &AtomicBool,
    intervals: &Intervals,
) -> RecorderResult {
    let recorder = Recorder {
        following,
        targets,
        writer: &mut Shared(live),
        limits: Limits {
            duration: request.duration,
            calls: None,
            max_overhead_percent: request.max_overhead_percent,
        },
        governor: Governor::default(),
        frequency: meta.tsc_frequency,
        cost: meta.probe_cost,
        budget: None,
        alternation: None,
        numbers: Numbers::default(),
        off_cpu: None,
        clock: &clock_sync,
    };
    recorder.run(
        &|| {
            intervals.tick();
            stop.load(Ordering::Relaxed)
        },
        &mut |status| {
            intervals.status(&status);
        },
    )
}

/// The targets are restored; says so, and what the output could not.
fn end(
    outcome: &RecorderResult,
    missed: u64,
    output: JoinHandle<std::io::Result<()>>,
) -> Result<bool> {
    let waiting = Instant::now();
    while !output.is_finished() && waiting.elapsed() < LAST_WORDS {
        std::thread::sleep(Duration::from_millis(5));
    }
    let shown = if output.is_finished() {
        output
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("the screen failed")))
    } else {
        Err(std::io::Error::other("the output takes nothing"))
    };
    let mut err = std::io::stderr();
    let c = &outcome.counts;
    // When stderr is gone too there is nobody left to tell.
    let _ = writeln!(
        err,
        "hopscope: detached: {}; {} records seen, {} lost, {} torn, {} calls unmeasured",
        outcome.ended, c.recorded, c.lost, c.torn, outcome.calls_unmeasured
    );
    if missed > 0 {
        let _ = writeln!(
            err,
            "hopscope: {missed} intervals were not shown: the output was too slow"
        );
    }
    for note in &outcome.notes {
        let _ = writeln!(err, "hopscope: note: {note}");
    }
    if let Ended::WriteFailed(_) = outcome.ended {
        refuse!("{}", outcome.ended);
    }
    shown.context("showing what was measured")?;
    Ok(matches!(
        outcome.ended,
        Ended::Overhead { .. } | Ended::Distress(_) | Ended::MayUnwind(_) | Ended::NotLeftOut(_)
    ))
}
