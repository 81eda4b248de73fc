//! Generated packets, each with the run that handled it: one by one, or by flow.
use crate::between::{self, WithoutStamps};
use crate::error::{Context, Result, refuse};
use crate::options::ReportOptions;
use crate::packet_id::{batch_capture, packet_id};
use crate::selection::Selection;
use crate::stamps;
use hopscope_analyze::Runs;
use hopscope_analyze::join::{Joined, Joiner};
use hopscope_event::StreamEntry;
use hopscope_report::{Between, Names, PacketReport, Recording, Scale};
use hopscope_trace::TraceReader;
use std::io::Write;

/// As text or JSON.
///
/// # Errors
/// No packets or runs, and what cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> Result<()> {
    let source = &selection.runs(options.root.as_deref());
    let other = stamps::of_options(options, recording.meta)?;
    let stamps = other.as_ref().unwrap_or(selection.reader());
    let id = packet_id(options.packet_id.as_deref(), recording.captures)?;
    if let (Some(thin), None) = (recording.thin.filter(|t| t.every > 1), &id) {
        refuse!(
            "only 1 of {} runs was kept, so packets cannot be matched with runs by their order; \
             capture their numbers: record -f 'FUNCTION(pkt->seq)'",
            thin.every
        );
    }
    if let Some(without) = between::without_stamps(options, source, recording, stamps, id.as_ref())?
    {
        let WithoutStamps {
            joined,
            runs,
            between,
        } = &without;
        let found = Found {
            joined,
            runs: Some(runs),
            packet_id: id.as_ref().map(|(_, name)| name.as_str()),
            between: Some(between),
            streams: &[],
        };
        return found.write(out, options, recording);
    }
    let mut joiner = Joiner::new(id.as_ref().map(|(id, _)| id.clone()))
        .counted_by(batch_capture(recording.captures));
    let packets = add_packets(&mut joiner, selection, stamps)?;
    let streams: &[StreamEntry] = &stamps.tables().streams;
    if packets == 0 {
        refuse!("{}", no_packets(stamps, other.is_some()));
    }
    let runs = if recording.functions.is_empty() && selection.reader().heads().next().is_none() {
        None
    } else {
        Some(source.each(|run, runs| {
            joiner
                .run(&run)
                .context("narrow it down with --from and --to")?;
            runs.recycle(run);
            Ok(())
        })?)
    };
    let joined = joiner.finish(runs.as_ref().map_or(&[], |r| r.losses()));
    let found = Found {
        joined: &joined,
        runs: runs.as_ref(),
        packet_id: id.as_ref().map(|(_, name)| name.as_str()),
        between: None,
        streams,
    };
    found.write(out, options, recording)
}

/// Packets with their runs, however they were joined.
struct Found<'a> {
    joined: &'a Joined,
    runs: Option<&'a Runs>,
    packet_id: Option<&'a str>,
    between: Option<&'a Between>,
    streams: &'a [StreamEntry],
}

impl Found<'_> {
    fn write(
        &self,
        out: &mut impl Write,
        options: &ReportOptions,
        recording: &Recording<'_>,
    ) -> Result<()> {
        let names = Names::new(recording);
        let report = PacketReport {
            names: &names,
            scale: Scale::new(options.time, recording.meta.tsc_frequency),
            start: recording.meta.start.tsc,
            streams: self.streams,
            between: self.between,
            joined: self.joined,
            runs: self.runs.map(|r| (r.root(), r.counts())),
            packet_id: self.packet_id,
            number: options.number,
            flow_sort: options.sort,
        };
        if options.json {
            hopscope_report::write_header_json(out, recording, options.time)?;
            if options.by_flow {
                hopscope_report::write_flows_json(out, &report)?
            } else {
                hopscope_report::write_packets_json(out, &report)?
            }
            return Ok(());
        }
        hopscope_report::write_header(out, recording, options.time)?;
        if options.by_flow {
            hopscope_report::write_flows(out, &report)?
        } else {
            hopscope_report::write_packets(out, &report)?
        }
        Ok(())
    }
}

pub(crate) fn add_packets(
    joiner: &mut Joiner,
    selection: &Selection,
    stamps: &TraceReader,
) -> Result<u64> {
    let mut packets = 0;
    stamps::each(selection, stamps, |stream, stamp| {
        let taken = joiner.packet(stream, *stamp);
        taken.context("narrow it down with --from and --to")?;
        packets += 1;
        Ok(())
    })?;
    Ok(packets)
}

pub(crate) fn no_packets(stamps: &TraceReader, other: bool) -> String {
    let some = stamps.stamp_heads().any(|head| head.rows > 0);
    match (some, other) {
        (true, _) => "no packet was due in the selected time; widen --from and --to".to_owned(),
        (false, true) => {
            "--packets: the file holds no packet; it is to be one that hopscope load packets -w wrote"
                .to_owned()
        }
        (false, false) => "the recording holds no packet; give the file that hopscope load packets \
                           -w wrote meanwhile: --packets FILE; or, without stamps, name what two \
                           functions captured of packets' numbers: --packet-id NAME"
            .to_owned(),
    }
}
