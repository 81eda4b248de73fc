//! From the recording to each format.
use super::source::batch;
use super::{ExportArgs, Format, Output, Source, What};
use hopscope_analyze::trail::{Begun, End, Observer};
use hopscope_analyze::{Analysis, Group, Options, Outcome, Trail};
use hopscope_event::{FunctionId, StampFlags};
use hopscope_report::Names;
use hopscope_report::export::{CALLS, FUNCTIONS, PACKETS, Perfetto, Rows};
use hopscope_report::export::{CallRows, CsvRows, JsonRows, PacketRows, ParquetRows};
use hopscope_report::export::{Facts, FoldedValue, HdrLog, write_folded, write_functions};
use std::collections::HashMap;
use std::io::Write;

/// Gives, in words, what of the recording is missing or doubtful.
pub(super) fn write(
    args: &ExportArgs,
    source: &Source,
    mut out: Output,
) -> anyhow::Result<Vec<String>> {
    let what = args.what.unwrap_or(match source.is_of_packets_only() {
        true => What::Packets,
        false => What::Calls,
    });
    let schema = match what {
        What::Calls => &CALLS,
        What::Functions => &FUNCTIONS,
        What::Packets => &PACKETS,
    };
    let facts = match args.format {
        Format::Folded => folded(args, source, &mut out)?,
        Format::Csv => table(source, what, &mut CsvRows::new(&mut out, schema)?)?,
        Format::Json => table(source, what, &mut JsonRows::new(&mut out, schema))?,
        Format::Parquet => table(source, what, &mut ParquetRows::new(&mut out, schema)?)?,
        Format::Perfetto => perfetto(source, &mut out)?,
        Format::Pcapng => super::pcapng::write(source, &mut out)?,
        Format::Hdr => hdr(args, source, &mut out)?,
    };
    out.keep()?;
    let text = |f: &hopscope_report::export::Fact| format!("{}: {}", f.name, f.text());
    Ok(facts.matters().map(text).collect())
}

fn table(source: &Source, what: What, rows: &mut impl Rows) -> anyhow::Result<Facts> {
    let tables = source.reader.tables();
    let recording = source.recording(&[]);
    let names = Names::new(&recording);
    let timeline = source.timeline();
    let frequency = tables.meta.tsc_frequency;
    let mut facts = Facts::of(&recording);
    match what {
        What::Calls => {
            let mut calls = CallRows::new(&names, &timeline, frequency, rows);
            observe(source, &mut calls, |calls| Ok(calls.check()?), &mut facts)?;
            calls.finish(&facts)?;
        }
        What::Functions => {
            let outcome = outcome(source)?;
            facts.calls(&outcome.balance, &outcome.oddities);
            write_functions(rows, &names, &outcome, frequency, &facts)?;
        }
        What::Packets => {
            facts.packets(&source.packets()?);
            let mut packets = PacketRows::new(&tables.streams, &timeline, frequency, rows);
            for batch in source.stamps() {
                let batch = batch?;
                if batch.unwritten_before > 0 {
                    packets.gap(batch.stream, batch.unwritten_before)?;
                }
                let due = batch.stamps.iter();
                for stamp in due.filter(|s| source.window.contains(s.intended.0)) {
                    packets.packet(batch.stream, stamp)?;
                }
            }
            packets.finish(&facts)?;
        }
    }
    Ok(facts)
}

/// Leads every call past the observer, asking it after each batch whether all is well.
fn observe<O: Observer>(
    source: &Source,
    observer: &mut O,
    mut check: impl FnMut(&mut O) -> anyhow::Result<()>,
    facts: &mut Facts,
) -> anyhow::Result<()> {
    let cost = source.reader.tables().meta.probe_cost;
    let mut calls = Trail::new(source.index(), source.window, cost);
    for owned in source.batches() {
        calls.feed(&batch(&owned?), observer);
        check(observer)?;
    }
    let totals = calls.finish(observer);
    facts.calls(&totals.balance, &totals.oddities);
    check(observer)
}

