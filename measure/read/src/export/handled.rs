//! Which run handled each packet, for the formats that show both.
use super::source::Source;
use crate::error::{Result, in_one_line};
use crate::packet_id::packet_id;
use hopscope_analyze::{Joiner, Packet, Run, RunIx};
use hopscope_event::{FunctionId, Stamp, StreamIx};
use hopscope_report::export::{Facts, slowest};

/// Functions of a run that a packet's comment names.
const NAMED: usize = 2;

/// Packets with their runs, by stream and when they left.
pub(super) struct Handled {
    packets: Vec<Packet>,
    /// Places of packets with a run, by run.
    by_run: Vec<u32>,
    runs: u64,
}

/// What a packet's comment says of its run.
pub(super) struct Brief {
    pub(super) packets: usize,
    pub(super) ticks: i64,
    pub(super) complete: bool,
    pub(super) slowest: Vec<(FunctionId, i64)>,
}

impl Handled {
    /// `None` without packets, calls or runs. Why there are no runs is among the facts then, unless a
    /// root was named: that is an error.
    pub(super) fn find(source: &Source<'_>, facts: &mut Facts) -> Result<Option<Handled>> {
        let some = source
            .stamps_reader()
            .stamp_heads()
            .any(|head| head.rows > 0);
        if !some || !source.selection.has_calls() {
            return Ok(None);
        }
        match Handled::join(source, facts) {
            Ok(handled) => Ok(Some(handled)),
            Err(error) if source.root_is_named() => Err(error),
            Err(error) => {
                facts.matter("packets_without_runs", in_one_line(&error));
                Ok(None)
            }
        }
    }

    fn join(source: &Source<'_>, facts: &mut Facts) -> Result<Handled> {
        let captures = &source.selection.tables().captures;
        let id = packet_id(source.packet_id, captures)?;
        let mut joiner = Joiner::new(id.map(|(id, _)| id));
        for batch in source.stamps() {
            let batch = batch?;
            let due = batch.stamps.iter();
            for stamp in due.filter(|s| source.selection.window.contains(s.intended.0)) {
                joiner.packet(batch.stream, *stamp)?;
            }
        }
        let runs = source.runs().each(|run, runs| {
            joiner.run(&run)?;
            runs.recycle(run);
            Ok(())
        })?;
        let joined = joiner.finish(runs.losses());
        let c = &joined.counts;
        facts.put("packets_matched_by_sequence", c.by_sequence);
        facts.put("packets_matched_by_order", c.by_order);
        facts.doubt("packets_matched_with_one_of_several_runs", c.ambiguous);
        facts.doubt("packets_without_a_run", c.without.iter().sum());
        let packets = joined.packets;
        let mut by_run: Vec<u32> = (0u32..)
            .zip(&packets)
            .filter_map(|(at, p)| p.run.map(|_| at))
            .collect();
        by_run.sort_by_key(|at| packets[*at as usize].run);
        Ok(Handled {
            packets,
            by_run,
            runs: joined.spans.len() as u64,
        })
    }

    /// The packet of a row of the stamps, with its run.
    pub(super) fn of(&self, stream: StreamIx, stamp: &Stamp) -> Option<&Packet> {
        let key = |p: &Packet| (p.stream, p.stamp.sent, p.stamp.seq);
        let wanted = (stream, stamp.sent, stamp.seq);
        let first = self.packets.partition_point(|p| key(p) < wanted);
        let same = self.packets[first..]
            .iter()
            .take_while(|p| key(p) == wanted);
        // A further arrival of the packet has the same.
        let mut same = same.filter(|p| p.stamp.received == stamp.received);
        same.find(|p| p.stamp.flags == stamp.flags)
    }

    /// Stream and sequence number of each packet that a run handled.
    pub(super) fn packets_of(&self, run: RunIx) -> Vec<(StreamIx, u64)> {
        let run_of = |at: &u32| self.packets[*at as usize].run;
        let first = self.by_run.partition_point(|at| run_of(at) < Some(run));
        let its = self.by_run[first..].iter();
        its.take_while(|at| run_of(at) == Some(run))
            .map(|at| &self.packets[*at as usize])
            .map(|p| (p.stream, p.stamp.seq))
            .collect()
    }

    /// What each run did that handled a packet; by the number of the run.
    pub(super) fn briefs(&self, source: &Source<'_>) -> Result<Vec<Option<Brief>>> {
        let mut briefs: Vec<Option<Brief>> = Vec::with_capacity(self.runs as usize);
        source.runs().each(|run: Run, runs| {
            let packets = self.packets_of(run.ix).len();
            briefs.push((packets > 0).then(|| Brief {
                packets,
                ticks: run.ticks(),
                complete: run.complete,
                slowest: slowest(&run, NAMED),
            }));
            runs.recycle(run);
            Ok(())
        })?;
        Ok(briefs)
    }
}
