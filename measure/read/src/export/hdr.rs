//! Own times of calls and latencies of packets, for HdrHistogram's tools.
use super::ExportOptions;
use super::source::Source;
use crate::error::{Result, refuse};
use hopscope_analyze::trail::{Begun, End, Observer};
use hopscope_event::{FunctionId, Ns, StampFlags, Tsc};
use hopscope_report::Names;
use hopscope_report::export::{Facts, HdrLog, HdrTables};
use std::collections::HashMap;
use std::io::{self, Write};

/// Takes times: tag, when, ticks.
trait Times {
    fn add(&mut self, tag: &str, at: Tsc, ticks: i64) -> io::Result<()>;
}

impl<W: io::Write> Times for HdrLog<W> {
    fn add(&mut self, tag: &str, at: Tsc, ticks: i64) -> io::Result<()> {
        HdrLog::add(self, tag, at, ticks)
    }
}

impl Times for HdrTables {
    fn add(&mut self, tag: &str, _: Tsc, ticks: i64) -> io::Result<()> {
        HdrTables::add(self, tag, ticks);
        Ok(())
    }
}

/// Own times of calls, corrected where the probe cost is known.
struct OwnTimes<'a, T> {
    names: &'a Names<'a>,
    tags: HashMap<FunctionId, String>,
    times: &'a mut T,
    failed: Option<io::Error>,
}

impl<T: Times> Observer for OwnTimes<'_, T> {
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
        self.failed = self.times.add(tag, call.entry, own).err();
    }
}

fn calls(
    source: &Source<'_>,
    names: &Names<'_>,
    times: &mut impl Times,
    facts: &mut Facts,
) -> Result<()> {
    let mut own = OwnTimes {
        names,
        tags: HashMap::new(),
        times,
        failed: None,
    };
    let check = |own: &mut OwnTimes<'_, _>| Ok(own.failed.take().map_or(Ok(()), Err)?);
    source.observe(&mut own, check, facts)
}

fn packets(source: &Source<'_>, times: &mut impl Times) -> Result<()> {
    for batch in source.stamps() {
        let batch = batch?;
        let tag = format!("packets_of_stream_{}", batch.stream.0);
        for stamp in &batch.stamps {
            let counts = source.selection.window.contains(stamp.intended.0)
                && !stamp.flags.contains(StampFlags::DUPLICATE);
            if let (true, Some(latency)) = (counts, stamp.latency_ticks()) {
                times.add(&tag, stamp.intended, latency)?;
            }
        }
    }
    Ok(())
}

/// Over time.
pub(super) fn log(
    options: &ExportOptions,
    source: &Source<'_>,
    out: &mut impl Write,
) -> Result<Facts> {
    let streams = source.packets()?;
    let recording = source.recording(&streams);
    let (names, meta) = (Names::new(&recording), recording.meta);
    let mut facts = Facts::of(&recording);
    let mut log = HdrLog::new(
        out,
        meta.start.tsc,
        meta.start.realtime_ns,
        meta.tsc_frequency,
        options.interval.unwrap_or(Ns(1_000_000_000)),
    )?;
    calls(source, &names, &mut log, &mut facts)?;
    log.settle()?;
    packets(source, &mut log)?;
    facts.packets(&streams);
    log.finish(&mut facts)?;
    Ok(facts)
}

/// Over the whole recording.
pub(super) fn tables(
    options: &ExportOptions,
    source: &Source<'_>,
    out: &mut impl Write,
) -> Result<Facts> {
    let streams = source.packets()?;
    let recording = source.recording(&streams);
    let names = Names::new(&recording);
    let mut facts = Facts::of(&recording);
    let mut tables = HdrTables::new(recording.meta.tsc_frequency);
    calls(source, &names, &mut tables, &mut facts)?;
    packets(source, &mut tables)?;
    facts.packets(&streams);
    if let Some(tag) = &options.tag
        && !tables.tags().any(|there| there == *tag)
    {
        let there: Vec<_> = tables.tags().take(8).collect();
        refuse!(
            "no tag {tag:?} in the recording; there are {}",
            there.join(", ")
        );
    }
    tables.write(out, options.tag.as_deref(), &mut facts)?;
    Ok(facts)
}
