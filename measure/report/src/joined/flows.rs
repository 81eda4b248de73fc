//! Flow by flow.
use super::json::head_json;
use super::{LISTED, PacketReport, header};
use crate::json_line::{Object, line};
use crate::order::Sort;
use crate::units::grouped;
use hopscope_analyze::join::{OwnWork, own_work};
use hopscope_analyze::{Match, NoMatch, Packet};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};

/// One flow of one stream. Times ascend.
struct Flow<'a> {
    packets: &'a [&'a Packet],
    latencies: Vec<i64>,
    /// Until their runs began.
    waits: Vec<i64>,
    own: Option<OwnWork>,
    lost: u64,
}

/// The smallest time that so many of 1,000 do not exceed.
fn quantile(times: &[i64], parts: usize) -> Option<i64> {
    let rank = (times.len() * parts).div_ceil(1000).max(1);
    times.get(rank - 1).copied()
}

impl Flow<'_> {
    fn quantile(&self, parts: usize) -> Option<i64> {
        quantile(&self.latencies, parts)
    }

    fn measure(&self, sort: Sort) -> Option<i64> {
        match sort {
            Sort::Total => self.own.map(|o| o.sum_ticks),
            Sort::SelfTime => self.own.map(|o| o.p50_ticks),
            Sort::Calls => Some(self.packets.len() as i64),
            Sort::P50 => self.quantile(500),
            Sort::P99 => self.quantile(990),
            Sort::Max => self.quantile(1000),
            Sort::Name => None,
        }
    }
}

/// What flows are ordered by, and in words.
fn order(r: &PacketReport<'_>) -> (Sort, &'static str) {
    let sort = r.flow_sort.unwrap_or(match r.runs {
        Some(_) => Sort::SelfTime,
        None => Sort::P99,
    });
    let what = match sort {
        Sort::Total => "with most own work",
        Sort::SelfTime => "whose packets cost most themselves",
        Sort::Calls => "with most packets",
        Sort::P50 => "with the highest p50",
        Sort::P99 => "with the highest p99",
        Sort::Max => "with the highest latency",
        Sort::Name => "by number",
    };
    (sort, what)
}

fn each_flow(
    r: &PacketReport<'_>,
    mut each: impl FnMut(&[Flow<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let first = |p: &&Packet| !matches!(p.matched, Match::None(NoMatch::Duplicate));
    let mut packets: Vec<_> = r.joined.packets.iter().filter(first).collect();
    packets.sort_by_key(|p| (p.stream, p.stamp.flow, p.stamp.transit_ticks()));
    let mut own = match r.runs {
        Some(_) => own_work(r.joined),
        None => HashMap::new(),
    };
    let flows = packets.chunk_by(|a, b| (a.stream, a.stamp.flow) == (b.stream, b.stamp.flow));
    let mut flows: Vec<_> = flows
        .map(|packets| {
            let latencies: Vec<_> = packets
                .iter()
                .filter_map(|p| p.stamp.transit_ticks())
                .collect();
            let waits = packets.iter().filter_map(|p| r.parts(p));
            let mut waits: Vec<_> = waits.map(|parts| parts.wait).collect();
            waits.sort_unstable();
            Flow {
                packets,
                waits,
                own: own.remove(&(packets[0].stream, packets[0].stamp.flow)),
                lost: (packets.len() - latencies.len()) as u64,
                latencies,
            }
        })
        .collect();
    let (sort, _) = order(r);
    flows.sort_by_key(|f| {
        let tail = (f.quantile(990), f.quantile(1000));
        (
            (sort != Sort::Name).then_some(std::cmp::Reverse((f.measure(sort), tail))),
            f.packets[0].stream,
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
            "\nthe {} flows of {} {}\n{:>6} {:>8} {:>10} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            grouped(shown as u64),
            grouped(flows.len() as u64),
            order(r).1,
            "stream",
            "flow",
            "packets",
            "lost",
            "own p50",
            "wait p50",
            "wait p99",
            "p50",
            "p99",
            "max"
        )?;
        for flow in &flows[..shown] {
            let text = |q: Option<i64>| q.map_or("-".to_owned(), |t| r.scale.text(t.into()));
            writeln!(
                out,
                "{:>6} {:>8} {:>10} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
                flow.packets[0].stream.0,
                flow.packets[0].stamp.flow,
                grouped(flow.packets.len() as u64),
                grouped(flow.lost),
                text(flow.own.map(|o| o.p50_ticks)),
                text(quantile(&flow.waits, 500)),
                text(quantile(&flow.waits, 990)),
                text(flow.quantile(500)),
                text(flow.quantile(990)),
                text(flow.quantile(1000))
            )?;
        }
        if r.runs.is_some() {
            writeln!(
                out,
                "own: a packet's share of its run, apart from the flows beside it; wait: from sent to the begin \
                 of its run, behind others or for a poll; p50, p99, max: the latency"
            )?;
        }
        Ok(())
    })
}

/// What was matched in one line, then each flow.
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
            let mut time = |name: &str, ticks: Option<i64>| match ticks {
                Some(ticks) => o.time(name, ticks.into()),
                None => o.put(&format!("{name}_{}", r.scale.suffix()), Value::Null),
            };
            time("own_p50", flow.own.map(|own| own.p50_ticks));
            time("own_sum", flow.own.map(|own| own.sum_ticks));
            time("wait_p50", quantile(&flow.waits, 500));
            time("wait_p99", quantile(&flow.waits, 990));
            o.put("own_packets", flow.own.map(|own| own.packets));
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
