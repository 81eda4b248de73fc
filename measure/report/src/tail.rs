//! Why packets were late: causes, how much of the late packets' time each explains, examples.
use crate::joined::Between;
use crate::json_line::{Object, line};
use crate::recording::Names;
use crate::runs::root_text;
use crate::tail_text::{Words, cause_text};
use crate::units::{Scale, grouped, share};
use hopscope_analyze::Root;
use hopscope_analyze::join::JoinCounts;
use hopscope_analyze::tail::{BatchSize, Evidence, Example, Link, Place, TailReport, TailRow};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Everything that the report of late packets shows.
pub struct LateReport<'a> {
    pub names: &'a Names<'a>,
    pub scale: Scale,
    pub root: &'a Root,
    /// Without stamps: where numbers were captured that latency lies between.
    pub between: Option<&'a Between>,
    pub tail: &'a TailReport,
    pub joined: &'a JoinCounts,
    /// As the user wrote it: `p99.9`, `500us`.
    pub asked: &'a str,
    /// What is known of context switches, in words.
    pub off_cpu: &'a str,
    /// Causes that are listed; `None` is all of them in JSON, and 10 for people.
    pub number: Option<usize>,
}

pub(crate) const LISTED: usize = 10;
pub(crate) const BOUNDARY: &str =
    "from the time a packet was due (intended) to taken at the receiver";

impl LateReport<'_> {
    pub(crate) fn words(&self) -> Words<'_> {
        Words {
            names: self.names,
            scale: self.scale,
        }
    }

    pub(crate) fn boundary(&self) -> &str {
        self.between.map_or(BOUNDARY, |b| &b.boundary)
    }

    pub(crate) fn share(&self, row: &TailRow) -> String {
        share(row.latency_ticks, self.tail.latency_ticks)
    }

    pub(crate) fn batch_from(&self) -> String {
        match self.tail.batch_from {
            BatchSize::Captured(f, _) => format!("captured by {}", self.names.qualified(f)),
            BatchSize::CallsOf(f) => format!(
                "{} is called once for each packet of a batch",
                self.names.qualified(f)
            ),
            BatchSize::Matched => {
                "by the packets that came back; those dropped in between are missing".to_owned()
            }
        }
    }

    /// Late packets that are in no row, with the reason.
    pub(crate) fn left_out(&self) -> Vec<(u64, String)> {
        let c = &self.tail.counts;
        let mut out: Vec<_> = c
            .no_run
            .iter()
            .map(|(why, n)| (*n, why.to_string()))
            .collect();
        out.push((
            c.too_late,
            "came long after their run in the recording".into(),
        ));
        out.push((
            c.not_its_run,
            "arrived before the run began that they were matched with".into(),
        ));
        out.retain(|(n, _)| *n > 0);
        out
    }
}

pub fn write_tail(out: &mut impl Write, r: &LateReport<'_>) -> io::Result<()> {
    let (tail, c) = (r.tail, &r.tail.counts);
    writeln!(
        out,
        "late       {} of {} packets took longer than {} ({})",
        grouped(c.late),
        grouped(c.packets - c.never_came_back),
        r.scale.text(tail.threshold_ticks.into()),
        r.asked
    )?;
    writeln!(out, "latency    {}", r.boundary())?;
    for (n, what) in r.between.map_or(&[][..], |b| &b.notes) {
        writeln!(out, "{:>14}  {what}", grouped(*n))?;
    }
    writeln!(out, "run        {}", root_text(r.names, r.root))?;
    writeln!(out, "batch      {}", r.batch_from())?;
    writeln!(out, "off CPU    {}", r.off_cpu)?;
    let some = c.ambiguous > 0;
    let ambiguous = format!(
        ", {} of them matched with one of several possible runs",
        grouped(c.ambiguous)
    );
    writeln!(
        out,
        "analyzed  {} late packets{}",
        grouped(c.attributed),
        if some { ambiguous } else { String::new() }
    )?;
    for (n, why) in r.left_out() {
        writeln!(
            out,
            "{:>14}  late packets {why}: NOT ATTRIBUTED",
            grouped(n)
        )?;
    }
    for (n, what) in [
        (
            c.never_came_back,
            match r.between {
                None => "packets never came back and have no latency",
                Some(_) => "packets were not seen at the second place and have no latency",
            },
        ),
        (
            c.looked_at_early,
            "late packets were evaluated before all records around them were read",
        ),
        (
            c.flows_not_followed,
            "times a flow came that is one too many to be followed",
        ),
    ] {
        if n > 0 {
            writeln!(out, "{:>14}  {what}", grouped(n))?;
        }
    }
    if c.attributed == 0 {
        return Ok(());
    }
    let parts: Vec<_> = tail
        .parts
        .iter()
        .map(|(name, ticks)| {
            format!(
                "{} {}",
                name.replace('_', " "),
                share(*ticks, tail.latency_ticks)
            )
        })
        .collect();
    writeln!(out, "their time {}", parts.join(", "))?;
    writeln!(
        out,
        "\n{:>3} {:<44} {:>9} {:>8} {:>10} {:>8}",
        "", "cause", "packets", "events", "explained", "of tail"
    )?;
    let shown = r.number.unwrap_or(LISTED).min(tail.rows.len());
    for (at, row) in tail.rows[..shown].iter().enumerate() {
        writeln!(
            out,
            "{:>3} {:<44} {:>9} {:>8} {:>10} {:>8}",
            at + 1,
            cause_text(r.names, row.cause),
            grouped(row.packets),
            grouped(row.events),
            if row.cause.is_known() {
                r.scale.text(row.explained_ticks)
            } else {
                "-".to_owned()
            },
            r.share(row)
        )?;
    }
    if tail.rows.len() > shown {
        writeln!(
            out,
            "    and {} more; -n N lists N",
            tail.rows.len() - shown
        )?;
    }
    if !tail.rows.iter().any(|row| row.cause.is_known()) {
        writeln!(
            out,
            "no cause is named: nothing here is beyond what chance brings"
        )?;
    }
    for (at, row) in tail.rows[..shown].iter().enumerate() {
        writeln!(out, "\n{}. {}", at + 1, cause_text(r.names, row.cause))?;
        r.words().row(out, row)?;
    }
    Ok(())
}

