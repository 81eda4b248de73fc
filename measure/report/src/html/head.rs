//! The top of the page, which is to be read first, and the data that its script draws.
use super::{Page, charts, flame, tails, text, text::Text};
use crate::header;
use crate::recording::Names;
use crate::runs::root_text;
use crate::units::Scale;
use hopscope_event::Tsc;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) fn write(
    out: &mut impl Write,
    page: &Page<'_>,
    names: &Names<'_>,
    scale: &Scale,
) -> io::Result<()> {
    writeln!(out, "<header><h1>{}</h1>", Text(page.file))?;
    losses(out, page)?;
    writeln!(out, "<dl>")?;
    let version = &page.recording.meta.hopscope_version;
    writeln!(
        out,
        "<dt>hopscope<dd>{}, this page by {}",
        Text(version),
        env!("CARGO_PKG_VERSION")
    )?;
    let mut lines = Vec::new();
    header::write(&mut lines, page.recording, scale)?;
    let lines = String::from_utf8_lossy(&lines).into_owned();
    for line in lines.lines() {
        // Labels are ours and take eleven columns.
        if let Some((label, what)) = line.split_at_checked(11) {
            writeln!(out, "<dt>{}<dd>{}", label.trim_end(), Text(what))?;
        }
    }
    if !page.recording.streams.packets.is_empty() {
        writeln!(
            out,
            "<dt>latency<dd>of a packet: from when its schedule wanted it to leave to its arrival \
             at the receiving port"
        )?;
    }
    if let Some(root) = page.root {
        writeln!(
            out,
            "<dt>run<dd>{}",
            Text(&root_text(names, root).replace("\n           ", "; "))
        )?;
    }
    for note in page.notes {
        writeln!(out, "<dt>note<dd>{}", Text(note))?;
    }
    shown(out, page)?;
    writeln!(out, "</dl></header>")
}

/// What is missing from everything below, before anything else.
fn losses(out: &mut impl Write, page: &Page<'_>) -> io::Result<()> {
    let recording = page.recording;
    let o = &page.functions.oddities;
    let mut parts: Vec<(u64, &str)> = Vec::new();
    let unmeasured = recording.summary.and_then(|s| s.calls_unmeasured);
    if !recording.is_of_packets_only() {
        parts.push((o.lost + o.torn + o.missing, "records lost, torn or missing"));
        parts.push((page.functions.balance.cut, "calls cut by loss"));
        let moved = page.functions.balance.calls_moved();
        if moved > 0 {
            parts.push((moved, "calls moved between threads, not paired"));
        }
        if let Some(unmeasured) = unmeasured {
            parts.push((unmeasured, "calls unmeasured"));
        }
        parts.push((recording.refusals.len() as u64, "functions refused"));
    }
    let sum = |of: &dyn Fn(&hopscope_analyze::Packets) -> u64| {
        recording.streams.packets.iter().map(of).sum::<u64>()
    };
    if !recording.streams.packets.is_empty() {
        parts.push((sum(&|p| p.counts.lost), "packets lost"));
        parts.push((
            sum(&|p| p.counts.late),
            "packets sent late by the generator",
        ));
        parts.push((sum(&|p| p.unwritten), "packets not written to the file"));
    }
    let ended = match (recording.damage, recording.summary) {
        (Some(_), _) => "<li class=bad>the file is damaged",
        (None, None) => "<li class=bad>the recording did not end in order",
        (None, Some(_)) => "",
    };
    let unknown = match unmeasured {
        None if !recording.is_of_packets_only() => "<li class=bad>calls unmeasured: not known",
        _ => "",
    };
    write!(out, "<ul id=losses>{ended}{unknown}")?;
    for (n, what) in parts {
        let class = if n > 0 { " class=bad" } else { "" };
        write!(out, "<li{class}><b>{}</b> {what}", charts::count(n))?;
    }
    writeln!(out, "</ul>")
}

