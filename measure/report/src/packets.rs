//! Generated packets: what became of them and how long they took, stream by stream.
use crate::json_line::{Object, line};
use crate::printable_text::printable;
use crate::recording::Recording;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{Distribution, Packets};
use hopscope_event::{Stamp, StampFlags, Tsc};
use serde_json::json;
use std::io::{self, Write};

pub(crate) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    let streams = recording.streams;
    if streams.packets.is_empty() && !streams.is_empty() {
        writeln!(out, "packets    none: streams without a row")?;
    }
    for packets in streams.packets {
        match streams.entry(packets) {
            Some(e) => {
                let (from, to) = (printable(&e.sender), printable(&e.receiver));
                writeln!(out, "stream     {from} to {to}")?;
                writeln!(out, "traffic    {}", printable(&e.traffic))?;
            }
            None => writeln!(out, "stream     #{}, of unknown name", packets.stream.0)?,
        }
        let c = packets.counts;
        writeln!(
            out,
            "packets    {} sent = {} received + {} lost ({}); {} reordered, {} corrupted, \
             {} further arrivals (duplicates)",
            grouped(c.sent),
            grouped(c.received),
            grouped(c.lost),
            share(c.lost.into(), c.sent.into()),
            grouped(c.reordered),
            grouped(c.corrupted),
            grouped(c.duplicate)
        )?;
        if c.late > 0 {
            let (late, part) = (grouped(c.late), share(c.late.into(), c.sent.into()));
            writeln!(
                out,
                "LATE       {late} ({part}) left while the generator was behind its schedule"
            )?;
        }
        if packets.unwritten > 0 {
            let rows = grouped(packets.unwritten);
            writeln!(
                out,
                "UNWRITTEN  {rows} rows are missing: the file was too slow"
            )?;
        }
        writeln!(
            out,
            "           {:>9} {:>9} {:>9} {:>9} {:>9}  from",
            "p50", "p90", "p99", "p99.9", "max"
        )?;
        times(
            out,
            "latency",
            &packets.latency,
            scale,
            "when it should have left",
        )?;
        times(out, "transit", &packets.transit, scale, "when it left")?;
        writeln!(out)?;
    }
    Ok(())
}

fn times(
    out: &mut impl Write,
    name: &str,
    d: &Distribution,
    scale: &Scale,
    from: &str,
) -> io::Result<()> {
    let q = |parts| scale.quantile(d.quantile(parts));
    let max = scale.quantile(d.max());
    writeln!(
        out,
        "{name:<10} {:>9} {:>9} {:>9} {:>9} {max:>9}  {from}",
        q(500),
        q(900),
        q(990),
        q(999)
    )?;
    match d.negative() {
        0 => Ok(()),
        n => writeln!(
            out,
            "{:>14}  {name} times are negative: the stamps of the two ends disagree",
            grouped(n)
        ),
    }
}

pub(crate) fn write_json(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    for packets in recording.streams.packets {
        let mut o = Object::new("packets", scale);
        o.put("stream", packets.stream.0);
        if let Some(e) = recording.streams.entry(packets) {
            o.put("sender", e.sender.clone());
            o.put("receiver", e.receiver.clone());
            o.put("traffic", e.traffic.clone());
        }
        for (name, count) in counts(packets) {
            o.put(name, count);
        }
        o.distribution("latency", &packets.latency);
        o.distribution("transit", &packets.transit);
        line(out, &o)?;
    }
    Ok(())
}

fn counts(packets: &Packets) -> [(&'static str, u64); 8] {
    let c = packets.counts;
    [
        ("sent", c.sent),
        ("received", c.received),
        ("lost", c.lost),
        ("late", c.late),
        ("reordered", c.reordered),
        ("corrupted", c.corrupted),
        ("duplicate", c.duplicate),
        ("unwritten", packets.unwritten),
    ]
}

/// Writes packets one by one, as text or JSON.
pub struct PacketWriter {
    pub scale: Scale,
    pub start: Tsc,
    pub json: bool,
}

impl PacketWriter {
    pub fn titles(&self, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let unit = self.scale.suffix();
        writeln!(
            out,
            "{:>20} {:>6} {:>12} {:>8} {:>6} {:>14} {:>14}  what",
            format!("intended, {unit}"),
            "stream",
            "packet",
            "flow",
            "bytes",
            format!("left, +{unit}"),
            format!("arrived, +{unit}")
        )
    }

    /// Times of leaving and arrival are relative to the intended one.
    pub fn packet(&self, out: &mut impl Write, stream: u32, stamp: &Stamp) -> io::Result<()> {
        let number = |ticks: i64| self.scale.number(i128::from(ticks));
        let intended = number(stamp.intended - self.start);
        let left = number(stamp.sent - stamp.intended);
        let arrived = stamp.latency_ticks().map(number);
        let Stamp {
            seq,
            flow,
            len,
            flags,
            ..
        } = *stamp;
        if !self.json {
            let arrived = arrived.map_or("lost".to_owned(), |at| at.to_string());
            return writeln!(
                out,
                "{intended:>20} {stream:>6} {seq:>12} {flow:>8} {len:>6} {left:>14} {arrived:>14}  {flags}"
            );
        }
        let mut o = Object::new("packet", &self.scale);
        o.put("stream", stream);
        o.put("seq", seq);
        o.put("flow", flow);
        o.put("len", len);
        o.time("intended", i128::from(stamp.intended - self.start));
        o.time("left_after", i128::from(stamp.sent - stamp.intended));
        match stamp.latency_ticks() {
            Some(ticks) => o.time("latency", i128::from(ticks)),
            None => o.put(&format!("latency_{}", self.scale.suffix()), json!(null)),
        }
        for (name, flag) in [
            ("late", StampFlags::LATE),
            ("duplicate", StampFlags::DUPLICATE),
            ("reordered", StampFlags::REORDERED),
            ("corrupted", StampFlags::CORRUPTED),
        ] {
            o.put(name, flags.contains(flag));
        }
        line(out, &o)
    }
}
