//! `hopscope report --by packet` and `--by flow`.
use super::between::{self, WithoutStamps};
use super::packet_id::packet_id;
use super::tail::batch_capture;
use super::{By, ReportArgs, unit};
use crate::runs::RunSource;
use anyhow::{Context, bail};
use hopscope_analyze::join::{Joined, Joiner};
use hopscope_analyze::{Runs, Window, same_clock};
use hopscope_event::StreamEntry;
use hopscope_report::{Between, Names, PacketReport, Recording, Scale};
use hopscope_trace::TraceReader;
use std::io::Write;

pub fn write(
    out: &mut impl Write,
    args: &ReportArgs,
    source: &RunSource<'_>,
    recording: &Recording<'_>,
) -> anyhow::Result<()> {
    let other = stamps_beside(args, recording)?;
    let stamps = other.as_ref().unwrap_or(source.reader);
    let id = packet_id(args.packet_id.as_deref(), recording.captures)?;
    if let (Some(thin), None) = (recording.thin.filter(|t| t.every > 1), &id) {
        bail!(
            "only 1 of {} runs was kept, so packets cannot be matched with runs by their order; \
             capture their numbers: record -f 'FUNCTION(pkt->seq)'",
            thin.every
        );
    }
    if let Some(without) = between::without_stamps(args, source, recording, stamps, id.as_ref())? {
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
        return found.write(out, args, recording);
    }
    let mut joiner = Joiner::new(id.as_ref().map(|(id, _)| id.clone()))
        .counted_by(batch_capture(recording.captures));
    let packets = add_packets(&mut joiner, stamps, source.window)?;
    let streams: &[StreamEntry] = &stamps.tables().streams;
    if packets == 0 {
        bail!("{}", no_packets(stamps, other.is_some()));
    }
    let runs = match recording.functions.is_empty() && source.reader.heads().next().is_none() {
        true => None,
        false => Some(source.each(|run, runs| {
            joiner
                .run(&run)
                .context("narrow it down with --from and --to")?;
            runs.recycle(run);
            Ok(())
        })?),
    };
    let joined = joiner.finish(runs.as_ref().map_or(&[], |r| r.losses()));
    let found = Found {
        joined: &joined,
        runs: runs.as_ref(),
        packet_id: id.as_ref().map(|(_, name)| name.as_str()),
        between: None,
        streams,
    };
    found.write(out, args, recording)
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
        args: &ReportArgs,
        recording: &Recording<'_>,
    ) -> anyhow::Result<()> {
        let names = Names::new(recording);
        let report = PacketReport {
            names: &names,
            scale: Scale::new(unit(args.time), recording.meta.tsc_frequency),
            start: recording.meta.start.tsc,
            streams: self.streams,
            between: self.between,
            joined: self.joined,
            runs: self.runs.map(|r| (r.root(), r.counts())),
            packet_id: self.packet_id,
            number: args.number,
            flow_sort: args.sort.map(super::sort),
        };
        let by_flow = matches!(args.by, By::Flow);
        if args.json {
            hopscope_report::write_header_json(out, recording, unit(args.time))?;
            match by_flow {
                true => hopscope_report::write_flows_json(out, &report)?,
                false => hopscope_report::write_packets_json(out, &report)?,
            }
            return Ok(());
        }
        hopscope_report::write_header(out, recording, unit(args.time))?;
        match by_flow {
            true => hopscope_report::write_flows(out, &report)?,
            false => hopscope_report::write_packets(out, &report)?,
        }
        Ok(())
    }
}

/// The other file that the packets are in, if they are; of the same clock.
pub(super) fn stamps_beside(
    args: &ReportArgs,
    recording: &Recording<'_>,
) -> anyhow::Result<Option<TraceReader>> {
    let other = args.packets.as_ref().map(TraceReader::open).transpose();
    let other = other.context("--packets")?;
    if let Some(other) = &other {
        same_clock(recording.meta, &other.tables().meta).with_context(|| {
            format!(
                "{} and {} cannot be laid side by side; make both on one host, between two boots",
                args.file.display(),
                args.packets.as_deref().unwrap_or(&args.file).display()
            )
        })?;
    }
    Ok(other)
}

pub(super) fn add_packets(
    joiner: &mut Joiner,
    stamps: &TraceReader,
    window: Window,
) -> anyhow::Result<u64> {
    let mut packets = 0;
    for batch in stamps.stamps() {
        let batch = batch.context("reading the packets")?;
        let within = batch
            .stamps
            .iter()
            .filter(|s| window.contains(s.intended.0));
        for stamp in within {
            let taken = joiner.packet(batch.stream, *stamp);
            taken.context("narrow it down with --from and --to")?;
            packets += 1;
        }
    }
    Ok(packets)
}

pub(super) fn no_packets(stamps: &TraceReader, other: bool) -> String {
    let some = stamps.stamp_heads().any(|head| head.rows > 0);
    match (some, other) {
        (true, _) => "no packet was due in the time asked for; widen --from and --to".to_owned(),
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