fn shown(out: &mut impl Write, page: &Page<'_>) -> io::Result<()> {
    let (detail, overview) = (&*page.detail, page.overview);
    let part = |shown: u64, all: u64, what: &str| match all {
        0 => String::new(),
        _ => format!("{} of {} {what}", charts::count(shown), charts::count(all)),
    };
    let parts = [
        part(detail.calls_shown(), overview.calls, "timed calls"),
        part(detail.packets_shown(), overview.packets, "packets"),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let why = if detail.windows.whole {
        ""
    } else {
        "; the rest is in the overview, the tables and the charts only (--around shows another part)"
    };
    writeln!(out, "<dt>timeline<dd>{}{why}", parts.join(", "))?;
    let lines = [
        (
            detail.left_out(),
            "calls, packets or runs in the shown parts are beyond the size of the page",
        ),
        (detail.deeper(), "calls lie deeper than the timeline draws"),
        (
            overview.before,
            "stamps lie before the start of the recording",
        ),
    ];
    for (n, what) in lines.iter().filter(|(n, _)| *n > 0) {
        writeln!(out, "<dt><dd class=bad>{} {what}", charts::count(*n))?;
    }
    Ok(())
}

/// Numbers and names for the script. Times are ticks since the start of the recording.
pub(crate) fn data(page: &mut Page<'_>, names: &Names<'_>) -> Value {
    let recording = page.recording;
    let overview = page.overview;
    let base = overview.base;
    let at = |tsc: Tsc| tsc - base;
    let functions = page.detail.functions();
    let function_rows: Vec<_> = functions
        .iter()
        .map(|id| {
            let entry = names.function_entry(*id);
            json!({
                "id": id.0,
                "name": text::name(&names.function(*id)),
                "module": entry.map(|f| f.module.0),
                "file": entry.and_then(|f| f.file.as_deref()).map(text::name),
                "line": entry.and_then(|f| f.line),
            })
        })
        .collect();
    let modules: Vec<_> = recording
        .modules
        .iter()
        .map(|m| json!({"ix": m.ix.0, "name": text::name(&names.module_short(m.ix))}))
        .collect();
    let threads: Vec<_> = recording
        .threads
        .iter()
        .map(|t| json!({"ix": t.ix.0, "name": text::name(&names.thread(t.ix))}))
        .collect();
    let streams: Vec<_> = recording
        .streams
        .entries
        .iter()
        .map(|s| json!({"ix": s.ix.0, "name": text::name(&format!("{} → {}", s.sender, s.receiver))}))
        .collect();
    let slowest: Vec<_> = overview
        .slowest()
        .iter()
        .map(|s| {
            json!({
                "begin": at(s.begin), "end": at(s.end), "ticks": s.ticks,
                "stream": s.packet.map(|p| p.0.0), "seq": s.packet.map(|p| p.1),
            })
        })
        .collect();
    let windows = (!page.detail.windows.whole).then(|| {
        let parts = page.detail.windows.parts.iter();
        parts
            .map(|(from, to)| json!([at(*from), at(*to)]))
            .collect::<Vec<_>>()
    });
    let bins = &overview.bins;
    let cost = recording.meta.probe_cost;
    json!({
        "hz": recording.meta.tsc_frequency.0,
        "end": overview.ticks(),
        "functions": function_rows,
        "modules": modules,
        "threads": threads,
        "streams": streams,
        "cost": cost.map(|c| c.taken_out()).map(|(bias, pair)| json!({"bias": bias, "pair": pair})),
        "overview": {
            "width": overview.width_ticks,
            "calls": bins.iter().map(|b| b.calls).collect::<Vec<_>>(),
            "longest": bins.iter().map(|b| b.longest_ticks).collect::<Vec<_>>(),
            "sent": bins.iter().map(|b| b.sent).collect::<Vec<_>>(),
            "lost": bins.iter().map(|b| b.lost).collect::<Vec<_>>(),
            "p50": bins.iter().map(|b| b.quantile(500)).collect::<Vec<_>>(),
            "p99": bins.iter().map(|b| b.quantile(990)).collect::<Vec<_>>(),
            "max": bins.iter().map(|b| b.quantile(1000)).collect::<Vec<_>>(),
        },
        "windows": windows,
        "focus": page.focus.map(|(from, to)| [at(from), at(to)]),
        "slowest": slowest,
        "tails": page.late.map(tails::json),
        "calls": page.detail.calls_json(base, &functions),
        "packets": page.detail.packets_json(base),
        "runs": page.detail.runs_json(base),
        "flame": flame::json(names, page.functions),
    })
}
