//! `bench attach`: how long a process with many threads is stopped while hopscope attaches and
//! detaches, as hopscope says and as the process's own clock says, and how long the stop of all
//! threads takes when nothing is patched.
use crate::Settings;
use crate::error::{Error, Result};
use crate::hopscope::{Hopscope, beside_short_functions};
use crate::listing::Listing;
use crate::not_measured::NotMeasured;
use crate::probe::NO_CALIBRATION;
use crate::program::{Program, Target};
use crate::table::{Table, closing};
use hopscope_compare::host::Host;
use hopscope_compare::output::{Output, Summary};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;

const THREADS: [usize; 3] = [1, 16, 64];
/// Functions measured, and the pattern that selects them.
const FUNCTIONS: [(usize, &str); 3] = [
    (1, "hopscope-bench-program!e5_0000"),
    (100, "hopscope-bench-program!e5_00??"),
    (1000, "hopscope-bench-program!e5_*"),
];
/// The one that the goal is about.
const HEADLINE: (usize, usize) = (16, 1000);
/// What one spinning thread may miss, with as many functions.
const FELT: (usize, usize) = (1, 1000);
const GAP_GOAL_US: f64 = 2000.0;

/// One combination of threads and functions.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Case {
    threads: usize,
    spinning: usize,
    functions: usize,
    /// The longest stop of any thread, by hopscope's summary: attach.
    pause_us: Spread,
    /// The same at detach.
    detach_pause_us: Spread,
    /// The longest time that the main thread missed by its own clock: from the start of `hopscope
    /// record` to its ready file.
    gap_attach_us: Spread,
    /// From the request to stop until `hopscope record` ended.
    gap_detach_us: Spread,
    /// In as long a time as the attach took, with no hopscope: the machine's own.
    gap_idle_us: Spread,
    /// Stop and resume with nothing patched in between.
    stop_floor_us: Option<Spread>,
    /// From starting `hopscope record` to its ready file.
    ready_ms: Spread,
    /// Repetitions after which copies stayed mapped because a thread was in one.
    copies_kept: usize,
}

/// Every fourth thread spins through the measured functions, beginning with the main thread; the
/// others call all of them once a millisecond and sleep.
fn busy(program: &Program, threads: usize) -> Result<(Target, usize)> {
    let spinning = threads.div_ceil(4);
    let mut target = Target::start(program)?;
    target.threads(spinning - 1, threads - spinning)?;
    target.watch()?;
    Ok((target, spinning))
}

#[derive(Debug, Default)]
struct Times {
    attach: Vec<f64>,
    detach: Vec<f64>,
    floor: Vec<f64>,
    ready: Vec<f64>,
    gap_attach: Vec<f64>,
    gap_detach: Vec<f64>,
    gap_idle: Vec<f64>,
    copies_kept: usize,
}

fn repeat(
    hopscope: &Hopscope,
    target: &mut Target,
    (functions, pattern): (usize, &str),
    times: &mut Times,
) -> Result<()> {
    target.longest_gap_ns()?;
    let recording = hopscope.record(target.pid, &[pattern], &[NO_CALIBRATION])?;
    let ready = recording.ready_after;
    times.gap_attach.push(target.longest_gap_ns()? / 1e3);
    let recorded = recording.stop()?;
    times.gap_detach.push(target.longest_gap_ns()? / 1e3);
    std::thread::sleep(ready);
    times.gap_idle.push(target.longest_gap_ns()? / 1e3);
    recorded.discard()?;
    recorded.expect_functions(functions)?;
    times
        .attach
        .push(recorded.largest("attach_pause_ns")? / 1e3);
    times
        .detach
        .push(recorded.largest("detach_pause_ns")? / 1e3);
    times.ready.push(ready.as_secs_f64() * 1e3);
    times.copies_kept += usize::from(recorded.notes().contains("stay mapped"));
    Ok(())
}

fn stop_only(hopscope: &Hopscope, pid: i32, pattern: &str, times: &mut Times) -> Result<()> {
    let options = [NO_CALIBRATION, "--dry-stop"];
    let recorded = hopscope.record(pid, &[pattern], &options)?.stop()?;
    recorded.discard()?;
    times.floor.push(recorded.largest("attach_pause_ns")? / 1e3);
    Ok(())
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    settings.say("building the measured program");
    let (hopscope, program) = beside_short_functions(settings)?;
    let host = Host::look(None);
    let repetitions = if settings.quick { 5 } else { 21 };
    let mut not_measured = Vec::new();
    let mut missing = |what: &str, reason: String| {
        if !not_measured.iter().any(|m: &NotMeasured| m.what == what) {
            not_measured.push(NotMeasured::new(what, reason));
        }
    };
    let mut cases = Vec::new();
    'cases: for threads in THREADS {
        for (functions, pattern) in FUNCTIONS {
            settings.say(&format!("{threads} threads, {functions} functions"));
            let mut times = Times::default();
            let mut spinning = 0;
            for _ in 0..repetitions {
                // A new process each time: users attach to one that nobody has touched. The stop
                // alone goes in turn with the attachment, so that both see the same machine.
                let (mut target, spin) = busy(&program, threads)?;
                spinning = spin;
                let pid = target.pid;
                if let Err(error) = stop_only(&hopscope, pid, pattern, &mut times) {
                    missing("stop floor (hopscope record --dry-stop)", error.to_string());
                }
                let done = repeat(&hopscope, &mut target, (functions, pattern), &mut times);
                // A dead target explains whatever else went wrong.
                if let Err(error) = target.check_alive().and(done) {
                    missing("hopscope record", error.to_string());
                    break 'cases;
                }
            }
            let spread = |values: &[f64]| {
                Spread::of(values).ok_or(Error::Answer {
                    asked: format!("{threads} threads, {functions} functions"),
                    answer: "no repetition succeeded".into(),
                })
            };
            let case = Case {
                threads,
                spinning,
                functions,
                pause_us: spread(&times.attach)?,
                detach_pause_us: spread(&times.detach)?,
                gap_attach_us: spread(&times.gap_attach)?,
                gap_detach_us: spread(&times.gap_detach)?,
                gap_idle_us: spread(&times.gap_idle)?,
                stop_floor_us: Spread::of(&times.floor),
                ready_ms: spread(&times.ready)?,
                copies_kept: times.copies_kept,
            };
            output.sample(json!(case))?;
            cases.push(case);
        }
    }
    settings.say("listing the functions of a large library");
    let listing = Listing::measure(&hopscope, if settings.quick { 3 } else { 5 })
        .map_err(|reason| missing("functions of a large library", reason))
        .ok();
    Ok(output.summary(&host, summarise(&cases, listing, not_measured))?)
}

