//! `bench probe`: what a measured call costs, in the same process bare, attached, bare.
use crate::Settings;
use crate::error::Result;
use crate::goal::Goal;
use crate::hopscope::{Hopscope, Recorded};
use crate::not_measured::NotMeasured;
use crate::passes::{Pairs, Pass, pass};
use crate::peers;
use crate::program::{Compiler, FLOORS, Family, Place, ProgramPlan, Target, Variant, build};
use crate::rows::{self, Row, find};
use crate::table::spread;
use hopscope_compare::host::Host;
use hopscope_compare::output::{Output, Summary};
use hopscope_compare::stats::Spread;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const EXECUTABLE: [&str; 15] = [
    "hot_e5",
    "indep_e5",
    "rr_e5",
    "hot_e20",
    "indep_e20",
    "rr_e20",
    "hot_e100",
    "indep_e100",
    "rr_e100",
    "hot_e1000",
    "indep_e1000",
    "rr_e1000",
    "rr_emix",
    "tree_e",
    "pipe_e",
];
const LIBRARY: [&str; 9] = [
    "hot_l5", "indep_l5", "rr_l5", "hot_l20", "rr_l20", "hot_l100", "rr_l100", "rr_l1000",
    "rr_lmix",
];
/// One way in which hopscope is attached.
struct Way {
    name: &'static str,
    options: &'static [&'static str],
    measures: Measures,
    /// Milliseconds of calls before anything is measured: the first lap of a ring takes a page
    /// fault every 256 records.
    warm_up: u64,
    /// Fewer phases where the way itself is the question.
    phases: Option<&'static [&'static str]>,
}

/// Which functions of the program are measured.
enum Measures {
    All,
    /// Those of the shared object.
    Library,
    /// 1,000 of the executable, which no phase of the way calls.
    NotCalled,
}

impl Measures {
    /// What selects them, and how many they are.
    fn of(&self, plan: &ProgramPlan) -> (Vec<String>, usize) {
        let count = |families: &[Family]| families.iter().map(|f| f.count as usize).sum();
        match self {
            Measures::All => (plan.patterns(), plan.functions() + TREE + PIPELINE),
            Measures::Library => {
                let library = plan.families(Place::Library);
                let patterns = ProgramPlan::patterns_of(Place::Library, library);
                (patterns, count(library))
            }
            Measures::NotCalled => {
                let called = plan.families(Place::Executable);
                let other: Vec<Family> = called.iter().copied().filter(|f| f.body == 100).collect();
                let patterns = ProgramPlan::patterns_of(Place::Executable, &other);
                (patterns, count(&other))
            }
        }
    }

    /// Functions that are called in phases of the way that has these measured.
    fn are_called(&self) -> bool {
        !matches!(self, Measures::NotCalled)
    }
}

const WAYS: [Way; 6] = [
    Way {
        name: "record",
        options: &[NO_CALIBRATION],
        measures: Measures::All,
        warm_up: 100,
        phases: None,
    },
    Way {
        name: "record, by slots",
        options: &[NO_CALIBRATION, "--method", "got"],
        measures: Measures::Library,
        warm_up: 100,
        phases: Some(&["hot_l5", "indep_l5", "rr_l5", "hot_l20", "rr_l20"]),
    },
    Way {
        name: "1,000 not called",
        options: &[NO_CALIBRATION],
        measures: Measures::NotCalled,
        warm_up: 0,
        phases: Some(&["hot_e5", "indep_e5", "rr_e5", "tree_e"]),
    },
    Way {
        name: "empty",
        options: &[NO_CALIBRATION, "--empty-probes"],
        measures: Measures::All,
        warm_up: 5,
        phases: None,
    },
    Way {
        name: "record, first lap",
        options: &[NO_CALIBRATION, "--buffer", "64M"],
        measures: Measures::All,
        warm_up: 0,
        phases: Some(&["hot_e5"]),
    },
    Way {
        name: "record, ring 64K",
        options: &[NO_CALIBRATION, "--buffer", "64K"],
        measures: Measures::All,
        warm_up: 5,
        phases: Some(&["hot_e5", "indep_e5", "rr_e5", "tree_e"]),
    },
];

/// The tool's own measurement of its probes is not what is measured here.
pub(crate) const NO_CALIBRATION: &str = "--no-calibration";

