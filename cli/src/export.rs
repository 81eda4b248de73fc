//! `hopscope export`: a recording in the formats of other tools.
mod output;

use crate::output::parse_mode;
use clap::ValueEnum;
use hopscope_analyze::parse_span_ns;
use hopscope_event::Ns;
use hopscope_read::export::{self, ExportOptions};
use hopscope_read::{Part, Selection};
use output::Output;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct ExportArgs {
    /// Read this recording
    #[arg(default_value = "hopscope.hop")]
    file: PathBuf,
    /// Output format; docs/export.md lists the tools that read it
    #[arg(long, value_enum)]
    format: Format,
    /// Write to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With -o: file permissions, octal (0640: group may read, 0644: everyone)
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode, requires = "output")]
    mode: u32,
    /// Read generated packets from this file (hopscope load packets -w FILE)
    #[arg(long, value_name = "FILE")]
    packets: Option<PathBuf>,
    /// Function that starts a run, as in report [default: inferred from the calls]
    #[arg(long, value_name = "FUNCTION")]
    root: Option<String>,
    /// Captured value with a packet's sequence number, as in report
    #[arg(long, value_name = "CAPTURE")]
    packet_id: Option<String>,
    /// hgrm: write the table of one tag only, as the HdrHistogram plotter requires
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// csv, json, parquet: rows to write [default: calls, else packets or slices]
    #[arg(long, value_enum)]
    what: Option<What>,
    /// folded: write call counts instead of nanoseconds
    #[arg(long)]
    count: bool,
    /// hdr: length of an interval [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    interval: Option<Ns>,
    /// Include calls and packets from this time after the start on (1.5s, 20ms)
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    from: Option<Ns>,
    /// Include only what began before this time after the start
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    to: Option<Ns>,
    /// Include only this thread (repeatable)
    #[arg(long, value_name = "TID")]
    thread: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Folded stacks for flame graphs
    Folded,
    /// Comma-separated values
    Csv,
    /// Print one JSON object per line
    Json,
    /// Apache Parquet
    Parquet,
    /// Perfetto trace: open it at ui.perfetto.dev
    Perfetto,
    /// Packets for Wireshark, with measurements as packet comments
    Pcapng,
    /// HdrHistogram interval log: latencies over time
    Hdr,
    /// HdrHistogram percentile tables: the distribution of the whole recording
    Hgrm,
}

impl Format {
    fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Perfetto | Format::Pcapng)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// One row per call, with its caller and times
    Calls,
    /// One row per function, with percentiles
    Functions,
    /// One row per generated packet, with the run that processed it
    Packets,
    /// One row per run: one pass of the data path over a batch
    Runs,
    /// One row per captured value
    Values,
    /// One row per slice of each packet
    Slices,
}

pub fn run(args: ExportArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let opened = hopscope_read::open(&args.file)?;
    let part = Part {
        from: args.from,
        to: args.to,
        tids: args.thread.clone(),
        in_words: filter_text(&args),
    };
    let selection = Selection::new(&args.file, opened, part)?;
    let mut output = Output::open(&args)?;
    let matters = export::write(&args.options(), &selection, &mut output)?;
    output.keep()?;
    if !matters.is_empty() {
        let all = hopscope_report::printable(&matters.join("; "));
        log::warn!("missing or doubtful in this recording: {all}");
    }
    Ok(ExitCode::SUCCESS)
}

fn filter_text(args: &ExportArgs) -> String {
    let ms = |ns: Ns| format!("{} ms", ns.0 as f64 / 1e6);
    let mut parts = Vec::new();
    parts.extend(args.from.map(|ns| format!("what began from {}", ms(ns))));
    parts.extend(args.to.map(|ns| format!("what began before {}", ms(ns))));
    if !args.thread.is_empty() {
        let tids: Vec<_> = args.thread.iter().map(ToString::to_string).collect();
        parts.push(format!("only thread {}", tids.join(", ")));
    }
    parts.join("; ")
}

impl ExportArgs {
    fn options(&self) -> ExportOptions {
        ExportOptions {
            file: self.file.clone(),
            format: self.format.into(),
            what: self.what.map(What::into),
            packets: self.packets.clone(),
            root: self.root.clone(),
            packet_id: self.packet_id.clone(),
            tag: self.tag.clone(),
            count: self.count,
            interval: self.interval,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let name = self.format.to_possible_value();
        let name = name.as_ref().map_or("", |v| v.get_name());
        let rows = matches!(self.format, Format::Csv | Format::Json | Format::Parquet);
        if self.what.is_some() && !rows {
            anyhow::bail!("--what chooses rows of csv, json and parquet; {name} has none");
        }
        if self.tag.is_some() && self.format != Format::Hgrm {
            anyhow::bail!("--tag goes with --format hgrm, not with {name}");
        }
        if self.count && self.format != Format::Folded {
            anyhow::bail!("--count goes with --format folded, not with {name}");
        }
        if self.interval.is_some() && self.format != Format::Hdr {
            anyhow::bail!("--interval goes with --format hdr, not with {name}");
        }
        let of_runs = match self.format {
            Format::Perfetto | Format::Pcapng => true,
            _ => matches!(self.what, None | Some(What::Runs | What::Packets)) && rows,
        };
        if self.root.is_some() && !of_runs {
            anyhow::bail!(
                "--root goes with --what runs or packets, and with --format perfetto or pcapng"
            );
        }
        if self.packet_id.is_some() && !of_runs {
            anyhow::bail!(
                "--packet-id goes with --what runs or packets, and with --format perfetto or pcapng"
            );
        }
        let of_packets = of_runs || matches!(self.format, Format::Hdr | Format::Hgrm);
        if self.packets.is_some() && !of_packets {
            anyhow::bail!(
                "--packets goes with --what runs or packets, and with --format perfetto, pcapng, hdr or hgrm"
            );
        }
        Ok(())
    }
}

impl From<Format> for export::Format {
    fn from(format: Format) -> export::Format {
        match format {
            Format::Folded => export::Format::Folded,
            Format::Csv => export::Format::Csv,
            Format::Json => export::Format::Json,
            Format::Parquet => export::Format::Parquet,
            Format::Perfetto => export::Format::Perfetto,
            Format::Pcapng => export::Format::Pcapng,
            Format::Hdr => export::Format::Hdr,
            Format::Hgrm => export::Format::Hgrm,
        }
    }
}

impl From<What> for export::What {
    fn from(what: What) -> export::What {
        match what {
            What::Calls => export::What::Calls,
            What::Functions => export::What::Functions,
            What::Packets => export::What::Packets,
            What::Runs => export::What::Runs,
            What::Values => export::What::Values,
            What::Slices => export::What::Slices,
        }
    }
}
