//! From the recording to each format.
use super::handled::Handled;
use super::hdr;
use super::slices;
use super::source::Source;
use super::{ExportOptions, Format, What};
use crate::error::{Result, in_one_line, require};
use crate::packet_id::values;
use crate::selection::Selection;
use hopscope_analyze::{Group, Runs};
use hopscope_report::Names;
use hopscope_report::export::{CallRows, CsvRows, JsonRows, PacketRows, ParquetRows, RunRows};
use hopscope_report::export::{Facts, FoldedValue, ValueRows};
use hopscope_report::export::{PACKETS, Perfetto, RUNS, Rows, SLICES, SLICES_OF_EVENTS, VALUES};
use hopscope_report::export::{calls_schema, functions_schema, write_folded, write_functions};
use std::io::Write;

/// Gives, in words, what of the recording is missing or doubtful.
///
/// # Errors
/// What cannot be read or written, and what is not in the recording.
pub fn write<W: Write + Send>(
    options: &ExportOptions,
    selection: &Selection,
    out: &mut W,
) -> Result<Vec<String>> {
    let source = &Source::open(options, selection)?;
    let what = options.what.unwrap_or(match source.is_of_packets_only() {
        true => What::Packets,
        false if source.is_of_slices_only() => What::Slices,
        false => What::Calls,
    });
    let counters = &selection.tables().counters;
    let (calls, functions);
    let schema = match what {
        What::Calls => {
            calls = calls_schema(counters);
            &calls
        }
        What::Functions => {
            functions = functions_schema(counters);
            &functions
        }
        What::Packets => &PACKETS,
        What::Runs => &RUNS,
        What::Values => &VALUES,
        What::Slices if slices::are_of_events(source) => &SLICES_OF_EVENTS,
        What::Slices => &SLICES,
    };
    refuse_nothing(options, source, what)?;
    require!(
        what != What::Values || values(&source.selection.tables().captures).next().is_some(),
        "the recording holds no captured values (record with -f 'FUNCTION(ARGUMENT)')"
    );
    let facts = match options.format {
        Format::Folded => folded(options, source, &mut *out)?,
        Format::Csv => table(source, what, &mut CsvRows::new(&mut *out, schema)?)?,
        Format::Json => table(source, what, &mut JsonRows::new(&mut *out, schema))?,
        Format::Parquet => table(source, what, &mut ParquetRows::new(&mut *out, schema)?)?,
        Format::Perfetto => perfetto(source, &mut *out)?,
        Format::Pcapng if source.is_of_slices_only() => slices::pcapng(source, &mut *out)?,
        Format::Pcapng => super::pcapng::write(source, &mut *out)?,
        Format::Hdr => hdr::log(options, source, &mut *out)?,
        Format::Hgrm => hdr::tables(options, source, &mut *out)?,
    };
    let text = |f: &hopscope_report::export::Fact| format!("{}: {}", f.name, f.text());
    Ok(facts.matters().map(text).collect())
}

const PACKETS_OF_LOAD: &str = "generated packets (hopscope load packets)";
const BOTH_PACKETS: &str =
    "generated packets (hopscope load packets), and no slices (hopscope slice -o)";

/// What the recording does not have comes out empty, which looks like a program that did nothing.
fn refuse_nothing(options: &ExportOptions, source: &Source<'_>, what: What) -> Result<()> {
    let (calls, packets) = (source.records_calls(), source.records_packets());
    let slices = source.selection.tables().slice.is_some();
    let (wanted, is_there) = match (options.format, what) {
        (Format::Perfetto, _) => return Ok(()),
        (Format::Pcapng, _) => (BOTH_PACKETS, packets || slices),
        (Format::Hdr | Format::Hgrm, _) => (
            "calls and no generated packets (hopscope load packets)",
            calls || packets,
        ),
        (Format::Folded, _) | (_, What::Calls | What::Functions | What::Runs) => ("calls", calls),
        (_, What::Packets) => (PACKETS_OF_LOAD, packets),
        // They say so themselves.
        (_, What::Slices | What::Values) => return Ok(()),
    };
    let has = [
        (calls, "calls"),
        (packets, "generated packets (--what packets)"),
        (
            slices,
            "slices of the kernel's path (--what slices, --format perfetto or pcapng)",
        ),
    ];
    let has: Vec<&str> = has
        .into_iter()
        .filter_map(|(is, what)| is.then_some(what))
        .collect();
    let has = if has.is_empty() {
        "nothing".to_owned()
    } else {
        has.join(", ")
    };
    require!(is_there, "the recording holds no {wanted}; it holds {has}");
    Ok(())
}