/// Functions of the call tree, and of the pipeline.
const TREE: usize = 31;
const PIPELINE: usize = 11;

/// Records accounted for must be twice the calls made: otherwise the figures are of a program
/// that was measured only in part.
fn account(way: &Way, recorded: &Recorded, calls: u64) -> Result<Value> {
    let mut accounted = 0.0;
    for key in ["recorded", "lost", "torn"] {
        accounted += recorded.number(key)?;
    }
    Ok(json!({
        "probe": way.name,
        "calls": calls,
        "lost": recorded.number("lost")?,
        "records_expected": 2 * calls,
        "records_accounted": accounted,
        "complete": accounted == 2.0 * calls as f64,
    }))
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let plan = ProgramPlan::full();
    let compiler = Compiler::of_the_system();
    settings.say("building the measured program (1,000 functions of each body length)");
    let program = build(&settings.build_dir, &plan, &compiler, Variant::Plain)?;
    let (repetitions, ms) = if settings.quick { (3, 10) } else { (9, 20) };
    let mut target = Target::start(&program)?;
    let host = Host::look(Some(target.tsc_hz));
    let hopscope = Hopscope::of(settings);
    let all: Vec<&str> = EXECUTABLE.iter().chain(&LIBRARY).copied().collect();
    let mut not_measured: Vec<NotMeasured> = Vec::new();
    let mut floors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut own: BTreeMap<&str, Pairs> = BTreeMap::new();
    let mut accounting = Vec::new();
    let mut wrapped = peers::wrap::Wrapped::prepare(settings, &plan, &compiler, &mut not_measured);
    for repetition in 0..repetitions {
        settings.say(&format!("repetition {} of {repetitions}", repetition + 1));
        for (name, ticks) in pass(&mut target, &FLOORS, ms)? {
            if let Some(floor) = FLOORS.iter().find(|f| **f == name) {
                floors.entry(floor).or_default().push(ticks);
            }
        }
        let mut bare = pass(&mut target, &all, ms)?;
        sample(&mut output, repetition, "bare", &bare)?;
        for way in &WAYS {
            let what = format!("hopscope {}", way.name);
            if not_measured.iter().any(|m| m.what == what) {
                continue;
            }
            let phases = way.phases.unwrap_or(&all);
            let (patterns, functions) = way.measures.of(&plan);
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let recording = match hopscope.record(target.pid, &patterns, way.options) {
                Ok(recording) => recording,
                Err(error) => {
                    let reason = error.to_string();
                    not_measured.push(NotMeasured::new(what, reason));
                    continue;
                }
            };
            let calls_before = target.calls;
            if way.warm_up > 0 {
                target.run(phases[0], way.warm_up)?;
            }
            let measured = pass(&mut target, phases, ms)?;
            let recorded = recording.stop()?;
            recorded.discard()?;
            recorded.expect_functions(functions)?;
            if !way.options.contains(&"--empty-probes") {
                let calls = if way.measures.are_called() {
                    target.calls - calls_before
                } else {
                    0
                };
                accounting.push(account(way, &recorded, calls)?);
            }
            let after = pass(&mut target, &all, ms)?;
            let pairs = own.entry(way.name).or_default();
            pairs.add(&bare, &measured, &after);
            sample(&mut output, repetition, &what, &measured)?;
            sample(&mut output, repetition, "bare", &after)?;
            bare = after;
        }
        wrapped.measure(&mut target, &bare, repetition, ms, &mut output)?;
    }
    let mut rows = Vec::new();
    for way in &WAYS {
        if let Some(pairs) = own.get(way.name) {
            rows.extend(pairs.rows("hopscope", way.name, &all));
        }
    }
    rows.extend(wrapped.rows());
    drop(target);
    peers::others(settings, &compiler, ms, &mut rows, &mut not_measured);
    Ok(output.summary(&host, summarise(rows, &floors, not_measured, accounting))?)
}

fn sample(output: &mut Output<'_>, repetition: usize, state: &str, pass: &Pass) -> Result<()> {
    let sample = json!({"repetition": repetition, "state": state, "ticks_per_call": pass});
    Ok(output.sample(sample)?)
}

/// All goals here are upper bounds.
fn bounded_above(goal: &Goal) -> Value {
    json!({"name": goal.name, "measured": goal.measured, "goal": goal.bound(), "met": goal.met})
}

