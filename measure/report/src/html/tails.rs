//! Why packets were late: a row a cause, with examples. Without a script it is a list to be read; the
//! script makes each example lead to its packet on the timeline.
use super::text::{self, Text};
use crate::tail::{BOUNDARY, LISTED, LateReport};
use crate::tail_text::cause_text;
use crate::units::{grouped, share};
use hopscope_analyze::RunIx;
use hopscope_analyze::tail::{Evidence, Example, Link, TailRow};
use serde_json::{Value, json};
use std::io::{self, Write};

fn rows<'a>(late: &LateReport<'a>) -> &'a [TailRow] {
    let rows = &late.tail.rows;
    &rows[..late.number.unwrap_or(LISTED).min(rows.len())]
}

pub(crate) fn write(out: &mut impl Write, late: &LateReport<'_>) -> io::Result<()> {
    let (tail, counts) = (late.tail, &late.tail.counts);
    writeln!(
        out,
        "<section id=tails><h2>Why packets were late</h2><p>{} of {} packets took longer than {} \
         ({}), {BOUNDARY}. Batch size: {}. Context switches: {}.",
        grouped(counts.late),
        grouped(counts.packets - counts.never_came_back),
        late.scale.text(tail.threshold_ticks.into()),
        Text(late.asked),
        Text(&late.batch_from()),
        Text(late.off_cpu),
    )?;
    for (n, why) in late.left_out() {
        let (n, why) = (grouped(n), Text(&why));
        writeln!(out, "<p class=bad>{n} late packets {why}: not attributed")?;
    }
    let early = counts.looked_at_early;
    for (n, what) in [
        (
            counts.ambiguous,
            "late packets were matched with one of several possible runs",
        ),
        (
            early,
            "late packets were evaluated before all records around them were read",
        ),
        (
            counts.flows_not_followed,
            "times a flow came that is one too many to be followed",
        ),
    ] {
        if n > 0 {
            writeln!(out, "<p>{} {what}", grouped(n))?;
        }
    }
    if counts.attributed > 0 {
        table(out, late)?;
    }
    writeln!(out, "</section>")
}

fn table(out: &mut impl Write, late: &LateReport<'_>) -> io::Result<()> {
    let tail = late.tail;
    let parts: Vec<_> = (tail.parts.iter())
        .map(|(name, ticks)| {
            let part = share(*ticks, tail.latency_ticks);
            format!("{} {part}", name.replace('_', " "))
        })
        .collect();
    writeln!(out, "<p>Their time: {}.", Text(&parts.join(", ")))?;
    if !tail.rows.iter().any(|row| row.cause.is_known()) {
        writeln!(
            out,
            "<p>No cause is named: nothing here is beyond what chance brings."
        )?;
    }
    write!(
        out,
        "<table><thead><tr><th>cause<th class=n>packets<th class=n>events<th class=n>explained\
         <th class=n>of the tail<tbody>"
    )?;
    for (at, row) in rows(late).iter().enumerate() {
        let explained = if row.cause.is_known() {
            late.scale.text(row.explained_ticks)
        } else {
            "-".to_owned()
        };
        write!(
            out,
            "<tr><td><b class=cause data-cause={at}>{}</b>",
            Text(&cause_text(late.names, row.cause))
        )?;
        for (n, example) in row.examples.iter().enumerate() {
            write!(
                out,
                "<p class=example data-cause={at} data-example={n}>{}",
                Text(&late.words().headline(example))
            )?;
            for said in late.words().story(example) {
                write!(out, "<br>{}", Text(&said))?;
            }
            write!(out, "</p>")?;
        }
        write!(
            out,
            "<td class=n>{}<td class=n>{}<td class=n>{explained}<td class=n>{}",
            grouped(row.packets),
            grouped(row.events),
            late.share(row)
        )?;
    }
    writeln!(out, "</table>")?;
    match tail.rows.len() - rows(late).len() {
        0 => Ok(()),
        more => writeln!(out, "<p>{more} more causes; -n N lists N"),
    }
}

/// What the script marks: for each cause its examples, packet and runs.
pub(crate) fn json(late: &LateReport<'_>) -> Value {
    let example = |e: &Example| {
        let behind = e.late.links.iter().map(|link| match link {
            Link::WaitedBehind { run, .. } | Link::InBatch { run, .. } => run.0,
        });
        let story = late.words().story(e);
        json!({
            "stream": e.late.packet.stream.0,
            "seq": e.late.packet.stamp.seq,
            "run": e.late.packet.run.map(|ix| ix.0),
            "chain": behind.collect::<Vec<_>>(),
            "culprit": culprit(e.evidence).map(|ix| ix.0),
            "story": story.iter().map(|said| text::name(said)).collect::<Vec<_>>(),
        })
    };
    let rows = rows(late).iter().map(|row| {
        json!({
            "text": text::name(&cause_text(late.names, row.cause)),
            "examples": row.examples.iter().map(example).collect::<Vec<_>>(),
        })
    });
    Value::Array(rows.collect())
}

/// The run in which it began.
fn culprit(evidence: Evidence) -> Option<RunIx> {
    match evidence {
        Evidence::Slow { run, .. }
        | Evidence::Rare { run, .. }
        | Evidence::Batch { run, .. }
        | Evidence::OffCpu { run, .. }
        | Evidence::Slower { run, .. } => Some(run),
        Evidence::Arrivals { .. }
        | Evidence::Part { .. }
        | Evidence::Flow { .. }
        | Evidence::None => None,
    }
}
