//! A row for each slice of each packet, and one for the whole of it.
use super::table::columns;
use super::{Column, Facts, Rows, Schema, Value};
use crate::slice::SlicedPacket;
use hopscope_analyze::slice::{PieceFlags, Span};
use hopscope_event::slice::{SliceFlags, Sliced};
use std::io;

/// In the order in which packets were handed over, slices in the order of time. The names of three tell what was counted.
const fn columns_of(
    raw: &'static str,
    correction: &'static str,
    corrected: &'static str,
) -> [Column<'static>; COLUMNS] {
    *columns! {
        "row" Text "slice; bypass (of a queueing discipline); whole; note",
        "packet" U64 "number of the packet",
        "parent" U64 "packet that software GSO cut it from",
        "region" Text "regions that the slice is of",
        "from" Text "point where it begins",
        "to" Text "point where it ends",
        raw U64 "as the stamps read",
        correction U64 "what the probes are known to have cost in it",
        corrected U64 "difference; 0 if negative",
        "slice_flags" Text "notes on these numbers, joined by +",
        "realtime_ns" Instant "first stamp of the packet, CLOCK_REALTIME",
        "monotonic_ns" U64 "the same on CLOCK_MONOTONIC",
        "protocol" U64 "IANA protocol number",
        "source" Text "address",
        "source_port" U64 "0 without ports",
        "destination" Text "address",
        "destination_port" U64 "0 without ports",
        "tcp_seq" U64 "sequence number as on the wire",
        "payload_bytes" U64 "after the transport's header",
        "segments" U64 "segments in one, by TSO or GRO",
        "tx_tid" U64 "thread that sent it",
        "rx_tid" U64 "thread that received it",
        "rx_returned" I64 "what the receiving call returned",
        "packet_flags" Text "anomalies of the packet",
        "drop_reason" Text "why the kernel dropped it",
        "note" Text "what else must be known",
    }
}

const OF_TIME: [Column<'static>; COLUMNS] = columns_of("raw_ns", "correction_ns", "corrected_ns");
const OF_EVENTS: [Column<'static>; COLUMNS] =
    columns_of("raw_events", "correction_events", "corrected_events");

pub static SLICES: Schema = Schema {
    name: "slices",
    columns: &OF_TIME,
    more: Vec::new(),
};

/// Of `slice --event`: the fact `event` says what was counted.
pub static SLICES_OF_EVENTS: Schema = Schema {
    name: "slices",
    columns: &OF_EVENTS,
    more: Vec::new(),
};

const COLUMNS: usize = 26;

pub struct SliceRows<R> {
    rows: R,
}

impl<R: Rows> SliceRows<R> {
    pub fn new(rows: R) -> SliceRows<R> {
        SliceRows { rows }
    }

    /// # Errors
    /// Those of the output.
    pub fn packet(&mut self, sliced: SlicedPacket<'_>) -> io::Result<()> {
        let SlicedPacket {
            source,
            packet: Sliced { record, .. },
            slices,
            slicer,
        } = sliced;
        let (from, to) = (record.source_address(), record.destination_address());
        let (from_ip, to_ip) = (from.ip().to_string(), to.ip().to_string());
        let flags = record.flags.to_string();
        let dropped = record.flags.contains(SliceFlags::DROPPED);
        let reason = dropped.then(|| source.drop_reason(record.drop_reason));
        let some = |n: u64| (n != 0).then_some(n);
        let mut common = [Value::None; COLUMNS];
        common[1] = record.id.into();
        common[2] = some(record.parent).into();
        common[10] = (source.time.realtime_ns(record.t0_ns) as i64).into();
        common[11] = record.t0_ns.into();
        common[12] = u32::from(record.protocol).into();
        common[13] = from_ip.as_str().into();
        common[14] = u32::from(record.source_port).into();
        common[15] = to_ip.as_str().into();
        common[16] = u32::from(record.destination_port).into();
        common[17] = (record.protocol == 6).then_some(record.tcp_seq).into();
        common[18] = record.payload.into();
        common[19] = u32::from(record.segments.max(1)).into();
        common[20] = some(record.tx_tid.into()).into();
        common[21] = some(record.rx_tid.into()).into();
        common[22] = record.rx_returned.into();
        common[23] = (record.flags != SliceFlags::NONE)
            .then_some(flags.as_str())
            .into();
        common[24] = reason.as_deref().into();
        for piece in &slices.pieces {
            let mut values = common;
            values[0] = "slice".into();
            values[3] = slicer.name(piece.name).into();
            values[4] = piece.from.name().into();
            values[5] = piece.to.name().into();
            self.span(values, &piece.span)?;
        }
        for name in &slices.bypassed {
            let mut values = common;
            values[0] = "bypass".into();
            values[3] = slicer.name(*name).into();
            self.rows.row(&values)?;
        }
        let mut values = common;
        values[0] = "whole".into();
        self.span(values, &slices.whole)
    }

    fn span<'a>(&mut self, mut values: [Value<'a>; COLUMNS], span: &'a Span) -> io::Result<()> {
        values[6] = span.raw.into();
        values[7] = span.correction.into();
        values[8] = span.corrected().into();
        let flags: Vec<&str> = span.flags.names().collect();
        let flags = flags.join("+");
        let mut values: [Value<'_>; COLUMNS] = values;
        values[9] = (span.flags != PieceFlags::NONE)
            .then_some(flags.as_str())
            .into();
        self.rows.row(&values)
    }

    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &Facts) -> io::Result<()> {
        self.rows.finish(facts)
    }
}
