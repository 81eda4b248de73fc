//! One look at running processes: attach as `record` does, drain into memory, detach.
use super::args::TopArgs;
use crate::command::take_signals;
use crate::record::session::{
    attach, meta, note_late_refusals, prepare, report_failures, write_ready,
};
use crate::record::{summary, targets};
use anyhow::{Context, bail};
use hopscope_analyze::{Correction, Index};
use hopscope_event::{ProcessIx, RecordingMeta, Tsc};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::live::install::{InstallOptions, Installed, Stores, host_has_bmi2};
use hopscope_probe::locate::basename;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::{Ended, Limits, Outcome, Recorder, Target, ThreadNumbers};
use hopscope_report::{Scale, TimeUnit, printable};
use hopscope_session::top::{Live, Name, Shared, Shown, Snapshot, show};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a screen or pipe that takes nothing is waited for at the end, when the targets are
/// restored already.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    hopscope_process::fault::arm();
    let stop = Arc::new(AtomicBool::new(false));
    take_signals(&stop)?;
    let (installed, plan, meta) = begin(args)?;
    let shown = shown(args, &installed, &plan, &meta);
    let live = Rc::new(RefCell::new(Live::new(
        Index::new(&plan.functions, &[]),
        meta.probe_cost.map(Correction::new),
    )));
    let (sender, receiver) = sync_channel(4);
    let output = output(shown, receiver, &stop);
    let intervals = Intervals::new(args.interval, live.clone(), sender);
    let targets = installed.into_iter().map(|(ix, i)| {
        let watch = plan.watch(i.pid);
        Target::new(i, ix).watched(watch)
    });
    let outcome = look(args, targets.collect(), &meta, live, &stop, &intervals);
    intervals.calls_unmeasured.set(outcome.calls_unmeasured);
    intervals.live.borrow_mut().visited(Tsc(u64::MAX));
    intervals.send();
    let missed = intervals.missed.get();
    drop(intervals);
    end(&outcome, missed, output)
}

type Begun = (Vec<(ProcessIx, Installed)>, Plan, RecordingMeta);

fn begin(args: &TopArgs) -> anyhow::Result<Begun> {
    let record = args.as_record();
    let parsed = record.functions.iter().map(|p| Pattern::parse(p));
    let patterns: Vec<Pattern> = parsed.collect::<Result<_, _>>()?;
    let selections: Vec<_> = patterns.into_iter().map(Selection::of_pattern).collect();
    let mut plan = Plan::new(
        Pattern::parse_all(&record.exclude)?,
        record.assume_no_exceptions,
    );
    let mut wanted = Vec::new();
    let mut failures = Vec::new();
    for (n, pid) in targets::pids(&record)?.into_iter().enumerate() {
        match prepare(pid, &selections, &record, &mut plan) {
            Ok(items) => wanted.push((targets::entry(ProcessIx(n as u32), pid), items)),
            Err(e) => failures.push(e),
        }
    }
    report_failures(&mut failures, wanted.is_empty())?;
    if plan.functions.is_empty() {
        summary::dry_run(&plan, args.json)?;
        bail!("every matching function is refused; the reasons are above");
    }
    let options = InstallOptions {
        contexts: record.threads,
        ring_records_log2: record.buffer,
        bmi2: host_has_bmi2(),
        stores: Stores::Records,
        switchable: false,
    };
    let meta = meta(&record, &options);
    let mut installed = Vec::new();
    for (process, items) in wanted {
        match attach(&process, &items, &plan, &meta, &options) {
            Ok(done) => {
                note_late_refusals(&done, &mut plan);
                installed.push((process.ix, done));
            }
            Err(e) => failures.push(e),
        }
    }
    report_failures(&mut failures, installed.is_empty())?;
    let pids: Vec<i32> = installed.iter().map(|(_, i)| i.pid).collect();
    // The screen would hide what is said now, and whoever waits for the file would wait for ever.
    write_ready(&record, &pids)?;
    if !plan.refusals.is_empty() {
        let n = plan.refusals.len();
        crate::status::say!("{n} matching functions are refused; hopscope functions shows why");
    }
    Ok((installed, plan, meta))
}

