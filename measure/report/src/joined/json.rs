//! Packets for programs.
use super::{PacketReport, distributed, matched_text};
use crate::json_line::{Object, line};
use crate::runs::{put_counts, put_root};
use hopscope_analyze::{Match, NoMatch};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn head_json(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    if let Some((root, counts)) = r.runs {
        let mut o = Object::new("runs", &r.scale);
        put_root(&mut o, r.names, root);
        put_counts(&mut o, counts);
        line(out, &o)?;
    }
    let c = &r.joined.counts;
    let mut o = Object::new("matched", &r.scale);
    o.put("boundary", r.boundary());
    o.put("packet_id", r.packet_id);
    o.put("without_stamps", r.between.is_some());
    o.put("packets", c.packets);
    o.put("by_sequence", c.by_sequence);
    o.put("by_order", c.by_order);
    o.put("by_count", c.by_count);
    o.put("ambiguous", c.ambiguous);
    o.put("ambiguous_among_max", c.ambiguous_among_max);
    o.put("fifo_assumed", c.fifo_assumed);
    for (why, n) in NoMatch::ALL.iter().zip(c.without) {
        o.put(why.name(), n);
    }
    for (name, d) in distributed(r) {
        o.distribution(name, &d);
    }
    line(out, &o)
}

/// What was matched in one line, then each packet, slowest first.
pub fn write_packets_json(out: &mut impl Write, r: &PacketReport<'_>) -> io::Result<()> {
    head_json(out, r)?;
    let slowest = r.slowest();
    for packet in slowest.iter().take(r.number.unwrap_or(usize::MAX)) {
        let mut o = Object::new("packet_run", &r.scale);
        let parts = r.parts(packet);
        o.put("stream", packet.stream.0);
        o.put("seq", packet.stamp.seq);
        o.put("flow", packet.stamp.flow);
        o.put("len", packet.stamp.len);
        o.time("sent", (packet.stamp.sent - r.start).into());
        let mut time = |name: &str, ticks: Option<i64>| match ticks {
            Some(ticks) => o.time(name, ticks.into()),
            None => o.put(&format!("{name}_{}", r.scale.suffix()), Value::Null),
        };
        time("latency", packet.stamp.transit_ticks());
        time("wait", parts.map(|p| p.wait));
        time("in_run", parts.map(|p| p.in_run));
        time("way_out", parts.and_then(|p| p.out));
        o.put("run", packet.run.map(|ix| ix.0));
        o.put("matched", matched_text(packet.matched));
        let among = match packet.matched {
            Match::Order { ambiguous_among } => json!(ambiguous_among),
            Match::Sequence | Match::None(_) => Value::Null,
        };
        o.put("ambiguous_among", among);
        line(out, &o)?;
    }
    Ok(())
}
