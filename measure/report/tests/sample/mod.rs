//! A small recording made by hand: two threads, a tail call, an escape, a loss, a refusal.
use hopscope_analyze::{
    Analysis, AnalysisOptions, AnalysisResult, Batch, Group, Index, OffCpuTimes, Window,
};
use hopscope_event::counter::capture_number;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{
    BudgetEntry, CaptureEntry, ClockSync, CostCheckEntry, CounterEntry, OffCpu, OffCpuEntry,
    ThinEntry,
};
use hopscope_event::{
    CaptureMethod, CapturePlace, Content, Count, CounterCost, CounterEvent, Value,
};
use hopscope_event::{FlightEntry, TriggerEntry, Tsc, TscFrequency};
use hopscope_event::{
    FunctionEntry, FunctionId, MemoryBoundCost, ProbeCost, ProcessEntry, ProcessIx, RecordKind,
};
use hopscope_event::{Record, RecordingMeta, Refusal, Summary, ThreadEntry, ThreadIx};
use hopscope_report::{Recording, Streams};

pub struct Sample {
    pub meta: RecordingMeta,
    pub processes: Vec<ProcessEntry>,
    pub threads: Vec<ThreadEntry>,
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    pub captures: Vec<CaptureEntry>,
    pub counters: Vec<CounterEntry>,
    pub summary: Option<Summary>,
    pub damage: Option<String>,
    pub off_cpu: Option<OffCpuEntry>,
    pub cost_check: Option<CostCheckEntry>,
    /// Thread, switches lost before, rows.
    pub switches: Vec<(ThreadIx, u64, Vec<OffCpu>)>,
    pub thin: Option<ThinEntry>,
    pub budget: Option<BudgetEntry>,
    pub triggers: Vec<TriggerEntry>,
    pub flight: Option<FlightEntry>,
    /// Thread, index of the first record, lost before it.
    pub batches: Vec<(ThreadIx, u64, u64, Vec<Record>)>,
}

const START: u64 = 1_000_000;

fn sync(tsc: u64, ns: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: ns,
        realtime_ns: 1_763_704_329_000_000_000 + ns,
        window_ticks: 80,
    }
}

fn function(id: u32, module: u32, name: &str) -> FunctionEntry {
    FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(module),
        name: name.to_owned(),
        svma: 0x1000 + u64::from(id) * 64,
        size: 64,
        file: None,
        line: None,
    }
}

/// `(tick, kind, function, depth)`
pub fn records(events: &[(u64, RecordKind, u32, u32)]) -> Vec<Record> {
    let record = |&(tick, kind, function, depth): &(u64, RecordKind, u32, u32)| {
        let rsp = 0x7ffe_1000 - depth * 0x40;
        Record::new(START + tick, FunctionId(function), kind, rsp)
    };
    events.iter().map(record).collect()
}

impl Sample {
    pub fn new() -> Sample {
        use RecordKind::{Entry, Escape, Exit, TailExit};
        let mut first = vec![(100, Exit, 1, 0)];
        for round in 0..100u64 {
            let at = 1_000 + round * 10_000;
            first.extend([
                (at, Entry, 0, 0),
                (at + 100, Entry, 1, 1),
                (at + 150, Entry, 2, 2),
                (at + 450 + round * 10, Exit, 2, 2),
                (at + 2_000, Exit, 1, 1),
                (at + 2_100, Entry, 3, 1),
                (at + 2_150, TailExit, 3, 1),
                (at + 2_160, Entry, 4, 1),
                (at + 2_170, Exit, 4, 1),
                (at + 3_000, Exit, 0, 0),
            ]);
        }
        let second = [
            (2_000_000, Entry, 0, 0),
            (2_000_100, Entry, 1, 1),
            (2_000_200, Escape, 1, 2),
            (2_000_400, Exit, 0, 0),
            (2_001_000, Entry, 0, 0),
        ];
        let after = [
            (2_500_000, Exit, 0, 0),
            (2_600_000, Entry, 2, 1),
            (2_600_500, Exit, 2, 1),
            (2_700_000, Entry, 0, 0),
        ];
        Sample {
            meta: RecordingMeta {
                hopscope_version: "0.1.0".into(),
                command_line: ["hopscope", "record", "-p", "41"]
                    .map(str::to_owned)
                    .to_vec(),
                host: "box".into(),
                kernel: "Linux 6.18.0".into(),
                cpu: "Some CPU".into(),
                cpus_online: 2,
                tsc_frequency: TscFrequency(2_000_000_000),
                tsc_invariant: true,
                start: sync(START, 0),
                stride: 16,
                ring_records: 1 << 16,
                probe_cost: Some(ProbeCost {
                    memory_bound: Some(MemoryBoundCost {
                        bias_ticks: 40,
                        pair_ticks: 90,
                    }),
                    ..ProbeCost::in_a_loop([20, 22, 25], [44, 46, 60])
                }),
            },
            processes: vec![ProcessEntry {
                ix: ProcessIx(0),
                pid: 41,
                comm: "nf".into(),
                command_line: vec!["./nf".into(), "--workers".into(), "2".into()],
            }],
            threads: [(0, 41, "nf"), (1, 42, "worker\x1b[2J")]
                .map(|(ix, tid, comm)| ThreadEntry {
                    ix: ThreadIx(ix),
                    process: ProcessIx(0),
                    tid,
                    comm: comm.into(),
                })
                .to_vec(),
            modules: [(0, "/opt/nf/nf"), (1, "/opt/nf/plugins/acl.so")]
                .map(|(ix, path)| ModuleEntry {
                    ix: ModuleIx(ix),
                    path: path.into(),
                    build_id: String::new(),
                })
                .to_vec(),
            functions: vec![
                function(0, 0, "process_batch"),
                function(1, 1, "acl_input"),
                function(2, 1, "acl_match(rule const&)"),
                function(3, 0, "forward"),
                function(4, 0, "output"),
            ],
            captures: Vec::new(),
            counters: Vec::new(),
            refusals: vec![Refusal {
                module: "/opt/nf/nf".into(),
                name: "parse_args".into(),
                svma: 0x4000,
                reason: "branch into the patched bytes".into(),
            }],
            summary: Some(Summary {
                end: sync(START + 3_000_000, 1_500_000),
                ended_because: "interrupted".into(),
                recorded: 1_010,
                lost: 7,
                torn: 0,
                threads_measured: 2,
                calls_unmeasured: Some(0),
                attach_pause_ns: vec![812_345],
                detach_pause_ns: vec![401_000],
                stops: Default::default(),
                recorder_cpu_ns: Some(1_200_000),
                notes: vec![],
            }),
            damage: None,
            off_cpu: None,
            cost_check: None,
            switches: Vec::new(),
            thin: None,
            budget: None,
            triggers: Vec::new(),
            flight: None,
            batches: vec![
                (ThreadIx(0), 0, 0, records(&first)),
                (ThreadIx(1), 0, 0, records(&second)),
                (ThreadIx(1), 12, 7, records(&after)),
            ],
        }
    }

