//! One recording from start to end, in the recorder process.
use super::exited_targets::Running;
use super::flight::Tables;
use super::progress::Shown;
use super::sampling::Asked;
use super::slices::{Beside, WithSlices};
use super::{RecordArgs, calibrate, check_cost, end, flight, sampling, summary, targets};
use crate::command::{exit_code_of, take_signals};
use crate::output;
use anyhow::{Context, bail};
use hopscope_event::table::{ModuleEntry, TargetStops};
use hopscope_event::{OffCpuEntry, ProcessEntry, ProcessIx, RecordingMeta};
use hopscope_probe::counters::{Switches, clock_sync};
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::instrument::resolve::Policy;
use hopscope_probe::live::found;
use hopscope_probe::live::install::{InstallOptions, Installed, Stores, host_has_bmi2, install};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::locate::basename;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::{Item, Plan};
use hopscope_probe::recorder::off_cpu::OffCpuRecorder;
use hopscope_probe::recorder::thin::Thin;
use hopscope_probe::recorder::{Limits, Outcome, Recorder, Sink, Target, ThreadNumbers};
use hopscope_process::{Held, fd_reserve, launch};
use hopscope_trace::TraceWriter;
use std::fs;
use std::io::{BufWriter, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    hopscope_process::fault::arm();
    if args.command.is_empty() {
        return record(args, None);
    }
    // With a command its exit code is ours, and 125 says that hopscope itself failed.
    let ignored = super::guard::ignored_at_start();
    let done = launch(&args.command, crate::command::MARK, &ignored)
        .map_err(Into::into)
        .and_then(|held| record(args, Some(held)));
    done.or_else(|e| Ok(crate::status::failed(&e, 125)))
}

