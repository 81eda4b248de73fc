//! Packet by packet and flow by flow: how long each took, and which run handled it.
mod flows;
mod json;

pub use flows::{write_flows, write_flows_json};
pub use json::write_packets_json;

use crate::order::Sort;
use crate::printable_text::printable;
use crate::recording::Names;
use crate::runs::root_text;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::join::{JoinCounts, Joined, RunSpan};
use hopscope_analyze::{Distribution, Match, NoMatch, Packet, Root, RunCounts};
use hopscope_event::{StreamEntry, StreamIx, Tsc};
use std::io::{self, Write};

/// Everything that the reports by packet and by flow show.
pub struct PacketReport<'a> {
    pub names: &'a Names<'a>,
    pub scale: Scale,
    /// Of the recording that the runs are of.
    pub start: Tsc,
    pub streams: &'a [StreamEntry],
    /// Without stamps: where numbers were captured that latency lies between.
    pub between: Option<&'a Between>,
    pub joined: &'a Joined,
    /// `None`: there are no runs to join the packets to.
    pub runs: Option<(&'a Root, &'a RunCounts)>,
    /// Captured values that were taken for sequence numbers, as the user wrote them.
    pub packet_id: Option<&'a str>,
    /// Rows that are listed; `None` is all of them in JSON, and 20 for people.
    pub number: Option<usize>,
    /// Of flows. `None`: what their packets cost themselves, where runs are known, else the 99th percentile.
    pub flow_sort: Option<Sort>,
}

/// Of packets without stamps: what their times lie between, and what was seen beside that.
pub struct Between {
    pub boundary: String,
    /// Counts that are not 0, in words.
    pub notes: Vec<(u64, String)>,
}

/// Rows for people, if they do not say.
const LISTED: usize = 20;

/// A packet's time, cut at its run.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// From leaving to the begin of the run; negative when it came while the run was under way.
    wait: i64,
    in_run: i64,
    /// From the end of the run to arrival; negative when it left before the run ended.
    out: Option<i64>,
}

impl PacketReport<'_> {
    fn span(&self, packet: &Packet) -> Option<RunSpan> {
        let run = packet.run?;
        self.joined.spans.get(run.0 as usize).copied()
    }

    fn parts(&self, packet: &Packet) -> Option<Parts> {
        let run = self.span(packet)?;
        Some(Parts {
            wait: run.start - packet.stamp.sent,
            in_run: run.end - run.start,
            out: packet.stamp.received.map(|at| at - run.end),
        })
    }

    /// Packets with the longest transit first; those that never arrived last.
    fn slowest(&self) -> Vec<&Packet> {
        let mut packets: Vec<_> = self.joined.packets.iter().collect();
        packets.sort_by_key(|p| {
            (
                std::cmp::Reverse(p.stamp.transit_ticks()),
                p.stream,
                p.stamp.seq,
            )
        });
        packets
    }

    fn stream(&self, ix: StreamIx) -> Option<&StreamEntry> {
        self.streams.iter().find(|s| s.ix == ix)
    }

    /// Between what and what the time of a packet lies.
    fn boundary(&self) -> String {
        if let Some(between) = self.between {
            return between.boundary.clone();
        }
        let [from, to] = match self.streams {
            [one] => [&one.sender, &one.receiver].map(|name| printable(name)),
            _ => ["the sender of its stream", "its receiver"].map(str::to_owned),
        };
        format!("from given to the port at {from} (sent) to taken at {to} (received)")
    }
}

fn matched_text(matched: Match) -> String {
    match matched {
        Match::Sequence => "sequence".to_owned(),
        Match::Order { ambiguous_among: 1 } => "order".to_owned(),
        Match::Order { ambiguous_among } => format!("one of {ambiguous_among}"),
        Match::None(why) => why.name().to_owned(),
    }
}

