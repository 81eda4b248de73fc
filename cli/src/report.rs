//! `hopscope report`: how long each call took, and each generated packet.
mod parse;
mod slices;

use crate::logger::Verbosity;
use crate::output::{self, OWNER_ONLY};
use anyhow::Context;
use clap::ValueEnum;
use hopscope_analyze::tail::Threshold;
use hopscope_analyze::{Group, parse_span_ns};
use hopscope_event::Ns;
use hopscope_read::one_timeline::packets as one_timeline;
use hopscope_read::{Around, Part, ReportOptions, Selection};
use hopscope_read::{joined, late, longest, page, statistics};
use hopscope_report::{Layout, PathLimits, Recording, Sort, Streams, TimeUnit};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
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
    #[arg(long, value_name = "pP|TIME", value_parser = parse::tail,
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
    #[arg(long, value_name = "TIME|PACKET", requires = "html", value_parser = parse::around)]
    around: Option<Around>,
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
    let opened = hopscope_read::open(&args.file)?;
    if slices::only(&opened.reader) {
        return slices::run(&args, opened);
    }
    let part = Part {
        tids: args.thread.clone(),
        ..args.part_of_time()
    };
    let selection = Selection::new(&args.file, opened, part)?;
    args.check()?;
    let options = args.options();
    let packets = selection.packets()?;
    let tables = selection.tables();
    let recording = selection.recording(Streams {
        entries: &tables.streams,
        packets: &packets,
    });
    if let Some(to) = &args.html {
        html(to, &options, &selection, &recording)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    if args.events {
        statistics::write_events(&mut out, &options, &selection, &recording)?;
    } else if let Some(threshold) = &options.tail {
        late::write(&mut out, &options, &selection, &recording, threshold)?;
    } else {
        match args.by {
            By::Packet if one_timeline::is_of(&selection, &options) => {
                if let Some(entry) = &tables.slice {
                    one_timeline::write(&mut out, &options, &selection, &recording, entry)?;
                }
            }
            By::Run => longest::write(&mut out, &options, &selection, &recording)?,
            By::Packet | By::Flow => joined::write(&mut out, &options, &selection, &recording)?,
            _ => statistics(&mut out, &args, &options, &selection, &recording)?,
        }
    }
    slices::write_beside(&mut out, &args, &selection)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn html(
    to: &Path,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> anyhow::Result<()> {
    let writing = || format!("writing {}", to.display());
    let (created, place) = output::create(to, OWNER_ONLY)?;
    let mut out = BufWriter::with_capacity(1 << 16, created);
    page::write(&mut out, options, selection, recording).map_err(|error| match error {
        hopscope_read::Error::Io(error) => anyhow::Error::from(error).context(writing()),
        other => other.into(),
    })?;
    out.flush().with_context(writing)?;
    let bytes = out.get_ref().metadata().with_context(writing)?.len();
    place.put()?;
    crate::status::say!(
        "{} ({:.1} MB); open it in a browser",
        to.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

impl ReportArgs {
    /// All threads.
    fn part_of_time(&self) -> Part {
        Part {
            from: self.from,
            to: self.to,
            tids: Vec::new(),
            in_words: filter_text(self),
        }
    }

    fn options(&self) -> ReportOptions {
        ReportOptions {
            file: self.file.clone(),
            root: self.root.clone(),
            packets: self.packets.clone(),
            packet_id: self.packet_id.clone(),
            between: self.between.clone(),
            tail: self.tail.clone(),
            number: self.number,
            sort: self.sort.map(sort),
            time: unit(self.time),
            json: self.json,
            by_flow: matches!(self.by, By::Flow),
            around: self.around,
        }
    }

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
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
) -> anyhow::Result<()> {
    let (group, layout) = match args.by {
        By::Function => (Group::Function, Layout::Rows(Group::Function)),
        By::Module => (Group::Module, Layout::Rows(Group::Module)),
        By::Thread => (Group::Thread, Layout::Rows(Group::Thread)),
        By::Process => (Group::Process, Layout::Rows(Group::Process)),
        // The others are no statistics of calls, and were written before.
        By::Tree | By::Run | By::Packet | By::Flow => (Group::Function, Layout::Tree),
    };
    let rows = statistics::Rows {
        group,
        layout,
        paths: PathLimits {
            depth: args.depth,
            min_share_ppm: args.min_share,
            number: args.number,
        },
        in_detail: args.in_detail,
    };
    Ok(statistics::write(out, options, selection, recording, rows)?)
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
