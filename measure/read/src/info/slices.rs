//! What a recording of the kernel's path says of itself.
use hopscope_event::slice::{Counter, SliceEntry, SliceEvent, SliceSummary};
use hopscope_report::printable;
use hopscope_report::slice::duty_text;
use hopscope_trace::TraceReader;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Debug, Serialize)]
pub struct Slices<'a> {
    pub packets: u64,
    pub with_bytes: u64,
    /// `None` without packets.
    pub bytes_per_packet: Option<f64>,
    /// `None`: that chunk is lost.
    pub entry: Option<&'a SliceEntry>,
    /// `None`: it was killed.
    pub summary: Option<&'a SliceSummary>,
}

impl<'a> Slices<'a> {
    /// `None`: the kernel's path was not sliced.
    pub fn of(reader: &'a TraceReader) -> Option<Slices<'a>> {
        let tables = reader.tables();
        let (mut packets, mut with_bytes) = (0, 0);
        for head in reader.slice_heads() {
            packets += u64::from(head.rows);
            with_bytes += u64::from(head.with_bytes);
        }
        let some = tables.slice.is_some() || tables.slice_summary.is_some() || packets > 0;
        some.then(|| Slices {
            packets,
            with_bytes,
            bytes_per_packet: (packets > 0).then(|| tables.slice_bytes as f64 / packets as f64),
            entry: tables.slice.as_ref(),
            summary: tables.slice_summary.as_ref(),
        })
    }
}

pub(super) fn write(out: &mut impl Write, slices: &Slices<'_>) -> io::Result<()> {
    write!(
        out,
        "sliced     {} packets, {} of them with bytes",
        slices.packets, slices.with_bytes
    )?;
    if let Some(bytes) = slices.bytes_per_packet {
        write!(out, ", {bytes:.1} bytes each")?;
    }
    writeln!(out)?;
    if let Some(entry) = slices.entry {
        made(out, entry)?;
    }
    let Some(summary) = slices.summary else {
        return Ok(());
    };
    let counted: Vec<String> = Counter::ALL
        .iter()
        .map(|counter| (counter.name(), summary.counters.get(*counter)))
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    writeln!(
        out,
        "counted    {}; {} under way at the end",
        counted.join(", "),
        summary.in_flight
    )
}

fn made(out: &mut impl Write, entry: &SliceEntry) -> io::Result<()> {
    let event = match &entry.event {
        SliceEvent::Time => "time".to_owned(),
        SliceEvent::Counter(name) => format!("event {}", printable(name)),
    };
    let filter = match entry.filter.as_str() {
        "" => "every packet".to_owned(),
        filter => format!("{:?}", printable(filter)),
    };
    writeln!(
        out,
        "slicing    {event} through {} hooks, {filter}, {} slots{}",
        printable(&entry.backend),
        entry.slots,
        duty_text(entry)
    )?;
    let names: Vec<_> = entry.regions.iter().map(|r| printable(&r.name)).collect();
    writeln!(out, "regions    {}", names.join(", "))?;
    for hook in &entry.hooks {
        if let Some(why) = &hook.missing {
            writeln!(out, "no hook    {}: {}", hook.point, printable(why))?;
        }
    }
    match entry.calibration.tau_o {
        Some(tau) => writeln!(
            out,
            "empty      a region reads {} when empty ({}–{} in 80 of 100 of {}): taken out",
            tau.mode, tau.low, tau.high, tau.samples
        ),
        None => writeln!(out, "empty      not calibrated: nothing is taken out"),
    }
}
