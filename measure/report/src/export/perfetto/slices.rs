//! Packets' ways through the kernel: each as a slice with its slices inside, on as many tracks as are
//! under way at once.
use super::{Event, Name, Note, Perfetto, Track, What};
use crate::slice::{SlicedPacket, slice_comment};
use hopscope_analyze::slice::{Beside, Sides};
use std::io::{self, Write};

const KERNEL: u64 = 8 << 56;
const KERNEL_LANE: u64 = 9 << 56;

/// The flow of a packet through the kernel: none of a generated packet's.
fn flow_of(id: u64) -> u64 {
    1 << 63 | id
}

impl<W: Write> Perfetto<'_, W> {
    /// Calls that come later are joined to the packet: the one nearest to its sending call, and the one
    /// nearest to its receiving call.
    pub fn packet_of_calls(&mut self, packet: u64, sides: &Sides) {
        let flow = flow_of(packet);
        let nearest = |beside: &Option<Beside>| {
            let call = beside.as_ref().and_then(|b| b.nearest);
            call.map(|call| (call.thread, call.entry))
        };
        if let Some(call) = nearest(&sides.before_send) {
            self.kernel_flows
                .entry(call)
                .or_default()
                .through
                .push(flow);
        }
        if let Some(call) = nearest(&sides.after_receive) {
            self.kernel_flows.entry(call).or_default().last.push(flow);
        }
    }

    /// # Errors
    /// Those of the output.
    pub fn kernel_path(&mut self, sliced: SlicedPacket<'_>) -> io::Result<()> {
        let (record, slices) = (&sliced.packet.record, sliced.slices);
        let begin = record.t0_ns;
        let end = begin.saturating_add(slices.whole.raw);
        let before = self.kernel.len();
        let Some(lane) = self.kernel.place(begin, end) else {
            self.counts.without_lane += 1;
            return Ok(());
        };
        let track = Track(KERNEL_LANE | lane as u64);
        if before == 0 && lane == 0 {
            self.file
                .track(Track(KERNEL), None, "packets in the kernel")?;
        }
        if lane == before {
            self.file.track(track, Some(Track(KERNEL)), "under way")?;
        }
        let name = format!(
            "{} > {}, {} bytes",
            record.source_address(),
            record.destination_address(),
            record.payload
        );
        let comment = slice_comment(sliced);
        let notes = [
            ("packet", Note::Unsigned(record.id)),
            ("slices", Note::Text(&comment)),
            ("sent_by_tid", Note::Unsigned(record.tx_tid.into())),
            ("received_by_tid", Note::Unsigned(record.rx_tid.into())),
        ];
        let event = |at_ns, what| Event {
            track,
            at_ns,
            what,
            category: "kernel",
            notes: &[],
            flows: &[],
            last_of_flows: &[],
        };
        self.file.event(&Event {
            notes: &notes,
            flows: &[flow_of(record.id)],
            ..event(begin, What::Begin(Name::Here(&name)))
        })?;
        let mut at = begin;
        for piece in &slices.pieces {
            let notes = [
                ("corrected_ns", Note::Unsigned(piece.span.best())),
                ("raw_ns", Note::Unsigned(piece.span.raw)),
            ];
            let name = Name::Here(sliced.slicer.name(piece.name));
            self.file.event(&Event {
                notes: &notes,
                ..event(at, What::Begin(name))
            })?;
            at = at.saturating_add(piece.span.raw);
            self.file.event(&event(at, What::End))?;
        }
        self.file.event(&event(end.max(at), What::End))
    }
}