pub fn write_tail_json(out: &mut impl Write, r: &LateReport<'_>) -> io::Result<()> {
    let tail = r.tail;
    for (at, row) in tail
        .rows
        .iter()
        .take(r.number.unwrap_or(usize::MAX))
        .enumerate()
    {
        let flows: Vec<Value> = row
            .flows
            .iter()
            .map(|((stream, flow), n)| json!({"stream": stream.0, "flow": flow, "packets": n}))
            .collect();
        let examples: Vec<Value> = row.examples.iter().map(|e| example(r, e)).collect();
        let place = row.cause.place().map(|p| place(r, p));
        let mut o = Object::new("tail_cause", &r.scale);
        o.put("rank", at + 1);
        o.put("cause", row.cause.name());
        o.put("known", row.cause.is_known());
        o.put("text", cause_text(r.names, row.cause));
        o.put("function", place);
        o.put("packets", row.packets);
        o.put("events", row.events);
        o.time("explained", row.explained_ticks);
        o.time("latency", row.latency_ticks);
        o.put("flows", flows);
        o.put("more_flows", row.more_flows);
        o.put("examples", examples);
        line(out, &o)?;
    }
    let c = &tail.counts;
    let parts: serde_json::Map<String, Value> = tail
        .parts
        .iter()
        .map(|(name, ticks)| {
            let name = format!("{name}_{}", r.scale.suffix());
            (name, json!(r.scale.number(*ticks)))
        })
        .collect();
    let no_run: serde_json::Map<String, Value> = c
        .no_run
        .iter()
        .map(|(why, n)| (why.name().to_owned(), json!(n)))
        .collect();
    let mut o = Object::new("summary", &r.scale);
    o.put("report", "tail");
    o.put("asked", r.asked);
    o.put("boundary", r.boundary());
    o.put("without_stamps", r.between.is_some());
    o.time("threshold", tail.threshold_ticks.into());
    for (name, n) in [
        ("packets", c.packets),
        ("never_came_back", c.never_came_back),
        ("late", c.late),
        ("attributed", c.attributed),
        ("ambiguous", c.ambiguous),
        ("too_late", c.too_late),
        ("not_its_run", c.not_its_run),
        ("looked_at_early", c.looked_at_early),
        ("flows_not_followed", c.flows_not_followed),
        ("matched_by_sequence", r.joined.by_sequence),
        ("runs", tail.runs),
    ] {
        o.put(name, n);
    }
    o.put("no_run", no_run);
    o.time("latency", tail.latency_ticks);
    o.put("parts", parts);
    o.put("batch", r.batch_from());
    o.put("off_cpu", r.off_cpu);
    line(out, &o)
}

fn place(r: &LateReport<'_>, place: Place) -> String {
    match place {
        Place::Function(f) => r.names.qualified(f),
        Place::Loop => "the loop itself".to_owned(),
    }
}

fn example(r: &LateReport<'_>, e: &Example) -> Value {
    let suffix = r.scale.suffix();
    let time = |name: &str| format!("{name}_{suffix}");
    let number = |ticks: i64| r.scale.number(ticks.into());
    let stamp = &e.late.packet.stamp;
    let parts: Vec<Value> = e
        .late
        .parts
        .segments
        .iter()
        .map(|s| r.words().segment_json(*s))
        .collect();
    let chain: Vec<Value> = e
        .late
        .links
        .iter()
        .map(|link| match link {
            Link::WaitedBehind { run, packets, ticks } => {
                json!({"waited_behind_run": run.0, "packets": packets, time("waited"): number(*ticks)})
            }
            Link::InBatch { run, packets } => json!({"in_batch_of_run": run.0, "packets": packets}),
        })
        .collect();
    let told: Vec<String> = [e.evidence, e.flow]
        .into_iter()
        .filter(|e| *e != Evidence::None)
        .map(|e| r.words().evidence(e))
        .collect();
    json!({
        "stream": e.late.packet.stream.0, "packet": stamp.seq, "flow": stamp.flow,
        "run": e.late.packet.run.map(|ix| ix.0),
        time("latency"): number(e.late.parts.latency_ticks),
        time("explained"): number(e.late.explained_ticks),
        "parts": parts, "history_cut": e.late.parts.history_cut,
        "chain": chain, "more_links": e.late.more_links, "evidence": told,
    })
}
