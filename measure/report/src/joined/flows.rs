//! Flow by flow.
use super::json::head_json;
use super::{LISTED, PacketReport, header};
use crate::json::{Object, line};
use crate::units::grouped;
use hopscope_analyze::{Match, NoMatch, Packet};
use serde_json::Value;
use std::io::{self, Write};

/// One flow of one stream. Latencies ascend.
struct Flow<'a> {
    packets: &'a [&'a Packet],
    latencies: Vec<i64>,
    lost: u64,
}

impl Flow<'_> {
    /// The smallest latency that so many of 1,000 packets do not exceed.
    fn quantile(&self, parts: usize) -> Option<i64> {
        let rank = (self.latencies.len() * parts).div_ceil(1000).max(1);
        self.latencies.get(rank - 1).copied()
    }
}

fn each_flow(
    r: &PacketReport<'_>,
    mut each: impl FnMut(&[Flow<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let first = |p: &&Packet| !matches!(p.matched, Match::None(NoMatch::Duplicate));
    let mut packets: Vec<_> = r.joined.packets.iter().filter(first).collect();
    packets.sort_by_key(|p| (p.stream, p.stamp.flow, p.stamp.transit_ticks()));
    let flows = packets.chunk_by(|a, b| (a.stream, a.stamp.flow) == (b.stream, b.stamp.flow));
    let mut flows: Vec<_> = flows
        .map(|packets| {
            let latencies: Vec<_> = packets
                .iter()
                .filter_map(|p| p.stamp.transit_ticks())
                .collect();
            Flow {
                packets,
                lost: (packets.len() - latencies.len()) as u64,
                latencies,
            }
        })
        .collect();
    flows.sort_by_key(|f| {
        (
            std::cmp::Reverse((f.quantile(990), f.quantile(1000))),
            f.packets[0].stamp.flow,
        )
    });
    each(&flows)
}

pub fn write_flows(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    header(out, r)?;
    each_flow(r, |flows| {
        let shown = r.number.unwrap_or(LISTED).min(flows.len());
        writeln!(
            out,
            "\nthe {} flows of {} with the highest p99\n{:>6} {:>8} {:>10} {:>8} {:>10} {:>10} {:>10}",
            grouped(shown as u64),
            grouped(flows.len() as u64),
            "stream",
            "flow",
            "packets",
            "lost",
            "p50",
            "p99",
            "max"
        )?;
        for flow in &flows[..shown] {
            let text = |q: Option<i64>| q.map_or("-".to_owned(), |t| r.scale.text(t.into()));
            writeln!(
                out,
                "{:>6} {:>8} {:>10} {:>8} {:>10} {:>10} {:>10}",
                flow.packets[0].stream.0,
                flow.packets[0].stamp.flow,
                grouped(flow.packets.len() as u64),
                grouped(flow.lost),
                text(flow.quantile(500)),
                text(flow.quantile(990)),
                text(flow.quantile(1000))
            )?;
        }
        Ok(())
    })
}

/// What was matched in one line, then each flow, highest 99th percentile first.
pub fn write_flows_json(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    head_json(out, r)?;
    each_flow(r, |flows| {
        for flow in flows.iter().take(r.number.unwrap_or(usize::MAX)) {
            let mut o = Object::new("flow", &r.scale);
            let stream = flow.packets[0].stream;
            o.put("stream", stream.0);
            o.put("sender", r.stream(stream).map(|s| s.sender.clone()));
            o.put("flow", flow.packets[0].stamp.flow);
            o.put("packets", flow.packets.len() as u64);
            o.put("lost", flow.lost);
            for (name, parts) in [("p50", 500), ("p90", 900), ("p99", 990), ("max", 1000)] {
                match flow.quantile(parts) {
                    Some(ticks) => o.time(&format!("latency_{name}"), ticks.into()),
                    None => o.put(&format!("latency_{name}_{}", r.scale.suffix()), Value::Null),
                }
            }
            line(out, &o)?;
        }
        Ok(())
    })
}
