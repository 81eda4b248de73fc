//! Packets for Wireshark: each twice, as it left and as it arrived, with what is known of it as its
//! comment. A recording holds no bytes of packets, so none are written: captured length 0.
use super::handled::{Brief, Handled};
use super::source::Source;
use crate::error::{Error, Result, require};
use hopscope_analyze::Match;
use hopscope_event::{Stamp, StampFlags, StreamIx};
use hopscope_netio::capture::{InterfaceCounts, PcapngWriter};
use hopscope_report::export::Facts;
use hopscope_report::{Names, Timeline, printable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Write;

/// Frames held back to be written in the order of time; 40 MiB.
const HELD_MAX: usize = 1 << 18;

/// A frame of the file. Ordered by time, then by how it came.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at_ns: u64,
    number: u64,
    interface: u32,
    frame_bytes: u32,
    comment: String,
}

struct Capture<W: Write> {
    writer: PcapngWriter<W>,
    held: BinaryHeap<Reverse<Held>>,
    number: u64,
    written_ns: u64,
    out_of_order: u64,
}

impl<W: Write> Capture<W> {
    fn hold(&mut self, mut frame: Held) -> Result<()> {
        frame.number = self.number;
        self.number += 1;
        self.held.push(Reverse(frame));
        if self.held.len() > HELD_MAX {
            self.write_first()
        } else {
            Ok(())
        }
    }

    fn write_first(&mut self) -> Result<()> {
        let Some(Reverse(frame)) = self.held.pop() else {
            return Ok(());
        };
        self.out_of_order += u64::from(frame.at_ns < self.written_ns);
        self.written_ns = self.written_ns.max(frame.at_ns);
        let len = frame.frame_bytes as usize;
        let comment = Some(frame.comment.as_str());
        self.writer
            .frame(frame.interface, frame.at_ns, &[], len, comment)?;
        Ok(())
    }
}

/// Interfaces of a stream: where it leaves, where it arrives.
fn interfaces(
    capture: &mut Capture<impl Write>,
    source: &Source<'_>,
    known: &mut BTreeMap<StreamIx, (u32, u32)>,
    stream: StreamIx,
) -> Result<(u32, u32)> {
    if let Some(pair) = known.get(&stream) {
        return Ok(*pair);
    }
    let streams = &source.stamps_reader().tables().streams;
    let entry = streams.iter().find(|s| s.ix == stream);
    let name = |way: &str, port: Option<&String>| match port {
        Some(port) => format!("{way} {}", printable(port)),
        None => format!("{way}, stream {}", stream.0),
    };
    let sent = capture
        .writer
        .interface(&name("sent", entry.map(|e| &e.sender)))?;
    let received = capture
        .writer
        .interface(&name("received", entry.map(|e| &e.receiver)))?;
    known.insert(stream, (sent, received));
    Ok((sent, received))
}

fn comment(source: &Source<'_>, stamp: &Stamp) -> String {
    let frequency = source.selection.tables().meta.tsc_frequency;
    let mut text = format!("seq {} flow {}", stamp.seq, stamp.flow);
    match (stamp.transit_ticks(), stamp.latency_ticks()) {
        (Some(transit), Some(latency)) => {
            let (transit, latency) = (frequency.ns(transit), frequency.ns(latency));
            text += &format!(": left to arrived {transit} ns; due to arrived {latency} ns");
        }
        _ => text += ": lost",
    }
    let late = frequency.ns(stamp.sent - stamp.intended);
    if stamp.flags.contains(StampFlags::LATE) {
        text += &format!("; left {late} ns late");
    }
    if stamp.flags != StampFlags::NONE {
        text += &format!("; {}", stamp.flags);
    }
    text
}

/// The run that handled a packet, and what most of its time went to.
struct Runs<'a> {
    handled: Handled,
    briefs: Vec<Option<Brief>>,
    names: Names<'a>,
}

impl Runs<'_> {
    fn comment(&self, source: &Source<'_>, stream: StreamIx, stamp: &Stamp) -> String {
        let ns = |ticks| source.selection.tables().meta.tsc_frequency.ns(ticks);
        let Some(packet) = self.handled.of(stream, stamp) else {
            return String::new();
        };
        let how = match packet.matched {
            Match::Sequence => "by captured sequence number".to_owned(),
            Match::Order { ambiguous_among: 1 } => "by order".to_owned(),
            Match::Order { ambiguous_among } => format!("by order, one of {ambiguous_among}"),
            Match::None(why) => return format!("; no run: {why}"),
        };
        let ix = packet.run.map_or(0, |run| run.0);
        let mut text = format!("; run {ix} ({how})");
        let Some(Some(brief)) = self.briefs.get(ix as usize) else {
            return text;
        };
        text += &format!(" of {} packets took {} ns", brief.packets, ns(brief.ticks));
        if !brief.complete {
            text += ", not known whole";
        }
        for (function, ticks) in &brief.slowest {
            let name = self.names.qualified(*function);
            text += &format!(", {name} {} ns", ns(*ticks));
        }
        text
    }
}

pub(super) fn write(source: &Source<'_>, out: &mut impl Write) -> Result<Facts> {
    let packets = source.packets()?;
    let recording = source.recording(&packets);
    require!(
        !packets.is_empty(),
        "the recording holds no generated packets: pcapng has nothing to show (record with `hopscope load packets`)"
    );
    let timeline: Timeline = source.selection.timeline();
    let mut facts = Facts::of(&recording);
    facts.packets(&packets);
    let handled = Handled::find(source, &mut facts)?;
    let runs = handled.map(|handled| {
        let briefs = handled.briefs(source)?;
        let names = Names::new(&recording);
        Ok::<_, Error>(Runs {
            handled,
            briefs,
            names,
        })
    });
    let runs = runs.transpose()?;
    let mut capture = Capture {
        writer: PcapngWriter::new(out)?,
        held: BinaryHeap::new(),
        number: 0,
        written_ns: 0,
        out_of_order: 0,
    };
    let mut known = BTreeMap::new();
    // All interfaces before the first frame, so that their numbers do not depend on the order.
    for of in &packets {
        interfaces(&mut capture, source, &mut known, of.stream)?;
    }
    for batch in source.stamps() {
        let batch = batch?;
        let (sent, received) = interfaces(&mut capture, source, &mut known, batch.stream)?;
        for stamp in &batch.stamps {
            if !source.selection.window.contains(stamp.intended.0) {
                continue;
            }
            let mut comment = comment(source, stamp);
            if let Some(runs) = &runs {
                comment += &runs.comment(source, batch.stream, stamp);
            }
            let frame = |interface, at| Held {
                at_ns: timeline.realtime_ns(at),
                number: 0,
                interface,
                frame_bytes: stamp.len,
                comment: comment.clone(),
            };
            if !stamp.flags.contains(StampFlags::DUPLICATE) {
                capture.hold(frame(sent, stamp.sent))?;
            }
            if let Some(at) = stamp.received {
                capture.hold(frame(received, at))?;
            }
        }
    }
    while !capture.held.is_empty() {
        capture.write_first()?;
    }
    facts.doubt("frames_out_of_order", capture.out_of_order);
    for of in &packets {
        let (_, received) = interfaces(&mut capture, source, &mut known, of.stream)?;
        let counts = InterfaceCounts {
            received: of.counts.received + of.counts.duplicate,
            dropped: of.counts.lost + of.unwritten,
        };
        capture
            .writer
            .statistics(received, capture.written_ns, counts)?;
    }
    capture.writer.finish()?;
    Ok(facts)
}