fn record(args: &RecordArgs, mut held: Option<Held>) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    take_signals(&stop)?;
    let asked = Asked::of(args)?;
    let selections: Vec<Selection> = args
        .functions
        .iter()
        .map(|p| Selection::parse(p))
        .collect::<Result<_, _>>()?;
    let pids = match &held {
        Some(held) => vec![held.pid()],
        None => targets::pids(args)?,
    };

    if args.dry_stop {
        return dry_stop(args, &pids, &stop);
    }
    let mut plan = Plan::new(
        Pattern::parse_all(&args.exclude)?,
        args.assume_no_exceptions,
    );
    plan.all_frames = args.symbols.is_some();
    let mut wanted = Vec::new();
    let mut failures = Vec::new();
    let shown = Shown::begin();
    let running: Vec<Running> = pids.iter().map(|pid| Running::now(*pid)).collect();
    for (n, pid) in pids.iter().enumerate() {
        match prepare(*pid, &selections, args, &mut plan) {
            Ok(items) => wanted.push((targets::entry(ProcessIx(n as u32), *pid), items)),
            Err(e) => failures.push(running[n].or_exited(e, "looked into")),
        }
    }
    if args.dry_run {
        drop(shown);
        summary::dry_run(&plan, args.json)?;
        report_failures(&mut failures, wanted.is_empty())?;
        return Ok(ExitCode::SUCCESS);
    }
    report_failures(&mut failures, wanted.is_empty())?;
    if plan.functions.is_empty() {
        summary::dry_run(&plan, args.json)?;
        bail!("every matching function is refused; the reasons are above");
    }

    let options = InstallOptions {
        contexts: args.threads,
        ring_records_log2: args.buffer,
        bmi2: host_has_bmi2(),
        stores: stores(args),
        switchable: args.check_cost.is_some(),
    };
    // Before anything else takes them.
    fd_reserve::reserve(wanted.len()).with_context(|| {
        format!(
            "{} files may be open in hopscope, which are too few to attach and restore for sure; raise the limit (ulimit -n)",
            fd_reserve::limit()
        )
    })?;
    // A kernel that refuses is found out before any target is touched.
    let mut beside = Beside::prepare(args, &pids)?;
    let roots = sampling::roots(args, &plan)?;
    let (meta, off_ticks) = calibrated(args, &options);
    let triggers = asked.calls(args, &plan, &roots, meta.tsc_frequency)?;
    let (mut writer, mut place) = match args.flight {
        Some(_) => (None, None),
        None => {
            let (file, place) = output::create(&args.output, args.mode)?;
            let buffered = BufWriter::with_capacity(1 << 20, file);
            (Some(TraceWriter::new(buffered, &meta)?), Some(place))
        }
    };
    // Before the first probe: every call is to lie within what is known of switches.
    let switches = open_switches(args, &wanted);
    let (mut installed, mut processes) = (Vec::new(), Vec::new());
    for (process, items) in wanted {
        match attach(&process, &items, &plan, &meta, &options) {
            Ok(mut done) => {
                note_late_refusals(&done, &mut plan);
                if args.assume_no_exceptions {
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
    drop(shown);
    report_failures(&mut failures, installed.is_empty())?;
    let off_cpu = OffCpuEntry {
        why_not: switches.as_ref().err().cloned(),
        ..OffCpuEntry::default()
    };
    let tables = Tables {
        meta: &meta,
        plan: &plan,
        processes: &processes,
        off_cpu: &off_cpu,
    };
    if let Some(writer) = &mut writer {
        tables.write(writer)?;
        if let Some(beside) = &mut beside {
            beside.begin(writer)?;
        }
    }
    let attach_stops: Vec<TargetStops> = installed
        .iter()
        .map(|(_, i)| i.stops.totals(i.pid))
        .collect();
    let pids: Vec<i32> = installed.iter().map(|(_, i)| i.pid).collect();
    write_symbols(args, &installed)?;
    let early = asked.begin();
    write_ready(args, &pids)?;
    let started = held.take().map(Held::start).transpose();
    let mut command = started.map_err(|e| match running.first() {
        Some(running) => running.or_exited(e.into(), "attached to"),
        None => e.into(),
    })?;
    let parts = Parts {
        args,
        targets: installed
            .into_iter()
            .map(|(ix, i)| {
                let watch = plan.watch(i.pid);
                Target::new(i, ix).watched(watch)
            })
            .collect(),
        meta: &meta,
        switches: switches.ok(),
        stop: &stop,
    };
    // From here on there is something to keep, whatever happens.
    if let Some(place) = &mut place {
        place.keep();
    }
    let recorded = match writer {
        None => {
            let (mut outcome, counts, saved) =
                flight::run(args, &tables, &asked, triggers, |f| parts.drive(f))?;
            outcome.notes.extend(early);
            end::Recorded {
                outcome,
                file: None,
                thin: None,
                flight: Some((counts, saved)),
                slices: None,
            }
        }
        Some(mut writer) => {
            let (outcome, thin) = match (args.every, &mut beside) {
                (None, None) => (parts.drive(&mut writer), None),
                (None, Some(beside)) => {
                    let writer = &mut writer;
                    (parts.drive(&mut WithSlices { writer, beside }), None)
                }
                (Some(every), _) => {
                    let mut thin = Thin::new(&mut writer, roots, every);
                    thin.begin()?;
                    let outcome = parts.drive(&mut thin);
                    (outcome, Some(thin.finish()))
                }
            };
            let slices = beside
                .map(|beside| beside.finish(&mut writer))
                .transpose()?;
            end::Recorded {
                outcome,
                file: Some(writer).zip(place),
                thin,
                flight: None,
                slices,
            }
        }
    };
    let found = check_cost::found(args.check_cost, &recorded.outcome, &meta, off_ticks);
    let done = end::finish(args, recorded, attach_stops, &plan, &meta, found)?;
    match &mut command {
        Some(command) => exit_code_of(command),
        None => Ok(done),
    }
}

fn stores(args: &RecordArgs) -> Stores {
    match (args.empty_probes, args.stamp_probes) {
        (true, _) => Stores::Nothing,
        (_, true) => Stores::Stamps,
        _ => Stores::Records,
    }
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

/// What the recorder needs, whatever it drains into.
struct Parts<'a> {
    args: &'a RecordArgs,
    targets: Vec<Target>,
    meta: &'a RecordingMeta,
    switches: Option<Switches>,
    stop: &'a AtomicBool,
}

impl Parts<'_> {
    fn drive<S: Sink>(self, sink: &mut S) -> Outcome {
        let frequency = self.meta.tsc_frequency;
        let recorder = Recorder {
            targets: self.targets,
            writer: sink,
            limits: Limits {
                duration: self.args.duration,
                calls: self.args.count,
                max_overhead_percent: self.args.max_overhead,
            },
            frequency,
            cost: self.meta.probe_cost,
            alternation: check_cost::alternation(self.args.check_cost),
            numbers: ThreadNumbers::default(),
            off_cpu: self.switches.map(|s| OffCpuRecorder::new(s, frequency)),
            clock: &clock_sync,
        };
        let tty = std::io::stderr().is_terminal();
        let stop = self.stop;
        recorder.run(&|| stop.load(Ordering::Relaxed), &mut |s| {
            summary::status(&s, tty)
        })
    }
}

/// Context switches of the targets, or why there are none.
fn open_switches(
    args: &RecordArgs,
    wanted: &[(ProcessEntry, Vec<Item>)],
) -> Result<Switches, String> {
    if args.no_off_cpu {
        return Err("disabled by --no-off-cpu".into());
    }
    let pids: Vec<i32> = wanted.iter().map(|(process, _)| process.pid).collect();
    Switches::of(&pids).map_err(|e| {
        crate::status::say!("off-CPU time is not recorded: {e}");
        e.to_string()
    })
}

/// The floor of an attach: its batch stop with nothing done in it.
fn dry_stop(args: &RecordArgs, pids: &[i32], stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let mut pauses = Vec::new();
    for pid in pids {
        hopscope_process::preflight(*pid)?;
        let timing = hopscope_process::stop_all(*pid)?.resume()?;
        pauses.push(timing.pause().as_nanos() as u64);
    }
    write_ready(args, pids)?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let line = serde_json::json!({"type": "summary", "schema": 1, "dry_stop": true, "attach_pause_ns": pauses});
    println!("{line}");
    Ok(ExitCode::SUCCESS)
}

pub fn write_ready(args: &RecordArgs, pids: &[i32]) -> anyhow::Result<()> {
    let Some(path) = &args.ready_file else {
        return Ok(());
    };
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    fs::write(path, pids.join("\n") + "\n").with_context(|| format!("writing {}", path.display()))
}

/// Before anybody is told that the recording has begun: whoever looks at a target finds them.
fn write_symbols(args: &RecordArgs, installed: &[(ProcessIx, Installed)]) -> anyhow::Result<()> {
    let Some(path) = &args.symbols else {
        return Ok(());
    };
    for (_, target) in installed {
        let mut name = path.clone().into_os_string();
        if installed.len() > 1 {
            name.push(format!(".{}", target.pid));
        }
        let (file, place) = output::create(Path::new(&name), args.mode)?;
        target.write_symbols(&file)?;
        place.put()?;
    }
    Ok(())
}

pub fn prepare(
    pid: i32,
    selections: &[Selection],
    args: &RecordArgs,
    plan: &mut Plan,
) -> anyhow::Result<Vec<Item>> {
    let preflight = hopscope_process::preflight(pid)?;
    if preflight.shadow_stack {
        bail!(
            "process {pid} runs with a user shadow stack, under which no system call can be made safely in it"
        );
    }
    found::check_free(pid)?;
    let captures = selections.iter().any(|s| !s.captures.is_empty());
    let no_checked_copy = if captures && !args.trust_pointers {
        hopscope_process::copies_allowed::forbids_copies(pid, !args.dry_run)?
    } else {
        None
    };
    let policy = Policy {
        trust_pointers: args.trust_pointers,
        no_checked_copy,
    };
    Ok(plan.add_selected(pid, selections, preflight.shadow_stack, &policy)?)
}

pub fn attach(
    process: &ProcessEntry,
    items: &[Item],
    plan: &Plan,
    meta: &RecordingMeta,
    options: &InstallOptions,
) -> anyhow::Result<Installed> {
    if items.is_empty() {
        bail!(
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
    table.switches_stacks = plan.switches_stacks(process.pid);
    let selected: Vec<_> = items.iter().map(Item::selected).collect();
    Ok(install(process.pid, selected, options, table)?)
}

pub fn note_late_refusals(installed: &Installed, plan: &mut Plan) {
    for (id, why) in &installed.refused {
        let f = plan.functions[id.0 as usize].clone();
        let module = plan.modules[f.module.0 as usize].path.clone();
        plan.refuse(basename(module.as_ref()), &f.name, f.svma, why.clone());
    }
}

/// Prints every failure but returns the last one when nothing is left to do.
pub fn report_failures(
    failures: &mut Vec<anyhow::Error>,
    nothing_left: bool,
) -> anyhow::Result<()> {
    let last = if nothing_left { failures.pop() } else { None };
    for e in failures.drain(..) {
        crate::status::say!("{e:#}");
    }
    last.map_or(Ok(()), Err)
}

pub fn meta(args: &RecordArgs, options: &InstallOptions) -> RecordingMeta {
    calibrated(args, options).0
}

/// Also what a call costs with its probes switched off, where they can be.
fn calibrated(args: &RecordArgs, options: &InstallOptions) -> (RecordingMeta, Option<[u64; 3]>) {
    let mut meta = RecordingMeta {
        ring_records: 1 << options.ring_records_log2,
        ..crate::host::meta()
    };
    let mut off_ticks = None;
    if !args.no_calibration && options.stores == Stores::Records {
        match calibrate::measure(&meta, options) {
            Ok(calibrated) => {
                meta.probe_cost = Some(calibrated.cost);
                off_ticks = calibrated.off_ticks;
            }
            Err(e) => crate::status::say!(
                "the probe's cost could not be measured: {e:#}; reports will show raw times only"
            ),
        }
    }
    meta.start = clock_sync();
    (meta, off_ticks)
}