fn shown(
    args: &TopArgs,
    installed: &[(ProcessIx, Installed)],
    plan: &Plan,
    meta: &RecordingMeta,
) -> Shown {
    let pids: Vec<_> = installed.iter().map(|(_, i)| i.pid.to_string()).collect();
    let names = plan.functions.iter().map(|f| Name {
        function: printable(&f.name),
        module: printable(basename(plan.modules[f.module.0 as usize].path.as_ref())),
    });
    Shown {
        title: format!(
            "pid {}, {} functions",
            pids.join(", "),
            plan.functions.len()
        ),
        names: names.collect(),
        scale: Scale::new(TimeUnit::Ns, meta.tsc_frequency),
        corrected: meta.probe_cost.is_some(),
        by: args.sort,
        raw: args.raw,
        json: args.json,
        slowdown: summary::slowdown,
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

/// Cuts the time into intervals and hands each to whoever shows it.
struct Intervals {
    every: Duration,
    started: Instant,
    last: Cell<Instant>,
    lost_before: Cell<u64>,
    live: Rc<RefCell<Live>>,
    sender: SyncSender<Snapshot>,
    /// As the recorder said it last, once a second.
    slowdown: Cell<Option<f64>>,
    calls_unmeasured: Cell<u64>,
    /// Intervals that were not shown because the output did not keep up.
    missed: Cell<u64>,
}

impl Intervals {
    fn new(every: Duration, live: Rc<RefCell<Live>>, sender: SyncSender<Snapshot>) -> Intervals {
        let now = Instant::now();
        Intervals {
            every,
            started: now,
            last: Cell::new(now),
            lost_before: Cell::new(0),
            live,
            sender,
            slowdown: Cell::new(None),
            calls_unmeasured: Cell::new(0),
            missed: Cell::new(0),
        }
    }

    fn tick(&self) {
        if self.last.get().elapsed() >= self.every {
            self.send();
        }
    }

    fn send(&self) {
        let now = Instant::now();
        let span = now - self.last.replace(now);
        let mut snapshot = self.live.borrow_mut().snapshot();
        snapshot.span_s = span.as_secs_f64();
        snapshot.since_start_s = (now - self.started).as_secs_f64();
        snapshot.lost = snapshot.lost_whole - self.lost_before.replace(snapshot.lost_whole);
        snapshot.calls_unmeasured = self.calls_unmeasured.get();
        snapshot.slowdown_percent = self.slowdown.get();
        // Disconnected: whoever looked is gone, and the recorder is about to stop.
        if let Err(TrySendError::Full(_)) = self.sender.try_send(snapshot) {
            self.missed.set(self.missed.get() + 1);
        }
    }
}

fn look(
    args: &TopArgs,
    targets: Vec<Target>,
    meta: &RecordingMeta,
    live: Rc<RefCell<Live>>,
    stop: &AtomicBool,
    intervals: &Intervals,
) -> Outcome {
    let recorder = Recorder {
        targets,
        writer: &mut Shared(live),
        limits: Limits {
            duration: args.duration,
            calls: None,
            max_overhead_percent: args.max_overhead(),
        },
        frequency: meta.tsc_frequency,
        cost: meta.probe_cost,
        alternation: None,
        numbers: ThreadNumbers::default(),
        off_cpu: None,
        clock: &clock_sync,
    };
    recorder.run(
        &|| {
            intervals.tick();
            stop.load(Ordering::Relaxed)
        },
        &mut |status| {
            intervals.slowdown.set(status.slowdown_percent);
            intervals.calls_unmeasured.set(status.calls_unmeasured);
        },
    )
}

/// The targets are restored; says so, and what the output could not.
fn end(
    outcome: &Outcome,
    missed: u64,
    output: JoinHandle<std::io::Result<()>>,
) -> anyhow::Result<ExitCode> {
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
        bail!("{}", outcome.ended);
    }
    shown.context("showing what was measured")?;
    match outcome.ended {
        Ended::Overhead { .. } | Ended::MayUnwind(_) => Ok(ExitCode::from(1)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
