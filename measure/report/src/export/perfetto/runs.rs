//! Runs as slices beside the calls of their thread. The flow of each packet goes from its own slice
//! through its run to its arrival.
use super::packets::flow_of;
use super::{Event, Name, Note, Perfetto, RUN, THREAD, Track, What};
use crate::export::slowest;
use hopscope_analyze::Run;
use hopscope_event::StreamIx;
use std::io::{self, Write};

impl<W: Write> Perfetto<'_, W> {
    /// The next run, by end; `packets` are those that it handled, by stream and sequence number.
    ///
    /// # Errors
    /// Those of the output.
    pub fn run(&mut self, run: &Run, packets: &[(StreamIx, u64)]) -> io::Result<()> {
        let from = self.timeline.monotonic_ns(run.start);
        let to = self.timeline.monotonic_ns(run.end).max(from);
        let lanes = self.runs.entry(run.thread).or_default();
        let before = lanes.len();
        let Some(lane) = lanes.place(from, to) else {
            self.counts.runs_without_lane += 1;
            return Ok(());
        };
        let thread = u64::from(run.thread.0);
        let track = Track(RUN | thread << 24 | lane as u64);
        if lane == before {
            let name = format!("runs of {}", self.names.thread(run.thread));
            self.file
                .track(track, Some(Track(THREAD | thread)), &name)?;
        }
        let name = format!("run {}", run.ix.0);
        let mut notes = vec![
            ("run", Note::Unsigned(run.ix.0)),
            (
                "calls",
                Note::Unsigned(run.calls.len() as u64 + run.calls_left_out),
            ),
            ("packets", Note::Unsigned(packets.len() as u64)),
        ];
        let most = slowest(run, 1)
            .first()
            .map(|(f, ticks)| (self.names.qualified(*f), *ticks));
        if let Some((function, ticks)) = &most {
            notes.push(("slowest_function", Note::Text(function)));
            notes.push(("slowest_function_own_ns", Note::Float(self.ns(*ticks))));
        }
        if run.off_cpu_ticks > 0 {
            notes.push(("off_cpu_ns", Note::Float(self.ns(run.off_cpu_ticks as i64))));
        }
        if !run.complete {
            notes.push(("incomplete", Note::Text("records lost, or no exit seen")));
        }
        let flows: Vec<u64> = packets
            .iter()
            .map(|(stream, seq)| flow_of(*stream, *seq))
            .collect();
        let begin = Event {
            track,
            at_ns: from,
            what: What::Begin(Name::Here(&name)),
            category: "run",
            notes: &notes,
            flows: &flows,
            last_of_flows: &[],
        };
        self.file.event(&begin)?;
        let end = Event {
            at_ns: to,
            what: What::End,
            notes: &[],
            flows: &[],
            ..begin
        };
        self.file.event(&end)
    }
}