fn table(source: &Source<'_>, what: What, rows: &mut impl Rows) -> Result<Facts> {
    let recording = source.recording(&[]);
    let names = Names::new(&recording);
    let timeline = source.selection.timeline();
    let mut facts = Facts::of(&recording);
    match what {
        What::Calls => {
            let calls = CallRows::new(&names, &timeline, rows);
            let mut calls = calls.with_counters(recording.counters);
            source.observe(&mut calls, |calls| Ok(calls.check()?), &mut facts)?;
            calls.finish(&facts)?;
        }
        What::Functions => {
            let outcome = source.selection.analysis(Group::Function, None)?;
            facts.calls(&outcome.balance, &outcome.oddities);
            let frequency = recording.meta.tsc_frequency;
            let counters = recording.counters;
            write_functions(rows, &names, &outcome, frequency, counters, &facts)?;
        }
        What::Packets => {
            facts.packets(&source.packets()?);
            let handled = Handled::find(source, &mut facts)?;
            let streams = &source.stamps_reader().tables().streams;
            let mut packets = PacketRows::new(streams, &timeline, rows);
            for batch in source.stamps() {
                let batch = batch?;
                if batch.unwritten_before > 0 {
                    packets.gap(batch.stream, batch.unwritten_before)?;
                }
                let due = batch.stamps.iter();
                for stamp in due.filter(|s| source.selection.window.contains(s.intended.0)) {
                    let handled = handled.as_ref().and_then(|h| h.of(batch.stream, stamp));
                    packets.packet(batch.stream, stamp, handled)?;
                }
            }
            packets.finish(&facts)?;
        }
        What::Runs => {
            let handled = Handled::find(source, &mut facts)?;
            let mut rows = RunRows::new(&names, &timeline, rows);
            let runs = source.runs().each(|run, runs| {
                let packets = handled.as_ref().map(|h| h.packets_of(run.ix).len() as u64);
                rows.run(&run, packets)?;
                runs.recycle(run);
                Ok(())
            })?;
            runs_facts(&mut facts, &names, &runs);
            rows.finish(&facts)?;
        }
        What::Slices => slices::table(source, rows, &mut facts)?,
        What::Values => {
            let mut values = ValueRows::new(&names, &timeline, rows);
            source.observe(&mut values, |values| Ok(values.check()?), &mut facts)?;
            values.finish(&facts)?;
        }
    }
    Ok(facts)
}

/// What a run is, and what became of runs.
fn runs_facts(facts: &mut Facts, names: &Names<'_>, runs: &Runs) {
    let (root, counts) = (runs.root(), runs.counts());
    facts.put("run_begins_with", names.qualified(root.choice.function()));
    if let Some(because) = &root.suggested_because {
        facts.put("run_begins_there_because", because.as_str());
    }
    facts.put("runs", counts.runs);
    for (name, count) in [
        ("runs_cut_by_loss", counts.cut),
        ("runs_left_without_exit", counts.left),
        ("runs_open_at_end", counts.open_at_end),
        ("runs_beyond_what_is_kept", counts.overfull),
        ("runs_out_of_order", counts.out_of_order),
    ] {
        facts.doubt(name, count);
    }
}

fn folded(options: &ExportOptions, source: &Source<'_>, out: &mut impl Write) -> Result<Facts> {
    let recording = source.recording(&[]);
    let outcome = source.selection.analysis(Group::Function, None)?;
    let mut facts = Facts::of(&recording);
    facts.calls(&outcome.balance, &outcome.oddities);
    facts.doubt("calls_without_path", outcome.tree.beyond());
    let value = if options.count {
        FoldedValue::Calls
    } else {
        FoldedValue::OwnNs
    };
    let frequency = recording.meta.tsc_frequency;
    write_folded(
        out,
        &Names::new(&recording),
        &outcome,
        frequency,
        value,
        &facts,
    )?;
    Ok(facts)
}

/// Calls, then packets, then runs: the reader of a trace sorts by time.
fn perfetto(source: &Source<'_>, out: &mut impl Write) -> Result<Facts> {
    let packets = source.packets()?;
    let recording = source.recording(&packets);
    let (names, timeline) = (Names::new(&recording), source.selection.timeline());
    let mut facts = Facts::of(&recording);
    let mut trace = Perfetto::new(out, recording, &names, &timeline)?;
    slices::join(source, &mut trace, &mut facts)?;
    source.observe(&mut trace, |trace| Ok(trace.check()?), &mut facts)?;
    for batch in source.stamps() {
        let batch = batch?;
        let due = batch.stamps.iter();
        for stamp in due.filter(|s| source.selection.window.contains(s.intended.0)) {
            trace.packet(batch.stream, stamp)?;
        }
    }
    let handled = Handled::find(source, &mut facts)?;
    if source.selection.has_calls() {
        let runs = source.runs().each(|run, runs| {
            let packets = handled.as_ref().map(|h| h.packets_of(run.ix));
            trace.run(&run, &packets.unwrap_or_default())?;
            runs.recycle(run);
            Ok(())
        });
        match runs {
            Ok(runs) => runs_facts(&mut facts, &names, &runs),
            Err(error) if source.root_is_named() => return Err(error),
            // Calls and packets are shown all the same.
            Err(error) => facts.put("runs_not_shown", in_one_line(&error)),
        }
    }
    slices::perfetto(source, &mut trace, &mut facts)?;
    facts.packets(&packets);
    trace.facts(&mut facts);
    trace.finish(&facts)?;
    Ok(facts)
}
