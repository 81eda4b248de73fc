//! `hopscope slice`: what can be asked, in tcpdump's letters where tcpdump has one.
use crate::logger::Verbosity;
use crate::output::parse_mode;
use crate::units::{parse_size, parse_time};
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use hopscope_read::slice_file::Format;
use hopscope_report::slice::{SlicePrinter, SliceView};
use hopscope_session::slice::To;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SliceArgs {
    #[command(subcommand)]
    pub control: Option<Control>,
    /// Follow packets that match this pcap-filter expression at their first hook
    #[arg(value_name = "EXPRESSION")]
    pub expression: Vec<String>,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
    /// Run this command, follow its packets as --pid, exit with its exit code
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "read")]
    pub command: Vec<OsString>,
}

/// What concerns hooks: of no use with a recording, and refused there.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub struct LiveArgs {
    /// Follow packets of this interface, by name or by number in -D; any: all
    #[arg(short, long, value_name = "IF", conflicts_with = "read")]
    pub interface: Option<String>,
    /// Follow packets of this network namespace: path, ip-netns name or PID
    #[arg(long, value_name = "NETNS", conflicts_with = "read")]
    pub netns: Option<String>,
    /// Follow packets of processes in this cgroup
    #[arg(long, value_name = "PATH", conflicts_with = "read")]
    pub cgroup: Option<PathBuf>,
    /// Slices to measure: preset (tx, rx, both, min, seven), or file of regions
    ///
    /// A file has one region `name = from .. to` per line.
    #[arg(
        long,
        value_name = "PRESET|FILE",
        default_value = "both",
        conflicts_with = "read"
    )]
    pub regions: String,
    /// List regions and the hook that this kernel offers for each point
    #[arg(short = 'L', long, conflicts_with = "read")]
    pub list: bool,
    /// List the network interfaces for -i
    #[arg(short = 'D', long, conflicts_with = "read")]
    pub list_interfaces: bool,
    /// BPF program type of the hooks
    #[arg(long, value_enum, default_value_t = Backend::Auto, conflicts_with = "read")]
    pub backend: Backend,
    /// Read time, or a perf event (context-switches, msr/tsc/ …), at each hook
    #[arg(
        long,
        value_name = "EVENT",
        default_value = "time",
        conflicts_with = "read"
    )]
    pub event: String,
    /// Packets that can be in flight at once (power of two)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        conflicts_with = "read"
    )]
    pub slots: u32,
    /// Do not calibrate the hook cost; times are then not corrected
    #[arg(long, conflicts_with = "read")]
    pub no_calibration: bool,
    /// Calibrate the hook cost again, ignoring the cache in /run/hopscope
    #[arg(long, conflicts_with_all = ["read", "no_calibration"])]
    pub recalibrate: bool,
    /// Attach hooks for one in N time windows, to reduce cost (1/16)
    #[arg(long, value_name = "1/N", value_parser = parse_duty, conflicts_with = "read")]
    pub duty: Option<u32>,
    /// Stop after the duration of -d, or after -c packets
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "read")]
    pub mode: Option<Mode>,
    /// Stop after this time (500ms, 5s, 2m; a bare number is in seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time, conflicts_with = "read")]
    pub duration: Option<Duration>,
    /// Capture this many bytes per packet [default: 262144 with -w -e -x -X -A, else 0]
    #[arg(short, long = "snapshot-length", value_name = "BYTES", value_parser = parse_size, conflicts_with = "read")]
    pub snaplen: Option<usize>,
    /// Create this file when all hooks are attached
    #[arg(long, value_name = "FILE", conflicts_with = "read")]
    pub ready_file: Option<PathBuf>,
    /// Drop privileges to this user after attach, before any file is created
    #[arg(short = 'Z', long, value_name = "USER", conflicts_with = "read")]
    pub relinquish_privileges: Option<String>,
}

