//! Runs, and packets with the run that handled each, for the page; what is ambiguous, in words.
use super::Source;
use crate::report::packet_id::packet_id;
use crate::runs::RunSource;
use hopscope_analyze::{JoinCounts, Joiner, Match, NoMatch, Packet, Root};
use hopscope_report::{Detail, Recording};

/// Gives the page its runs and packets. Without runs it has packets alone, and `notes` says why.
pub fn runs_and_packets(
    source: &Source<'_>,
    recording: &Recording<'_>,
    detail: &mut Detail,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<Root>> {
    let mut root = None;
    if source.reader.heads().any(|head| head.records > 0) {
        match joined(source, recording, detail, notes) {
            Ok(found) => root = Some(found),
            // Asked for by name: then it is an error that there is none.
            Err(error) if source.args.root.is_some() => return Err(error),
            Err(error) => notes.push(format!("no runs are shown: {error:#}")),
        }
    }
    if root.is_none() {
        source.stamps(|stream, stamp| {
            detail.packet(&Packet {
                stream,
                stamp: *stamp,
                run: None,
                matched: Match::None(NoMatch::NoRunMeanwhile),
            });
        })?;
    }
    Ok(root)
}

fn joined(
    source: &Source<'_>,
    recording: &Recording<'_>,
    detail: &mut Detail,
    notes: &mut Vec<String>,
) -> anyhow::Result<Root> {
    let id = packet_id(source.args.packet_id.as_deref(), recording.captures)?;
    let mut joiner = Joiner::new(id.as_ref().map(|(id, _)| id.clone()));
    let mut full = None;
    source.stamps(|stream, stamp| {
        if full.is_none() {
            full = joiner.packet(stream, *stamp).err();
        }
    })?;
    if let Some(error) = full {
        anyhow::bail!("{error}; narrow it down with --from and --to");
    }
    let runs = RunSource {
        reader: source.reader,
        threads: source.threads,
        window: source.window,
        root: source.args.root.as_deref(),
    };
    let mut shown = Vec::new();
    let runs = runs.each(|run, runs| {
        joiner.run(&run)?;
        if detail.wants(&run) {
            shown.push(run);
        } else {
            runs.recycle(run);
        }
        Ok(())
    })?;
    // Only now it is certain that there are runs to be shown.
    shown.iter().for_each(|run| detail.run(run));
    let joined = joiner.finish(runs.losses());
    joined.packets.iter().for_each(|p| detail.packet(p));
    if joined.counts.packets > 0 {
        notes.push(words(&joined.counts));
    }
    Ok(runs.root().clone())
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
