//! `hopscope export`: a recording in the formats of other tools.
mod handled;
mod hdr;
mod output;
mod pcapng;
mod slices;
mod source;
mod write;

use crate::output::parse_mode;
use clap::ValueEnum;
use hopscope_analyze::parse_span_ns;
use hopscope_event::Ns;
use output::Output;
use source::Source;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct ExportArgs {
    /// Recording to read
    #[arg(default_value = "hopscope.hop")]
    file: PathBuf,
    /// What to write; docs/export.md says what opens it
    #[arg(long, value_enum)]
    format: Format,
    /// File to write; stdout without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With -o: permissions of the file, octal: 0640 lets the group read it, 0644 everybody
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode, requires = "output")]
    mode: u32,
    /// Recording with the generated packets, if not in this one (hopscope load packets -w FILE)
    #[arg(long, value_name = "FILE")]
    packets: Option<PathBuf>,
    /// What begins a run, as for report; default: suggested from the recorded calls
    #[arg(long, value_name = "FUNCTION")]
    root: Option<String>,
    /// Captured value that is a packet's sequence number, as for report
    #[arg(long, value_name = "CAPTURE")]
    packet_id: Option<String>,
    /// hgrm: the table of one tag alone, as the HdrHistogram plotter wants it
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// What a row is, for csv, json and parquet [default: calls; packets or slices where nothing else is recorded]
    #[arg(long, value_enum)]
    what: Option<What>,
    /// folded: numbers of calls instead of nanoseconds
    #[arg(long)]
    count: bool,
    /// hdr: length of an interval [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    interval: Option<Ns>,
    /// Only calls that began, and packets due, at this time after the start or later: 1.5s, 20ms
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    from: Option<Ns>,
    /// Only what began before this time after the start
    #[arg(long, value_name = "TIME", value_parser = parse_span_ns)]
    to: Option<Ns>,
    /// Only this thread (may be given several times)
    #[arg(long, value_name = "TID")]
    thread: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Folded stacks, for flame graphs
    Folded,
    /// Comma-separated values
    Csv,
    /// One object a line
    Json,
    /// Apache Parquet
    Parquet,
    /// Perfetto trace: open it at ui.perfetto.dev
    Perfetto,
    /// Generated or sliced packets for Wireshark, what is known of each as its comment
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
    /// Each call, with its caller and its times
    Calls,
    /// Each function, with percentiles
    Functions,
    /// Each generated packet, with the run that handled it
    Packets,
    /// Each run: a pass of the data path over a batch
    Runs,
    /// Each captured value
    Values,
    /// Each slice of each packet's way through the kernel
    Slices,
}

pub fn run(args: ExportArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let source = Source::open(&args)?;
    let output = Output::open(&args)?;
    let matters = write::write(&args, &source, output)?;
    if !matters.is_empty() {
        let all = hopscope_report::printable(&matters.join("; "));
        log::warn!("missing or doubtful in this recording: {all}");
    }
    Ok(ExitCode::SUCCESS)
}

impl ExportArgs {
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
