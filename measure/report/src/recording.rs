//! The tables of a recording, and names found in them.
use crate::printable_text::printable;
use hopscope_analyze::Packets;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{
    BudgetEntry, CaptureEntry, CostCheckEntry, CounterEntry, FlightEntry, FunctionEntry,
    FunctionId, ProcessEntry, ProcessIx, RecordingMeta,
};
use hopscope_event::{
    OffCpuEntry, Refusal, StreamEntry, Summary, ThinEntry, ThreadEntry, ThreadIx, TriggerEntry,
};
use std::collections::HashMap;

/// Everything of a recording but its records.
#[derive(Debug, Clone, Copy)]
pub struct Recording<'a> {
    pub meta: &'a RecordingMeta,
    pub processes: &'a [ProcessEntry],
    pub threads: &'a [ThreadEntry],
    pub modules: &'a [ModuleEntry],
    pub functions: &'a [FunctionEntry],
    pub refusals: &'a [Refusal],
    /// What value records mean.
    pub captures: &'a [CaptureEntry],
    /// What probes counted; empty in most recordings.
    pub counters: &'a [CounterEntry],
    /// Missing when the recorder was killed.
    pub summary: Option<&'a Summary>,
    /// What is wrong with the file, in words.
    pub damage: Option<&'a str>,
    /// What part is looked at, in words; empty for all of it.
    pub filter: &'a str,
    /// Generated packets; empty in most recordings.
    pub streams: Streams<'a>,
    /// Whether context switches were recorded; `None`: the recorder did not say.
    pub off_cpu: Option<&'a OffCpuEntry>,
    /// Whether the cost of probes was measured in the program itself; `None`: not asked for.
    pub cost_check: Option<&'a CostCheckEntry>,
    /// Only each Nth run was kept.
    pub thin: Option<&'a ThinEntry>,
    /// Functions were left out for what their probes take.
    pub budget: Option<&'a BudgetEntry>,
    /// Why a flight recorder saved this.
    pub triggers: &'a [TriggerEntry],
    /// Which part of time it saved.
    pub flight: Option<&'a FlightEntry>,
}

impl Recording<'_> {
    /// Off-CPU times of calls are known.
    pub(crate) fn has_off_cpu(&self) -> bool {
        self.off_cpu.is_some_and(|o| o.why_not.is_none())
    }

    /// No process was measured: there is nothing to say of calls.
    pub(crate) fn is_of_packets_only(&self) -> bool {
        !self.streams.is_empty() && self.functions.is_empty() && self.processes.is_empty()
    }
}

/// What of a recording concerns packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Streams<'a> {
    pub entries: &'a [StreamEntry],
    pub packets: &'a [Packets],
}

impl<'a> Streams<'a> {
    pub(crate) fn entry(&self, packets: &Packets) -> Option<&'a StreamEntry> {
        self.entries.iter().find(|e| e.ix == packets.stream)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.packets.is_empty()
    }
}

/// Names by number.
pub struct Names<'a> {
    functions: HashMap<FunctionId, &'a FunctionEntry>,
    modules: HashMap<ModuleIx, &'a ModuleEntry>,
    threads: HashMap<ThreadIx, &'a ThreadEntry>,
    processes: HashMap<ProcessIx, &'a ProcessEntry>,
    captures: HashMap<(FunctionId, u16), &'a CaptureEntry>,
}

impl<'a> Names<'a> {
    pub fn new(recording: &Recording<'a>) -> Names<'a> {
        Names {
            functions: recording.functions.iter().map(|f| (f.id, f)).collect(),
            modules: recording.modules.iter().map(|m| (m.ix, m)).collect(),
            threads: recording.threads.iter().map(|t| (t.ix, t)).collect(),
            processes: recording.processes.iter().map(|p| (p.ix, p)).collect(),
            captures: (recording.captures.iter())
                .map(|c| ((c.function, c.capture), c))
                .collect(),
        }
    }

    pub fn function(&self, id: FunctionId) -> String {
        match self.functions.get(&id) {
            Some(f) => printable(&f.name),
            None => format!("function #{}", id.0),
        }
    }

    /// As it stands in the file: only for formats that no terminal shows.
    pub fn raw_function(&self, id: FunctionId) -> Option<&'a str> {
        self.functions.get(&id).map(|f| f.name.as_str())
    }

    /// Path of the module of a function, as it stands in the file.
    pub fn raw_module_of(&self, id: FunctionId) -> Option<&'a str> {
        let module = self.functions.get(&id)?.module;
        self.modules.get(&module).map(|m| m.path.as_str())
    }

    pub fn function_entry(&self, id: FunctionId) -> Option<&'a FunctionEntry> {
        self.functions.get(&id).copied()
    }

    pub fn capture(&self, function: FunctionId, capture: u16) -> Option<&'a CaptureEntry> {
        self.captures.get(&(function, capture)).copied()
    }

    /// Path of a module.
    pub fn module(&self, ix: ModuleIx) -> String {
        match self.modules.get(&ix) {
            Some(m) => printable(&m.path),
            None => format!("module #{}", ix.0),
        }
    }

    /// Last part of a module's path.
    pub fn module_short(&self, ix: ModuleIx) -> String {
        let path = self.module(ix);
        path.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// `module!function`, as it is selected.
    pub fn qualified(&self, id: FunctionId) -> String {
        match self.functions.get(&id) {
            Some(f) => format!("{}!{}", self.module_short(f.module), printable(&f.name)),
            None => format!("function #{}", id.0),
        }
    }

    pub fn thread_entry(&self, ix: ThreadIx) -> Option<&'a ThreadEntry> {
        self.threads.get(&ix).copied()
    }

    pub fn process_entry(&self, ix: ProcessIx) -> Option<&'a ProcessEntry> {
        self.processes.get(&ix).copied()
    }

    pub fn thread(&self, ix: ThreadIx) -> String {
        match self.threads.get(&ix) {
            Some(t) if t.tid == 0 => {
                format!("thread of unknown id ({})", printable(&t.comm))
            }
            Some(t) => format!("thread {} ({})", t.tid, printable(&t.comm)),
            None => format!("thread #{}", ix.0),
        }
    }

    pub fn process(&self, ix: ProcessIx) -> String {
        match self.processes.get(&ix) {
            Some(p) => format!("process {} ({})", p.pid, printable(&p.comm)),
            None => format!("process #{}", ix.0),
        }
    }
}
