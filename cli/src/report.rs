//! `hopscope report`: how long each call took, and each generated packet.
mod between;
mod html;
mod joined;
mod one_timeline;
mod packet_id;
mod packets;
mod runs;
mod slices;
mod tail;

pub(crate) use packet_id::{is_packet_number, packet_id};
pub(crate) use tail::batch_capture;

use crate::logger::Verbosity;
use crate::runs::RunSource;
use anyhow::Context;
use clap::ValueEnum;
use hopscope_analyze::tail::Threshold;
use hopscope_analyze::{Analysis, Group, Index, Options, Window, parse_span_ns};
use hopscope_event::{Ns, ThreadIx};
use hopscope_report::{Event, EventWriter, Layout, Names, PacketWriter, PathLimits, Recording};
use hopscope_report::{Scale, Sort, Streams, TimeUnit, View};
use hopscope_trace::{Damage, Tables, TraceReader};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct ReportArgs {
    /// Read this recording
    #[arg(default_value = "hopscope.hop")]
    file: PathBuf,
    /// Aggregate by this; percentiles are of total times (-v: also raw times)
    ///
    /// With -v also the error bound of sums.
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,
    /// Function that starts a run [default: inferred from the recorded calls]
    ///
    /// FUNCTION; loop:FUNCTION for the first function that this polling loop calls; loop to find the loop.
    #[arg(long, value_name = "FUNCTION")]
    root: Option<String>,
    /// Read generated packets from this file (hopscope load packets -w FILE)
    #[arg(long, value_name = "FILE")]
    packets: Option<PathBuf>,
    /// Captured value with a packet's sequence number [default: names with seq]
    ///
    /// NAME, or first=NAME,last=NAME,count=NAME of a queue; append :be for network byte order.
    #[arg(long, value_name = "CAPTURE")]
    packet_id: Option<String>,
    /// Measure packets without generated timestamps between these two functions
    ///
    /// Both must capture --packet-id. Default: the functions where most packets were first and last seen.
    #[arg(long, value_name = "FUNCTION,FUNCTION", conflicts_with_all = ["html", "events"])]
    between: Option<String>,
    /// Explain packets above a percentile (p99.9) or time (500us) by cause
    ///
    /// With --html the default is p99.9.
    #[arg(long, value_name = "pP|TIME", value_parser = tail::parse_tail,
          conflicts_with_all = ["by", "sort", "events"])]
    tail: Option<(Threshold, String)>,
    /// List at most N of the longest runs, slowest packets, flows or tree paths
    #[arg(short, long = "limit", value_name = "N")]
    number: Option<usize>,
    /// With --by tree: show at most N levels
    #[arg(long, value_name = "N", value_parser = parse_depth)]
    depth: Option<usize>,
    /// With --by tree: show only paths with at least this share of time, in per cent
    #[arg(long, value_name = "PERCENT", value_parser = parse_share, default_value = "0")]
    min_share: u32,
    /// Sort rows, largest first (names ascending) [default: total; flows: own cost]
    ///
    /// Sorts by corrected times if the probe cost is known.
    #[arg(long, value_enum)]
    sort: Option<SortBy>,
    /// Include calls and packets from this time after the start on (1.5s, 20ms, 300us)
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    from: Option<Ns>,
    /// Include only what began before this time after the start
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    to: Option<Ns>,
    /// Include only this thread (repeatable)
    #[arg(long, value_name = "TID")]
    thread: Vec<i32>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Print raw records instead of statistics, thread by thread
    #[arg(long, conflicts_with_all = ["by", "sort"])]
    events: bool,
    /// Unit of times: nanoseconds or TSC ticks
    #[arg(long, value_enum, default_value_t = Unit::Ns)]
    time: Unit,
    /// Write one offline HTML page: timeline, percentiles, flame graph
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["json", "events"])]
    html: Option<PathBuf>,
    /// With --html: show detail around this point only (1.5s, packet:17); below 2 MB
    #[arg(long, value_name = "TIME|PACKET", requires = "html", value_parser = html::parse_around)]
    around: Option<html::Around>,
    /// From -v, which every command has.
    #[arg(skip)]
    in_detail: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Function,
    Module,
    Thread,
    Process,
    Tree,
    /// Runs: passes of the data path, with their time by function
    Run,
    /// Generated packets with the run that processed each, slowest first
    Packet,
    /// Flows of generated packets
    Flow,
}

#[derive(Clone, Copy, ValueEnum)]
enum SortBy {
    Total,
    #[value(name = "self")]
    Own,
    Calls,
    P50,
    P99,
    Max,
    Name,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    Ns,
    Tsc,
}