fn header(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    writeln!(out, "latency    {}", r.boundary())?;
    for (n, what) in r.between.map_or(&[][..], |b| &b.notes) {
        writeln!(out, "{:>14}  {what}", grouped(*n))?;
    }
    let Some((root, counts)) = r.runs else {
        return writeln!(
            out,
            "run        none: no process was measured in this recording"
        );
    };
    writeln!(out, "run        {}", root_text(r.names, root))?;
    writeln!(
        out,
        "runs       {}, {} of them not known whole",
        grouped(counts.runs),
        grouped(counts.incomplete())
    )?;
    let c = &r.joined.counts;
    match r.packet_id {
        Some(name) => writeln!(out, "matched    by captured {}", printable(name))?,
        None => writeln!(out, "matched    by order and time: {}", by_order(c))?,
    }
    let lines = [
        (
            c.by_sequence,
            "packets by the sequence number that their run captured".to_owned(),
        ),
        (
            c.by_order,
            match c.by_count {
                0 => "packets by order and time, one run possible".to_owned(),
                n => format!(
                    "packets by order and time, one run possible; {} of them by the number of \
                     packets that runs captured",
                    grouped(n)
                ),
            },
        ),
        (
            c.ambiguous,
            format!(
                "packets are AMBIGUOUS among up to {} runs; the likeliest is shown",
                c.ambiguous_among_max
            ),
        ),
    ];
    let without = NoMatch::ALL.iter().zip(c.without);
    let without = without.map(|(why, n)| (n, format!("packets {why}")));
    for (n, what) in lines.into_iter().chain(without).filter(|(n, _)| *n > 0) {
        writeln!(
            out,
            "{:>14}  {what} ({})",
            grouped(n),
            share(n.into(), c.packets.into())
        )?;
    }
    Ok(())
}

fn by_order(c: &JoinCounts) -> &'static str {
    if c.fifo_assumed {
        "a run that was under way while the packet was, packets of a stream in the order in \
             which they left"
    } else {
        "a run, of any thread, that was under way while the packet was"
    }
}

pub fn write_packets(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    header(out, r)?;
    distributions(out, r)?;
    let slowest = r.slowest();
    let shown = r.number.unwrap_or(LISTED).min(slowest.len());
    writeln!(
        out,
        "\nthe {} slowest of {}\n{:>6} {:>10} {:>7} {:>14} {:>10} {:>10} {:>10} {:>10} {:>9}  matched by",
        grouped(shown as u64),
        grouped(slowest.len() as u64),
        "stream",
        "packet",
        "flow",
        "sent after",
        "latency",
        "wait",
        "in run",
        "way out",
        "run"
    )?;
    for packet in &slowest[..shown] {
        let parts = r.parts(packet);
        let ticks = |t: Option<i64>| t.map_or("-".to_owned(), |t| r.scale.text(t.into()));
        writeln!(
            out,
            "{:>6} {:>10} {:>7} {:>14} {:>10} {:>10} {:>10} {:>10} {:>9}  {}",
            packet.stream.0,
            packet.stamp.seq,
            packet.stamp.flow,
            r.scale.text((packet.stamp.sent - r.start).into()),
            packet
                .stamp
                .transit_ticks()
                .map_or("lost".to_owned(), |t| r.scale.text(t.into())),
            ticks(parts.map(|p| p.wait)),
            ticks(parts.map(|p| p.in_run)),
            ticks(parts.and_then(|p| p.out)),
            packet.run.map_or("-".to_owned(), |ix| ix.0.to_string()),
            matched_text(packet.matched),
        )?;
    }
    Ok(())
}

/// Over all packets, and over those with a run.
fn distributed(r: &PacketReport<'_>) -> [(&'static str, Distribution); 4] {
    let mut of: [Distribution; 4] = Default::default();
    for packet in &r.joined.packets {
        if matches!(packet.matched, Match::None(NoMatch::Duplicate)) {
            continue;
        }
        if let Some(transit) = packet.stamp.transit_ticks() {
            of[0].record(transit);
        }
        if let Some(parts) = r.parts(packet) {
            of[1].record(parts.wait);
            of[2].record(parts.in_run);
            if let Some(way_out) = parts.out {
                of[3].record(way_out);
            }
        }
    }
    let [transit, wait, in_run, way_out] = of;
    [
        ("latency", transit),
        ("wait", wait),
        ("in_run", in_run),
        ("way_out", way_out),
    ]
}

fn distributions(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    writeln!(
        out,
        "\n{:<10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "packets", "p50", "p90", "p99", "p99.9", "max"
    )?;
    for (name, d) in distributed(r) {
        let q = |parts| r.scale.quantile(d.quantile(parts));
        let (name, n) = (name.replace('_', " "), grouped(d.len()));
        let max = r.scale.quantile(d.max());
        writeln!(
            out,
            "{name:<10} {n:>10} {:>10} {:>10} {:>10} {:>10} {max:>10}",
            q(500),
            q(900),
            q(990),
            q(999)
        )?;
    }
    writeln!(
        out,
        "wait: from sent to the begin of its run; way out: from the run's end to received. Negative \
         when the run was under way at that time"
    )
}
