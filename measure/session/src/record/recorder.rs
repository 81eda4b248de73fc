//! The rings of the targets drained, whatever takes the records.
use super::{RecordRequest, check_cost, summary};
use hopscope_event::{ProcessEntry, RecordingMeta};
use hopscope_probe::counters::{Switches, clock_sync};
use hopscope_probe::plan::Item;
use hopscope_probe::recorder::off_cpu::OffCpuRecorder;
use hopscope_probe::recorder::{Limits, Recorder, RecorderResult, Sink, Target, ThreadNumbers};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the recorder needs, whatever it drains into.
pub(super) struct Parts<'a> {
    pub request: &'a RecordRequest,
    pub targets: Vec<Target>,
    pub meta: &'a RecordingMeta,
    pub switches: Option<Switches>,
    pub stop: &'a AtomicBool,
}

impl Parts<'_> {
    pub(super) fn drive<S: Sink>(self, sink: &mut S) -> RecorderResult {
        let frequency = self.meta.tsc_frequency;
        let recorder = Recorder {
            targets: self.targets,
            writer: sink,
            limits: Limits {
                duration: self.request.duration,
                calls: self.request.calls,
                max_overhead_percent: self.request.max_overhead_percent,
            },
            frequency,
            cost: self.meta.probe_cost,
            alternation: check_cost::alternation(self.request.check_cost),
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
pub(super) fn open_switches(
    request: &RecordRequest,
    wanted: &[(ProcessEntry, Vec<Item>)],
) -> Result<Switches, String> {
    if request.no_off_cpu {
        return Err("disabled by --no-off-cpu".into());
    }
    let pids: Vec<i32> = wanted.iter().map(|(process, _)| process.pid).collect();
    Switches::of(&pids).map_err(|e| {
        crate::status::say!("off-CPU time is not recorded: {e}");
        e.to_string()
    })
}