/// What the main thread missed, where it is the only one.
fn felt(cases: &[Case]) -> Option<serde_json::Value> {
    let case = cases.iter().find(|c| (c.threads, c.functions) == FELT)?;
    Some(json!({
        "attach": case.gap_attach_us.median, "detach": case.gap_detach_us.median,
        "idle": case.gap_idle_us.median,
    }))
}

fn summarise(cases: &[Case], listing: Option<Listing>, not_measured: Vec<NotMeasured>) -> Summary {
    let headline = cases.iter().find(|c| (c.threads, c.functions) == HEADLINE);
    let floor = headline.and_then(|c| c.stop_floor_us);
    let over_floor_us = headline.and_then(|c| Some(c.pause_us.median - c.stop_floor_us?.median));
    let per_s = headline.map(|c| c.functions as f64 / (c.ready_ms.median / 1e3));
    let fields = json!({
        "pause_us": headline.map(|c| json!({"p50": c.pause_us.median, "max": c.pause_us.max})),
        "stop_floor_us": floor.map(|f| f.median),
        "gap_us": felt(cases),
        "gap_goal_us": GAP_GOAL_US,
        "pause_over_floor_us": over_floor_us,
        "pause_over_floor_goal_us": 1000.0,
        "functions_per_s": per_s,
        "listing": listing,
        "listing_goal": {"functions": 80_000, "seconds": 2.0},
        "threads_mix": "every fourth thread spins, the others sleep 1 ms between rounds",
        "cases": cases,
        "not_measured": not_measured,
    });
    Summary {
        unit: json!({"pause_us": "us", "stop_floor_us": "us", "ready_ms": "ms", "functions_per_s": "1/s"}),
        fields,
        table: table(cases, over_floor_us, per_s, listing.as_ref(), &not_measured),
        complete: headline.is_some() && floor.is_some() && listing.is_some(),
    }
}

fn table(
    cases: &[Case],
    over_floor_us: Option<f64>,
    per_s: Option<f64>,
    listing: Option<&Listing>,
    not_measured: &[NotMeasured],
) -> String {
    let mut out =
        String::from("every fourth thread spins, the others sleep 1 ms between rounds; us\n\n");
    let head = [
        "threads",
        "functions",
        "pause p50",
        "max",
        "floor p50",
        "max",
        "detach p50",
        "gap attach",
        "gap detach",
        "gap idle",
        "ready p50 ms",
    ];
    let mut rows = Table::new(0, head);
    let us = |us: f64| format!("{us:.0}");
    for c in cases {
        let floor =
            |of: fn(&Spread) -> f64| c.stop_floor_us.as_ref().map_or("-".into(), |s| us(of(s)));
        rows.row([
            c.threads.to_string(),
            c.functions.to_string(),
            us(c.pause_us.median),
            us(c.pause_us.max),
            floor(|s| s.median),
            floor(|s| s.max),
            us(c.detach_pause_us.median),
            us(c.gap_attach_us.median),
            us(c.gap_detach_us.median),
            us(c.gap_idle_us.median),
            format!("{:.1}", c.ready_ms.median),
        ]);
    }
    let _ = writeln!(out, "{rows}");
    let (threads, functions) = HEADLINE;
    if let Some(us) = over_floor_us {
        let verdict = if us <= 1000.0 { "met" } else { "missed" };
        let _ = writeln!(
            out,
            "{threads} x {functions}: pause over floor {us:.0} us, goal <= 1000 us: {verdict}"
        );
    }
    if let Some(per_s) = per_s {
        let _ = writeln!(
            out,
            "{threads} x {functions}: {per_s:.0} functions/s from start to measuring"
        );
    }
    if let Some(l) = listing {
        let _ = writeln!(
            out,
            "{} functions listed in {:.2} s ({:.0}/s; goal 80,000 in < 2 s): {}",
            l.functions, l.seconds.median, l.functions_per_s, l.file
        );
    }
    out + &closing(&[], not_measured)
}