fn outcome(source: &Source) -> anyhow::Result<Outcome> {
    let options = Options {
        group: Group::Function,
        window: source.window,
        probe_cost: source.reader.tables().meta.probe_cost,
    };
    let mut analysis = Analysis::new(source.index(), options);
    for owned in source.batches() {
        analysis.feed(&batch(&owned?));
    }
    Ok(analysis.finish())
}

fn folded(args: &ExportArgs, source: &Source, out: &mut Output) -> anyhow::Result<Facts> {
    let recording = source.recording(&[]);
    let outcome = outcome(source)?;
    let mut facts = Facts::of(&recording);
    facts.calls(&outcome.balance, &outcome.oddities);
    facts.doubt("calls_without_path", outcome.tree.beyond());
    let value = match args.count {
        true => FoldedValue::Calls,
        false => FoldedValue::OwnNs,
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

/// Calls, then packets: the reader of a trace sorts by time.
fn perfetto(source: &Source, out: &mut Output) -> anyhow::Result<Facts> {
    let packets = source.packets()?;
    let recording = source.recording(&packets);
    let (names, timeline) = (Names::new(&recording), source.timeline());
    let mut facts = Facts::of(&recording);
    let mut trace = Perfetto::new(out, recording, &names, &timeline)?;
    observe(source, &mut trace, |trace| Ok(trace.check()?), &mut facts)?;
    for batch in source.stamps() {
        let batch = batch?;
        let due = batch.stamps.iter();
        for stamp in due.filter(|s| source.window.contains(s.intended.0)) {
            trace.packet(batch.stream, stamp)?;
        }
    }
    facts.packets(&packets);
    trace.facts(&mut facts);
    trace.finish(&facts)?;
    Ok(facts)
}

/// Own times of calls, corrected where the probe cost is known, and latencies of packets.
struct OwnTimes<'a, W: Write> {
    names: &'a Names<'a>,
    tags: HashMap<FunctionId, String>,
    log: HdrLog<W>,
    failed: Option<std::io::Error>,
}

impl<W: Write> Observer for OwnTimes<'_, W> {
    fn ended(&mut self, call: &Begun, end: &End) {
        let End::Exit(times) = end else {
            return;
        };
        // A call whose clock ran backwards has no time; the facts count it.
        if times.total < 0 || self.failed.is_some() {
            return;
        }
        let name = || self.names.qualified(call.function);
        let tag = self.tags.entry(call.function).or_insert_with(name);
        let own = times.own_corrected.unwrap_or(times.own);
        self.failed = self.log.add(tag, call.entry, own).err();
    }
}

fn hdr(args: &ExportArgs, source: &Source, out: &mut Output) -> anyhow::Result<Facts> {
    let packets = source.packets()?;
    let recording = source.recording(&packets);
    let (names, meta) = (Names::new(&recording), recording.meta);
    let mut facts = Facts::of(&recording);
    let log = HdrLog::new(
        out,
        meta.start.tsc,
        meta.start.realtime_ns,
        meta.tsc_frequency,
        args.interval,
    )?;
    let mut own = OwnTimes {
        names: &names,
        tags: HashMap::new(),
        log,
        failed: None,
    };
    observe(
        source,
        &mut own,
        |own| Ok(own.failed.take().map_or(Ok(()), Err)?),
        &mut facts,
    )?;
    let mut log = own.log;
    log.settle()?;
    for batch in source.stamps() {
        let batch = batch?;
        let tag = format!("packets_of_stream_{}", batch.stream.0);
        for stamp in &batch.stamps {
            let counts = source.window.contains(stamp.intended.0)
                && !stamp.flags.contains(StampFlags::DUPLICATE);
            if let (true, Some(latency)) = (counts, stamp.latency_ticks()) {
                log.add(&tag, stamp.intended, latency)?;
            }
        }
    }
    facts.packets(&packets);
    log.finish(&mut facts)?;
    Ok(facts)
}
