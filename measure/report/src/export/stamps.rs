//! A row for each generated packet, and for each further arrival of one.
use super::table::columns;
use super::{Facts, Rows, Schema, Value};
use crate::timeline::Timeline;
use hopscope_analyze::{Match, Packet};
use hopscope_event::{Stamp, StampFlags, StreamEntry, StreamIx, Tsc};
use std::io;

/// In the order in which the fate of each packet was known.
pub static PACKETS: Schema = Schema {
    name: "packets",
    columns: columns! {
        "row" Text "packet; duplicate: a further arrival; gap: rows that were not written; note",
        "stream" U64 "sender and receiver that the packet is matched at",
        "sender" Text "where it left",
        "receiver" Text "where it arrived",
        "seq" U64 "sequence number in the stream",
        "flow" U64 "index of the flow in the stream",
        "frame_bytes" U64 "Ethernet frame without FCS",
        "intended_realtime_ns" Instant "when it should have left, CLOCK_REALTIME",
        "intended_ns" I64 "the same since the start of the recording",
        "late_ns" F64 "from when it should have left until it left",
        "latency_ns" F64 "from when it should have left to arrival; absent: lost",
        "transit_ns" F64 "from leaving to arrival; absent: lost",
        "lost" U64 "1: it did not arrive before the receiver gave up",
        "late" U64 "1: the generator was behind its schedule",
        "reordered" U64 "1: a later packet of its flow arrived before it",
        "corrupted" U64 "1: it arrived with another payload",
        "intended_tsc" U64 "stamps in ticks of the time-stamp counter",
        "sent_tsc" U64 "",
        "received_tsc" U64 "",
        "run" U64 "run that handled it, as numbered in the table of runs",
        "matched" Text "how packet and run were matched: sequence, order, or why there is no run",
        "possible_runs" U64 "runs that could have handled it; more than 1: ambiguous",
        "unwritten_rows" U64 "of a gap: rows that the generator had to drop",
        "note" Text "what else must be known",
    },
    more: Vec::new(),
};

const COLUMNS: usize = 24;
const _: () = assert!(PACKETS.columns.len() == COLUMNS);

pub struct PacketRows<'a, R> {
    streams: &'a [StreamEntry],
    timeline: &'a Timeline,
    rows: R,
}

impl<'a, R: Rows> PacketRows<'a, R> {
    pub fn new(streams: &'a [StreamEntry], timeline: &'a Timeline, rows: R) -> PacketRows<'a, R> {
        PacketRows {
            streams,
            timeline,
            rows,
        }
    }

    fn stream(&self, values: &mut [Value<'a>; COLUMNS], stream: StreamIx) {
        values[1] = stream.0.into();
        let entry = self.streams.iter().find(|s| s.ix == stream);
        values[2] = entry.map(|s| s.sender.as_str()).into();
        values[3] = entry.map(|s| s.receiver.as_str()).into();
    }

    /// `handled`: the same packet with its run, where that was looked for.
    ///
    /// # Errors
    /// Those of the output.
    pub fn packet(
        &mut self,
        stream: StreamIx,
        stamp: &Stamp,
        handled: Option<&Packet>,
    ) -> io::Result<()> {
        let has = |flag| Value::U64(stamp.flags.contains(flag).into());
        let again = stamp.flags.contains(StampFlags::DUPLICATE);
        let ns = |ticks| self.timeline.tenths_ns(ticks);
        let mut values = [Value::None; COLUMNS];
        values[0] = if again { "duplicate" } else { "packet" }.into();
        self.stream(&mut values, stream);
        values[4] = stamp.seq.into();
        values[5] = stamp.flow.into();
        values[6] = stamp.len.into();
        values[7] = self.timeline.realtime_ns(stamp.intended).into();
        values[8] = self.timeline.since_start_ns(stamp.intended).into();
        values[9] = ns(stamp.sent - stamp.intended).into();
        values[10] = stamp.latency_ticks().map(ns).into();
        values[11] = stamp.transit_ticks().map(ns).into();
        values[12] = u64::from(stamp.received.is_none()).into();
        values[13] = has(StampFlags::LATE);
        values[14] = has(StampFlags::REORDERED);
        values[15] = has(StampFlags::CORRUPTED);
        values[16] = stamp.intended.0.into();
        values[17] = stamp.sent.0.into();
        values[18] = stamp.received.map(|Tsc(t)| t).into();
        if let Some(packet) = handled {
            values[19] = packet.run.map(|ix| ix.0).into();
            let (matched, possible) = match packet.matched {
                Match::Sequence => ("sequence", Some(1)),
                Match::Order { ambiguous_among } => ("order", Some(ambiguous_among)),
                Match::None(why) => (why.name(), None),
            };
            values[20] = matched.into();
            values[21] = possible.into();
        }
        self.rows.row(&values)
    }

    /// Rows that the generator had to drop come before the next one.
    ///
    /// # Errors
    /// Those of the output.
    pub fn gap(&mut self, stream: StreamIx, unwritten: u64) -> io::Result<()> {
        let mut values = [Value::None; COLUMNS];
        values[0] = "gap".into();
        self.stream(&mut values, stream);
        values[22] = unwritten.into();
        self.rows.row(&values)
    }

    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &Facts) -> io::Result<()> {
        self.rows.finish(facts)
    }
}