pub fn run(mut args: ReportArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    args.in_detail = verbosity.is_verbose();
    let opened = crate::slice::open(&args.file)?;
    if slices::only(&opened.reader) {
        return slices::run(&args, &opened);
    }
    let reader = &opened.reader;
    let tables = reader.tables();
    let meta = &tables.meta;
    let window = Window::relative(meta.start.tsc, meta.tsc_frequency, args.from, args.to)?;
    let threads = chosen_threads(&args, tables)?;
    let damage = tables.damage.as_ref().map(damage_text);
    let filter = filter_text(&args);
    args.check()?;
    let packets = packets::of(&args, reader, window)?;
    let recording = Recording {
        meta,
        processes: &tables.processes,
        threads: &tables.threads,
        modules: &tables.modules,
        functions: &tables.functions,
        refusals: &tables.refusals,
        captures: &tables.captures,
        summary: tables.summary.as_ref(),
        damage: damage.as_deref(),
        filter: &filter,
        streams: Streams {
            entries: &tables.streams,
            packets: &packets,
        },
        off_cpu: tables.off_cpu.as_ref(),
        cost_check: tables.cost_check.as_ref(),
        thin: tables.thin.as_ref(),
        triggers: &tables.triggers,
        flight: tables.flight.as_ref(),
    };
    if let Some(to) = &args.html {
        html::write(&args, to, &opened, &recording, &threads, window)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    match args.events {
        true => events(&mut out, &args, reader, &recording, &threads, window)?,
        false if let Some(asked) = &args.tail => {
            let source = RunSource {
                reader,
                threads: &threads,
                window,
                root: args.root.as_deref(),
            };
            tail::write(&mut out, &args, &source, &recording, asked)?;
        }
        false if matches!(args.by, By::Packet) && one_timeline::is_of(&opened, &args) => {
            if let Some(entry) = &tables.slice {
                one_timeline::write(&mut out, &args, &opened, &recording, entry)?;
            }
        }
        false if matches!(args.by, By::Run | By::Packet | By::Flow) => {
            let source = RunSource {
                reader,
                threads: &threads,
                window,
                root: args.root.as_deref(),
            };
            match args.by {
                By::Run => runs::write(&mut out, &args, &source, &recording)?,
                _ => joined::write(&mut out, &args, &source, &recording)?,
            }
        }
        false => statistics(&mut out, &args, reader, &recording, &threads, window)?,
    }
    slices::write_beside(&mut out, &args, &opened)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl ReportArgs {
    /// Whatever would be ignored is refused.
    fn check(&self) -> anyhow::Result<()> {
        let by_tree = matches!(self.by, By::Tree);
        let of_runs = matches!(self.by, By::Run | By::Packet | By::Flow)
            || self.tail.is_some()
            || self.html.is_some();
        let of_packets = of_runs && !(matches!(self.by, By::Run) && self.html.is_none());
        let unused = [
            (
                matches!(self.by, By::Run | By::Packet) && self.sort.is_some(),
                "--sort orders functions, paths and flows; runs and packets come longest first",
            ),
            (
                !by_tree && (self.depth.is_some() || self.min_share > 0),
                "--depth and --min-share choose paths of --by tree",
            ),
            (
                !of_runs && self.root.is_some(),
                "--root goes with --by run, packet or flow, --tail and --html",
            ),
            (
                !of_packets && self.packet_id.is_some(),
                "--packet-id goes with --by packet or flow, --tail and --html",
            ),
            (
                !of_packets && self.between.is_some(),
                "--between goes with --by packet or flow, and --tail",
            ),
            (
                !of_runs && !by_tree && self.number.is_some(),
                "-n goes with --by run, packet, flow or tree, --tail and --html",
            ),
            (
                self.html.is_some() && self.sort.is_some(),
                "--sort does not go with --html: its tables are sorted in the browser",
            ),
            (
                self.html.is_some() && !matches!(self.by, By::Function),
                "--by does not go with --html, which shows all",
            ),
        ];
        match unused.into_iter().find(|(is, _)| *is) {
            Some((_, why)) => anyhow::bail!("{why}"),
            None => Ok(()),
        }
    }
}

pub(crate) fn damage_text(damage: &Damage) -> String {
    let Damage {
        at,
        bytes_lost,
        chunks_skipped,
        what,
    } = damage;
    format!(
        "at byte {at}: {what}; {chunks_skipped} chunks skipped, {bytes_lost} bytes at the end given up"
    )
}

/// `None` is all of them.
fn chosen_threads(
    args: &ReportArgs,
    tables: &Tables,
) -> anyhow::Result<Option<BTreeSet<ThreadIx>>> {
    if args.thread.is_empty() {
        return Ok(None);
    }
    let mut chosen = BTreeSet::new();
    for tid in &args.thread {
        let before = chosen.len();
        chosen.extend(
            tables
                .threads
                .iter()
                .filter(|t| t.tid == *tid)
                .map(|t| t.ix),
        );
        if chosen.len() == before && !tables.threads.iter().any(|t| t.tid == *tid) {
            let mut there: Vec<_> = tables.threads.iter().map(|t| t.tid.to_string()).collect();
            there.truncate(16);
            anyhow::bail!(
                "no thread {tid} in the recording; there are {}",
                there.join(", ")
            );
        }
    }
    Ok(Some(chosen))
}

fn filter_text(args: &ReportArgs) -> String {
    let mut parts = Vec::new();
    let ms = |ns: Ns| format!("{} ms", ns.0 as f64 / 1e6);
    match (args.from, args.to) {
        (None, None) => {}
        (from, to) => parts.push(format!(
            "what began {}{}{}",
            from.map_or(String::new(), |ns| format!("from {}", ms(ns))),
            if from.is_some() && to.is_some() {
                " "
            } else {
                ""
            },
            to.map_or(String::new(), |ns| format!("before {}", ms(ns))),
        )),
    }
    if !args.thread.is_empty() {
        let tids: Vec<_> = args.thread.iter().map(ToString::to_string).collect();
        parts.push(format!("only thread {}", tids.join(", ")));
    }
    parts.join("; ")
}

fn statistics(
    out: &mut impl Write,
    args: &ReportArgs,
    reader: &TraceReader,
    recording: &Recording<'_>,
    threads: &Option<BTreeSet<ThreadIx>>,
    window: Window,
) -> anyhow::Result<()> {
    let (group, layout) = match args.by {
        By::Function => (Group::Function, Layout::Rows(Group::Function)),
        By::Module => (Group::Module, Layout::Rows(Group::Module)),
        By::Thread => (Group::Thread, Layout::Rows(Group::Thread)),
        By::Process => (Group::Process, Layout::Rows(Group::Process)),
        // The others are no statistics of calls, and were written before.
        By::Tree | By::Run | By::Packet | By::Flow => (Group::Function, Layout::Tree),
    };
    let options = Options {
        group,
        window,
        probe_cost: recording.meta.probe_cost,
        whole: threads.is_none() && window == Window::default(),
    };
    let index = Index::new(recording.functions, recording.threads);
    let mut analysis = Analysis::new(index, options);
    analysis.off_cpu(crate::runs::off_cpu(reader)?);
    for batch in crate::runs::batches(reader) {
        let batch = batch.with_context(|| format!("reading {}", args.file.display()))?;
        if threads.as_ref().is_none_or(|t| t.contains(&batch.thread)) {
            analysis.feed(&batch.batch());
        }
    }
    let outcome = analysis.finish();
    let view = View {
        layout,
        sort: args.sort.map_or(Sort::Total, sort),
        time: unit(args.time),
        in_detail: args.in_detail,
        paths: PathLimits {
            depth: args.depth,
            min_share_ppm: args.min_share,
            number: args.number,
        },
    };
    match args.json {
        true => hopscope_report::write_json(out, recording, &outcome, view)?,
        false => hopscope_report::write_text(out, recording, &outcome, view)?,
    }
    Ok(())
}

fn events(
    out: &mut impl Write,
    args: &ReportArgs,
    reader: &TraceReader,
    recording: &Recording<'_>,
    threads: &Option<BTreeSet<ThreadIx>>,
    window: Window,
) -> anyhow::Result<()> {
    let names = Names::new(recording);
    let writer = EventWriter {
        names: &names,
        scale: Scale::new(unit(args.time), recording.meta.tsc_frequency),
        start: recording.meta.start.tsc,
        json: args.json,
    };
    let packets = PacketWriter {
        scale: writer.scale,
        start: writer.start,
        json: writer.json,
    };
    let some = packets::write_each(out, args, reader, window, &packets)?;
    if some && recording.functions.is_empty() && reader.heads().next().is_none() {
        return Ok(());
    }
    writer.titles(out)?;
    for batch in reader.batches() {
        let batch = batch.with_context(|| format!("reading {}", args.file.display()))?;
        if !threads.as_ref().is_none_or(|t| t.contains(&batch.thread)) {
            continue;
        }
        let thread = batch.thread;
        if batch.lost_before + batch.torn_before > 0 {
            writer.gap(out, thread, batch.lost_before, batch.torn_before)?;
        }
        // A captured value has no time of its own: it is shown with the record before it.
        let mut shown = false;
        for (index, record) in (batch.first_index..).zip(&batch.records) {
            let record = *record;
            if record.value().is_none() {
                shown = window.contains(record.tsc);
            }
            if shown {
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

fn parse_depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number of levels, 1 or more".to_owned()),
        Ok(depth) => Ok(depth),
    }
}

/// Parts in a million.
fn parse_share(text: &str) -> Result<u32, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok((percent * 1e4).round() as u32),
        _ => Err("a share between 0 and 100 per cent".to_owned()),
    }
}

fn sort(by: SortBy) -> Sort {
    match by {
        SortBy::Total => Sort::Total,
        SortBy::Own => Sort::SelfTime,
        SortBy::Calls => Sort::Calls,
        SortBy::P50 => Sort::P50,
        SortBy::P99 => Sort::P99,
        SortBy::Max => Sort::Max,
        SortBy::Name => Sort::Name,
    }
}

fn unit(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Ns => TimeUnit::Ns,
        Unit::Tsc => TimeUnit::Tsc,
    }
}
