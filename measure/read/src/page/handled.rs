//! Packets with the run that handled each, why the late ones were late, and the runs of the page.
use super::Source;
use crate::error::{Result, in_one_line, refuse};
use crate::late::{self, Arrivals, Found};
use crate::packet_id::{batch_capture, packet_id};
use crate::runs::RunSource;
use hopscope_analyze::join::Joined;
use hopscope_analyze::tail::Threshold;
use hopscope_analyze::{JoinCounts, Joiner, Match, NoMatch, Packet, Root};
use hopscope_event::{StreamIx, Tsc};
use hopscope_report::{Detail, Recording};

/// What is looked for when packets are there and nothing was asked.
const TAIL: Threshold = Threshold::Percentile(99.9);
const TAIL_TEXT: &str = "p99.9";

/// What runs say of packets.
pub(super) struct Handled {
    pub(super) joined: Joined,
    pub(super) root: Root,
    pub(super) late: Found,
    /// As the user wrote it.
    pub(super) asked: String,
}

impl Handled {
    /// Where the first example of each cause lies.
    pub(super) fn places(&self) -> Vec<(Tsc, Tsc, StreamIx, u64)> {
        let first = |row: &hopscope_analyze::tail::TailRow| {
            let packet = row.examples.first()?.late.packet;
            let stamp = packet.stamp;
            let begin = stamp.intended.min(stamp.sent);
            Some((begin, stamp.received?, packet.stream, stamp.seq))
        };
        self.late.report.rows.iter().filter_map(first).collect()
    }
}

fn runs_of<'a>(source: &Source<'a>) -> RunSource<'a> {
    source.selection.runs(source.options.root.as_deref())
}

/// `None` when there are no packets or no calls, or no runs; then `notes` says why, unless a root or
/// a tail was asked for: that is an error.
pub(super) fn handled(
    source: &Source<'_>,
    recording: &Recording<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Handled>> {
    let packets = recording.streams.packets.iter();
    let asked = source.options.tail.is_some();
    if packets.map(|p| p.counts.sent).sum::<u64>() == 0 || !source.selection.has_calls() {
        return if asked {
            refuse!(
                "--tail asks for late packets and their runs, and there are no {} in the selected part",
                if source.selection.has_calls() {
                    "packets"
                } else {
                    "calls"
                }
            )
        } else {
            Ok(None)
        };
    }
    match join(source, recording) {
        Ok(found) => {
            notes.push(words(&found.joined.counts));
            Ok(Some(found))
        }
        // Asked for by name: then it is an error that there is none.
        Err(error) if asked || source.options.root.is_some() => Err(error),
        Err(error) => {
            notes.push(format!(
                "packets are shown without runs: {}",
                in_one_line(&error)
            ));
            Ok(None)
        }
    }
}

fn join(source: &Source<'_>, recording: &Recording<'_>) -> Result<Handled> {
    let id = packet_id(source.options.packet_id.as_deref(), recording.captures)?;
    let counts = batch_capture(recording.captures);
    let mut joiner = Joiner::new(id.map(|(id, _)| id)).counted_by(counts);
    let mut full = None;
    source.stamps(|stream, stamp| {
        if full.is_none() {
            full = joiner.packet(stream, *stamp).err();
        }
    })?;
    if let Some(error) = full {
        refuse!("{error}; narrow it down with --from and --to");
    }
    let from = runs_of(source);
    let runs = from.each(|run, runs| {
        joiner.run(&run)?;
        runs.recycle(run);
        Ok(())
    })?;
    let mut joined = joiner.finish(runs.losses());
    let (threshold, asked) = match &source.options.tail {
        Some((threshold, text)) => (*threshold, text.clone()),
        None => (TAIL, TAIL_TEXT.to_owned()),
    };
    let late = late::search(&from, recording, &mut joined, threshold, Arrivals::Stamped)?;
    Ok(Handled {
        joined,
        root: runs.root().clone(),
        late,
        asked,
    })
}

/// Gives the page its runs and packets.
pub(super) fn show(
    source: &Source<'_>,
    handled: Option<&Handled>,
    detail: &mut Detail,
    notes: &mut Vec<String>,
) -> Result<Option<Root>> {
    match handled {
        Some(handled) => handled.joined.packets.iter().for_each(|p| detail.packet(p)),
        None => source.stamps(|stream, stamp| {
            detail.packet(&Packet {
                stream,
                stamp: *stamp,
                run: None,
                matched: Match::None(NoMatch::NoRunMeanwhile),
            });
        })?,
    }
    if !source.selection.has_calls() {
        return Ok(None);
    }
    let runs = runs_of(source).each(|run, runs| {
        detail.run(&run);
        runs.recycle(run);
        Ok(())
    });
    match runs {
        Ok(runs) => Ok(Some(runs.root().clone())),
        Err(error) if source.options.root.is_some() => Err(error),
        Err(error) => {
            notes.push(format!("no runs are shown: {}", in_one_line(&error)));
            Ok(None)
        }
    }
}

fn words(c: &JoinCounts) -> String {
    let mut text = format!(
        "packets and runs: {} matched by captured sequence number, {} by order and time",
        c.by_sequence, c.by_order
    );
    if c.ambiguous > 0 {
        text += &format!(
            ", {} more of these ambiguous (of up to {} possible runs one was taken)",
            c.ambiguous, c.ambiguous_among_max
        );
    }
    if c.fifo_assumed {
        text += "; they are taken for handled in the order in which they left";
    }
    for (why, n) in NoMatch::ALL.iter().zip(c.without) {
        if n > 0 {
            text += &format!("; {n} {why}");
        }
    }
    text
}