fn summarise(
    rows: Vec<Row>,
    floors: &BTreeMap<&str, Vec<f64>>,
    not_measured: Vec<NotMeasured>,
    accounting: Vec<Value>,
) -> Summary {
    let floor_of = |name: &str| {
        let pairs: Vec<f64> = floors
            .get(name)?
            .iter()
            .zip(floors.get("floor_empty_loop")?)
            .map(|(floor, empty)| floor - empty)
            .collect();
        Spread::of(&pairs)
    };
    let (floor, inline) = (floor_of("floor_two_rdtsc"), floor_of("floor_inline_pair"));
    let core_cycles_per_tick = floors
        .get("floor_100_adds")
        .and_then(|ticks| Some(100.0 / Spread::of(ticks)?.median));
    let net =
        |probe, phase| find(&rows, "hopscope", probe, phase).map(|row| row.difference.net.median);
    let headline = [
        ("record_pair", net("record", "hot_e5")),
        ("record_pair_rr", net("record", "rr_e5")),
        ("empty_pair", net("empty", "hot_e5")),
        ("empty_pair_rr", net("empty", "rr_e5")),
        ("record_pair_first_lap", net("record, first lap", "hot_e5")),
        ("record_pair_tree31", net("record", "tree_e")),
        ("record_pair_pipeline", net("record", "pipe_e")),
        ("record_pair_lib", net("record", "hot_l5")),
        ("record_pair_lib_rr", net("record", "rr_l5")),
        ("record_pair_slots", net("record, by slots", "hot_l5")),
        ("not_called_rr", net("1,000 not called", "rr_e5")),
        // What the copies cost in instruction fetch: nothing but the detour, over 450 KB of code.
        ("fetch_locality_rr100", net("empty", "rr_e100")),
    ];
    let floor_ticks = floor.map_or(0.0, |f| f.median);
    let slots_over_jumps = net("record, by slots", "hot_l5")
        .zip(net("record", "hot_l5"))
        .map(|(slots, jumps)| slots - jumps);
    // What the bare program differs by from itself.
    let noise = find(&rows, "hopscope", "1,000 not called", "rr_e5").map_or(0.0, |row| {
        let control = &row.difference.control;
        control.p90.max(-control.p10)
    });
    let goals = vec![
        Goal::at_most("record_pair", headline[0].1, 1.2 * floor_ticks),
        Goal::at_most("record_pair_rr", headline[1].1, 70.0),
        Goal::at_most("empty_pair", headline[2].1, 4.0),
        Goal::at_most("empty_pair_rr", headline[3].1, 11.0),
        Goal::at_most("record_pair_pipeline", headline[6].1, 0.75 * floor_ticks),
        Goal::at_most("slots_over_jumps", slots_over_jumps, 5.0),
        Goal::at_most("not_called_rr", net("1,000 not called", "rr_e5"), noise),
    ];
    let complete = headline.iter().all(|(_, v)| v.is_some());
    let mut fields = json!({
        "floor_two_rdtsc": floor.map(|f| f.median),
        "floor_two_rdtsc_spread": floor,
        "floor_inline_pair_spread": inline,
        "core_cycles_per_tick": core_cycles_per_tick,
        "goals": goals.iter().map(bounded_above).collect::<Vec<_>>(),
        "rows": rows,
        "accounting": accounting,
        "not_measured": not_measured,
    });
    for (name, value) in headline {
        fields[name] = json!(value);
    }
    let mut table = String::new();
    for (what, floor) in [
        ("two rdtsc around nothing (floor_two_rdtsc)", floor),
        (
            "two 16-byte records inline around hot_e5, call included",
            inline,
        ),
    ] {
        if let Some(f) = floor {
            table += &format!("{what}: {}\n", spread(f, 1.0, 2));
        }
    }
    if let Some(cycles) = core_cycles_per_tick {
        table += &format!("one tick is {cycles:.2} core cycles at the speed it ran\n");
    }
    table += &rows::table(&rows, &goals, &not_measured);
    for each in accounting.iter().filter(|a| a["complete"] != json!(true)) {
        table += &format!("WARNING: calls and records do not agree: {each}\n");
    }
    Summary {
        unit: json!({"time": "tsc"}),
        fields,
        table,
        complete,
    }
}