/// Which packets, besides the expression.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Choosing")]
pub struct ChoiceArgs {
    /// Stop after this many packets
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Follow packets of this process and of its TCP connections (repeatable)
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Follow packets of processes with this name and of their TCP connections
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Show packets that took at least this time, first to last hook (200us)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub min_latency: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Read packets from a .hop recording or the pcapng of -w (-: stdin)
    #[arg(short, long, value_name = "FILE")]
    pub read: Option<PathBuf>,
    /// Write packets as pcapng with slices as comments (-: stdout)
    #[arg(short, long, value_name = "FILE.pcapng", conflicts_with = "output")]
    pub write: Option<PathBuf>,
    /// Write a recording for report, export, diff and -r
    #[arg(short, long, value_name = "FILE.hop")]
    pub output: Option<PathBuf>,
    /// With -w or -o: start a new file after this many million bytes
    #[arg(short = 'C', long, value_name = "MB", conflicts_with = "read",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub file_size: Option<u64>,
    /// With -C: limit the number of files and overwrite the oldest
    #[arg(short = 'W', long, value_name = "N", requires = "file_size",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub file_count: Option<u32>,
    /// File permissions, octal (0640: group may read, 0644: everyone)
    #[arg(long = "file-mode", id = "file_mode", value_name = "MODE", default_value = "0600", value_parser = parse_mode)]
    pub mode: u32,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct ShownArgs {
    /// Do not resolve addresses and ports (always the case)
    #[arg(short, action = ArgAction::Count)]
    pub numeric: u8,
    /// Line-buffer stdout (always the case)
    #[arg(short = 'l')]
    pub line_buffered: bool,
    /// With -w or -o: write each packet to the file at once
    #[arg(short = 'U', long, conflicts_with = "read")]
    pub packet_buffered: bool,
    /// Timestamp: none, -tt epoch, -ttt delta, -tttt date, -ttttt since first line
    #[arg(short = 't', action = ArgAction::Count)]
    pub time: u8,
    /// Print the link-level header
    #[arg(short = 'e')]
    pub link: bool,
    /// Print absolute instead of relative TCP sequence numbers
    #[arg(short = 'S')]
    pub absolute: bool,
    /// Print packet data in hex; -xx: with the link-level header
    #[arg(short = 'x', action = ArgAction::Count)]
    pub hex: u8,
    /// Print packet data in hex and ASCII; -XX: with the link-level header
    #[arg(short = 'X', action = ArgAction::Count)]
    pub hex_ascii: u8,
    /// Print packet data in ASCII; -AA: with the link-level header
    #[arg(short = 'A', action = ArgAction::Count)]
    pub ascii: u8,
    /// Print one JSON object per packet, then a summary
    #[arg(long, conflicts_with_all = ["link", "absolute", "hex", "hex_ascii", "ascii"])]
    pub json: bool,
}

impl FileArgs {
    /// What is written, if anything is.
    pub(super) fn written(&self) -> Option<(&Path, Format)> {
        let capture = self.write.as_deref().map(|path| (path, Format::Pcapng));
        capture.or(self.output.as_deref().map(|path| (path, Format::Hop)))
    }
}

impl ShownArgs {
    /// Where packets go that are not written to a file.
    pub(super) fn to(&self, verbosity: &Verbosity) -> To {
        if self.json {
            return To::Json;
        }
        To::Text(SlicePrinter::new(SliceView {
            table: verbosity.is_verbose(),
            quiet: verbosity.is_quiet(),
            link: self.link,
            absolute: self.absolute,
            time: self.time,
            hex: self.hex,
            hex_ascii: self.hex_ascii,
            ascii: self.ascii,
        }))
    }
}

/// NetSlice's configuration and statistics, of a `hopscope slice` that runs.
#[derive(Debug, Clone, Subcommand)]
pub enum Control {
    /// Show settings and counters of a running slice
    Stat {
        /// Process ID, if several run
        #[arg(long, value_name = "PID")]
        of: Option<u32>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Change settings of a running slice: enable=0, min-latency=200us …
    Set {
        /// Process ID, if several run
        #[arg(long, value_name = "PID")]
        of: Option<u32>,
        /// Settings to change
        #[arg(value_name = "NAME=VALUE", required = true)]
        settings: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The best that attaches on this kernel
    Auto,
    Fentry,
    Tracepoint,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    Duration,
    Count,
}

/// N of `1/N`.
fn parse_duty(text: &str) -> Result<u32, String> {
    let of = text.strip_prefix("1/").and_then(|n| n.parse().ok());
    match of {
        Some(of @ 1..=1024) => Ok(of),
        _ => Err("expected 1/N with N from 1 to 1024".into()),
    }
}
