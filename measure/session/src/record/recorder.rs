//! The rings of the targets drained, whatever takes the records.
use super::{RecordRequest, check_cost, summary};
use hopscope_event::RecordingMeta;
use hopscope_probe::counters::{Switches, clock_sync};
use hopscope_probe::recorder::budget::Budget;
use hopscope_probe::recorder::following::Following;
use hopscope_probe::recorder::governor::Governor;
use hopscope_probe::recorder::off_cpu::OffCpuRecorder;
use hopscope_probe::recorder::{Limits, Numbers, Recorder, RecorderResult, Sink, Target};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the recorder needs, whatever it drains into.
pub(super) struct Parts<'a> {
    pub request: &'a RecordRequest,
    pub targets: Vec<Target>,
    pub following: Option<Following>,
    /// That have a number.
    pub processes: usize,
    pub meta: &'a RecordingMeta,
    pub switches: Option<Switches>,
    pub budget: Option<Budget>,
    pub governor: Governor,
    pub stop: &'a AtomicBool,
}

impl Parts<'_> {
    pub(super) fn drive<S: Sink>(self, sink: &mut S) -> RecorderResult {
        let frequency = self.meta.tsc_frequency;
        let recorder = Recorder {
            following: self.following,
            targets: self.targets,
            writer: sink,
            limits: Limits {
                duration: self.request.duration,
                calls: self.request.calls,
                max_overhead_percent: self.request.max_overhead_percent,
            },
            governor: self.governor,
            frequency,
            cost: self.meta.probe_cost,
            budget: self.budget,
            alternation: check_cost::alternation(self.request.check_cost),
            numbers: Numbers::after(self.processes),
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
pub(super) fn open_switches(request: &RecordRequest, pids: &[i32]) -> Result<Switches, String> {
    if request.no_off_cpu {
        return Err("disabled by --no-off-cpu".into());
    }
    Switches::of(pids, request.follow_forks).map_err(|e| {
        crate::status::say!("off-CPU time is not recorded: {e}");
        e.to_string()
    })
}
