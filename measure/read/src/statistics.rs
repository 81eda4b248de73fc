//! Calls of a recording in numbers, and its records as they are.
use crate::error::{Context, Result};
use crate::options::ReportOptions;
use crate::selection::Selection;
use crate::stamps;
use hopscope_analyze::{Group, Window};
use hopscope_event::ThreadIx;
use hopscope_report::{Event, EventWriter, Layout, Names, PacketWriter, PathLimits, Recording};
use hopscope_report::{Scale, Sort, View};
use std::collections::HashMap;
use std::io::Write;

/// What one row is about, and which paths of a tree are shown.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    pub group: Group,
    pub layout: Layout,
    pub paths: PathLimits,
    pub in_detail: bool,
}

/// As text or JSON.
///
/// # Errors
/// What cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
    rows: Rows,
) -> Result<()> {
    let outcome = selection.analysis(rows.group, Some(selection.off_cpu()?))?;
    let view = View {
        layout: rows.layout,
        sort: options.sort.unwrap_or(Sort::Total),
        time: options.time,
        in_detail: rows.in_detail,
        paths: rows.paths,
    };
    if options.json {
        hopscope_report::write_json(out, recording, &outcome, view)?;
    } else {
        hopscope_report::write_text(out, recording, &outcome, view)?;
    }
    Ok(())
}

/// Raw records, thread by thread as they were read, after the generated packets.
///
/// # Errors
/// What cannot be read or written.
pub fn write_events(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> Result<()> {
    let reader = selection.reader();
    let names = Names::new(recording);
    let writer = EventWriter {
        names: &names,
        scale: Scale::new(options.time, recording.meta.tsc_frequency),
        start: recording.meta.start.tsc,
        json: options.json,
    };
    let packets = PacketWriter {
        scale: writer.scale,
        start: writer.start,
        json: writer.json,
    };
    let some = stamps::write_each(out, selection, &packets)?;
    if some && recording.functions.is_empty() && reader.heads().next().is_none() {
        return Ok(());
    }
    writer.titles(out)?;
    // A captured value has no time of its own: it is shown with the record before it, which may be of an earlier batch.
    let mut shown: HashMap<ThreadIx, bool> = HashMap::new();
    for batch in reader.batches() {
        let batch = batch.with_context(|| selection.reading())?;
        if !selection
            .threads
            .as_ref()
            .is_none_or(|t| t.contains(&batch.thread))
        {
            continue;
        }
        let thread = batch.thread;
        if batch.lost_before + batch.torn_before > 0 {
            writer.gap(out, thread, batch.lost_before, batch.torn_before)?;
        }
        let all = selection.window == Window::default();
        let shown = shown.entry(thread).or_insert(all);
        for (index, record) in (batch.first_index..).zip(&batch.records) {
            let record = *record;
            if record.value().is_none() {
                *shown = selection.window.contains(record.tsc);
            }
            if *shown {
                writer.event(
                    out,
                    Event {
                        thread,
                        index,
                        record,
                    },
                )?;
            }
        }
    }
    Ok(())
}
