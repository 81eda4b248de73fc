//! Attaching through the library, with no recorder beside it.
use super::target::Target;
use hopscope_event::ProcessIx;
use hopscope_event::clock::{ClockSync, Tsc, TscFrequency};
use hopscope_event::record::STRIDE;
use hopscope_event::table::{ProcessEntry, RecordingMeta};
use hopscope_probe::live::LiveError;
use hopscope_probe::live::install::{InstallOptions, Installed, Stores, host_has_bmi2, install};
use hopscope_probe::live::remove::{self, Arena, Extent};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::{Item, Plan};

pub fn choose(target: &Target, patterns: &[&str]) -> (Plan, Vec<Item>) {
    let patterns: Vec<_> = patterns
        .iter()
        .map(|p| Pattern::parse(p).unwrap())
        .collect();
    let mut plan = Plan::default();
    let items = plan.add_process(target.pid(), &patterns, false).unwrap();
    assert_eq!(items.len(), patterns.len(), "{:?}", plan.refusals);
    (plan, items)
}

pub fn attach(
    target: &Target,
    plan: &Plan,
    items: &[Item],
    ring_records_log2: u32,
) -> Result<Installed, LiveError> {
    let options = InstallOptions {
        contexts: 2,
        ring_records_log2,
        bmi2: host_has_bmi2(),
        stores: Stores::Records,
        switchable: false,
        ordered_stamps: false,
        follow_forks: false,
        fused_stamps: true,
    };
    attach_with(target, plan, items, &options)
}

pub fn attach_with(
    target: &Target,
    plan: &Plan,
    items: &[Item],
    options: &InstallOptions,
) -> Result<Installed, LiveError> {
    let instant = ClockSync {
        tsc: Tsc(0),
        monotonic_ns: 0,
        realtime_ns: 0,
        window_ticks: 0,
    };
    let meta = RecordingMeta {
        hopscope_version: "test".into(),
        command_line: vec![],
        host: String::new(),
        kernel: String::new(),
        cpu: String::new(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(1_000_000_000),
        tsc_invariant: true,
        start: instant,
        stride: STRIDE as u32,
        ring_records: 1 << options.ring_records_log2,
        probe_cost: None,
    };
    let process = ProcessEntry {
        ix: ProcessIx(0),
        pid: target.pid(),
        comm: String::new(),
        command_line: vec![],
    };
    let mut table = PatchTable::new(meta, process, plan.modules.clone(), plan.functions.clone());
    table.switches_stacks = plan.switches_stacks(target.pid());
    let selected = items.iter().map(Item::selected).collect();
    install(target.pid(), selected, options, table)
}

/// After the entries are restored: takes away what was mapped. What stays, and why.
pub(super) fn reap(installed: &Installed) -> Vec<String> {
    let (pid, memory, table) = (installed.pid, &installed.memory, &installed.table);
    let mut notes = Vec::new();
    remove::reap_noted(
        pid,
        memory,
        table,
        Arena::Mapped,
        Extent::Limited,
        &mut notes,
    );
    notes
}