    /// Three functions count instructions and cycles, two of them switches, too; the second thread's counters are
    /// opened late, and one was taken away now and then.
    pub fn counted() -> Sample {
        let mut sample = Sample::new();
        let counter = |number, name: &str, kind, config, cost| CounterEntry {
            number,
            name: name.to_owned(),
            event: CounterEvent { kind, config },
            bits: 48,
            cost,
            emulated: number == 1,
        };
        let cost = |bias, pair| Some(CounterCost { bias, pair });
        sample.counters = vec![
            counter(0, "instructions", 0, 1, cost([30, 31, 32], Some(70))),
            counter(1, "cycles", 0, 0, cost([9, 10, 14], None)),
            counter(2, "context-switches", 1, 3, None),
        ];
        let of = |function: u32| match function {
            0 => 0..3,
            1 | 2 => 0..2,
            _ => 0..0,
        };
        for function in 0..3 {
            for (number, at) in of(function)
                .flat_map(|n| [CapturePlace::Entry, CapturePlace::Return].map(|at| (n, at)))
            {
                sample.captures.push(CaptureEntry {
                    function: FunctionId(function),
                    capture: capture_number(at, number),
                    name: format!("@{}", sample.counters[usize::from(number)].name),
                    bits: 48,
                    signed: false,
                    at,
                    method: CaptureMethod::Counter,
                    elements_max: 1,
                });
            }
        }
        for (thread, _, _, records) in &mut sample.batches {
            let mut counted = Vec::new();
            for record in records.drain(..) {
                let ticks = record.tsc - START;
                let at = match record.kind() {
                    Some(RecordKind::Entry) => CapturePlace::Entry,
                    _ => CapturePlace::Return,
                };
                let opened = thread.0 == 0 || ticks > 2_000_300;
                let read = |number: u8| {
                    let count = [ticks * 3, ticks * 2, ticks / 200_000][usize::from(number)];
                    let updates = 0x5_0007 + (ticks / 202_000) as u32 * 2;
                    match opened {
                        true => Count { count, updates }.parts(),
                        false => (Content::NotOpened, 0),
                    }
                };
                let values = of(record.function().0).map(|number| {
                    let (content, element) = read(number);
                    let capture = capture_number(at, number);
                    let value = Value {
                        capture,
                        element,
                        content,
                    };
                    value.record(record.function())
                });
                match (at, record.kind()) {
                    (_, Some(RecordKind::Escape)) => counted.push(record),
                    (CapturePlace::Entry, _) => {
                        counted.push(record);
                        counted.extend(values);
                    }
                    _ => {
                        counted.extend(values);
                        counted.push(record);
                    }
                }
            }
            *records = counted;
        }
        let last = sample.batches[1].3.len() as u64;
        sample.batches[2].1 = last + 7;
        sample
    }

    pub fn recording(&self) -> Recording<'_> {
        Recording {
            meta: &self.meta,
            processes: &self.processes,
            threads: &self.threads,
            modules: &self.modules,
            functions: &self.functions,
            refusals: &self.refusals,
            captures: &self.captures,
            counters: &self.counters,
            summary: self.summary.as_ref(),
            damage: self.damage.as_deref(),
            filter: "",
            streams: Streams::default(),
            off_cpu: self.off_cpu.as_ref(),
            cost_check: self.cost_check.as_ref(),
            thin: self.thin.as_ref(),
            budget: self.budget.as_ref(),
            triggers: &self.triggers,
            flight: self.flight.as_ref(),
        }
    }

    pub fn index(&self) -> Index {
        Index::new(&self.functions, &self.threads).with_counters(&self.counters)
    }

    pub fn analyzed(&self, group: Group) -> AnalysisResult {
        let options = AnalysisOptions {
            group,
            window: Window::default(),
            probe_cost: self.meta.probe_cost,
            whole: true,
        };
        let mut analysis = Analysis::new(self.index(), options);
        let mut times = OffCpuTimes::default();
        for (thread, lost, rows) in &self.switches {
            times.extend(*thread, *lost, rows);
        }
        analysis.off_cpu(times);
        for (thread, first_index, lost, records) in &self.batches {
            analysis.feed(&Batch {
                thread: *thread,
                first_index: *first_index,
                lost: *lost,
                torn: 0,
                records,
                taken: &[],
                early: false,
            });
        }
        analysis.finish()
    }
}
