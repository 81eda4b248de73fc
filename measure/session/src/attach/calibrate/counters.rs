//! What probes count of themselves: an empty body between its own readings, and its caller, which is counted with the
//! probes of the body and without.
use super::super::AttachRequest;
use super::Loops;
use crate::error::{Result, in_one_line, refuse};
use hopscope_calibration::{CALLER, CALLER_LOOP, CALLS, FUNCTIONS};
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::ring::{Position, Visit};
use hopscope_event::{
    CapturePlace, Count, CounterCost, CounterEntry, FunctionId, ProcessEntry, ProcessIx, Record,
    RecordingMeta,
};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::instrument::capture::parse::Selection;
use hopscope_probe::instrument::resolve::Policy;
use hopscope_probe::live::install::{InstallOptions, Stores, install};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::plan::{Item, Plan};

/// Calls that were counted, at least.
const READ_AT_LEAST: usize = 10;

/// Fills in what each counter costs; without it reports show raw counts, and that is said.
pub(crate) fn with_counters(
    counters: &mut [CounterEntry],
    meta: &mut RecordingMeta,
    request: &AttachRequest,
    options: &InstallOptions,
) {
    if counters.is_empty() || request.no_calibration || options.stores != Stores::Records {
        return;
    }
    match measure(counters, meta, options) {
        Ok(costs) => {
            for (counter, cost) in counters.iter_mut().zip(costs) {
                counter.cost = cost;
            }
        }
        Err(e) => crate::status::say!(
            "what probes add to counters could not be measured: {}; reports will show raw counts only",
            in_one_line(&e)
        ),
    }
    meta.start = clock_sync();
}

fn measure(
    counters: &[CounterEntry],
    meta: &RecordingMeta,
    options: &InstallOptions,
) -> Result<Vec<Option<CounterCost>>> {
    let functions = [CALLER, FUNCTIONS[0]];
    let mut loops = Loops::start()?;
    let pid = loops.child.id() as i32;
    let names: Vec<String> = counters.iter().map(|c| format!("@{}", c.name)).collect();
    let names = names.join(",");
    let selections = functions.map(|f| Selection::parse(&format!("/{f}$/({names})")));
    let selections: Vec<Selection> = selections
        .into_iter()
        .collect::<std::result::Result<_, _>>()?;
    let mut plan = Plan::default();
    plan.counters = counters.to_vec();
    let mut items = plan.add_selected(pid, &selections, false, &Policy::default())?;
    let name = |item: &Item| &plan.functions[item.id.0 as usize].name;
    // The caller first.
    items.sort_by_key(|item| !name(item).ends_with(CALLER));
    if items.len() != functions.len() {
        let why = plan.refusals.first().map(|r| r.reason.clone());
        refuse!("no function to count with: {}", why.unwrap_or_default());
    }
    let mut counted = |items: &[Item]| counted(&mut loops, &plan, items, meta, options);
    let [mut alone, mut both] = [counted(&items[..1])?, counted(&items)?];
    let costs = counters.iter().map(|counter| {
        let n = usize::from(counter.number);
        let [with, without] = [&mut both[0][n], &mut alone[0][n]].map(|counts| percentiles(counts));
        // Below zero it is noise.
        let added = with
            .zip(without)
            .map(|(with, without)| with[1].saturating_sub(without[1]));
        let bias = percentiles(&mut both[1][n])?;
        Some(CounterCost {
            bias,
            pair: added.map(|added| (added + CALLS / 2) / CALLS),
        })
    });
    Ok(costs.collect())
}

/// Lowest twentieth, median, highest tenth; `None` of too few.
fn percentiles(counts: &mut [u64]) -> Option<[u64; 3]> {
    counts.sort_unstable();
    let at = |percent: usize| counts[counts.len() * percent / 100];
    (counts.len() >= READ_AT_LEAST).then(|| [5, 50, 90].map(at))
}

type Counts = [Vec<u64>; COUNTERS_MAX];

/// What calls of these functions counted, each function with each counter.
fn counted(
    loops: &mut Loops,
    plan: &Plan,
    items: &[Item],
    meta: &RecordingMeta,
    options: &InstallOptions,
) -> Result<Vec<Counts>> {
    let pid = loops.child.id() as i32;
    let process = ProcessEntry {
        ix: ProcessIx(0),
        pid,
        comm: "calibration".into(),
        command_line: vec![],
    };
    let (modules, functions) = (plan.modules.clone(), plan.functions.clone());
    let mut table = PatchTable::new(meta.clone(), process, modules, functions);
    table.counters.clone_from(&plan.counters);
    table.captures.clone_from(&plan.captures);
    let selected: Vec<_> = items.iter().map(Item::selected).collect();
    let options = InstallOptions {
        contexts: 4,
        ..*options
    };
    let mut installed = install(pid, selected, &options, table)?;
    let threads: Vec<(u32, i32)> = installed.threads.iter().map(|(t, c)| (*c, *t)).collect();
    if let Some(why) = installed.open_counters(&threads)?.first() {
        refuse!("{why}");
    }
    loops.time(CALLER_LOOP)?;
    let mut records = Vec::new();
    let context = threads.first().map_or(0, |(context, _)| *context);
    if let Some(ring) = installed.pool().ring(context as usize) {
        ring.drain(
            &mut Position::default(),
            Visit::Live,
            usize::MAX,
            &mut records,
        );
    }
    installed.detach()?;
    // Our own child's stops are nobody's pause.
    hopscope_process::stop_times::take(pid);
    let of = |item: &Item| counts(&records, item.id, &plan.counters);
    Ok(items.iter().map(of).collect())
}

/// Of a function that calls no function with the same id: its readings come in pairs.
fn counts(records: &[Record], id: FunctionId, counters: &[CounterEntry]) -> Counts {
    let mut counts = Counts::default();
    let mut before: [Option<Count>; COUNTERS_MAX] = [None; COUNTERS_MAX];
    let of_function = records.iter().filter(|r| r.function() == id);
    for reading in of_function.filter_map(|r| r.value()?.counter()) {
        let n = usize::from(reading.counter);
        let (Some(counter), Ok(count)) = (counters.get(n), reading.read) else {
            continue;
        };
        match (reading.at, before[n].take()) {
            (CapturePlace::Entry, _) => before[n] = Some(count),
            (_, Some(entry)) => {
                let unbroken = entry.updates == count.updates || !counter.counts_unbroken_only();
                if unbroken {
                    counts[n].push(count.since(entry, counter.bits));
                }
            }
            (_, None) => {}
        }
    }
    counts
}
