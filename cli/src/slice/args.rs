//! `hopscope slice`: what can be asked, in tcpdump's letters where tcpdump has one.
use crate::output::parse_mode;
use crate::units::{parse_size, parse_time};
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SliceArgs {
    #[command(subcommand)]
    pub control: Option<Control>,
    /// Which packets: a pcap-filter expression, asked once at a packet's first hook
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
    /// Run this, follow its packets as with --pid, and stop when it ends; the exit code is its own
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "read")]
    pub command: Vec<OsString>,
}

/// What concerns hooks: of no use with a recording, and refused there.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub struct LiveArgs {
    /// Only packets of this network interface, by its name or its number in -D; any: all
    #[arg(short, long, value_name = "IF", conflicts_with = "read")]
    pub interface: Option<String>,
    /// Only packets of this network namespace: a path, a name of ip netns, or a process
    #[arg(long, value_name = "NETNS", conflicts_with = "read")]
    pub netns: Option<String>,
    /// Only packets of processes in this control group
    #[arg(long, value_name = "PATH", conflicts_with = "read")]
    pub cgroup: Option<PathBuf>,
    /// Which slices: a preset (tx, rx, both, min, seven) or a file of lines `name = from .. to`
    #[arg(
        long,
        value_name = "PRESET|FILE",
        default_value = "both",
        conflicts_with = "read"
    )]
    pub regions: String,
    /// List regions, and which hook this kernel offers for each of their points
    #[arg(short = 'L', long, conflicts_with = "read")]
    pub list: bool,
    /// List the network interfaces that -i takes
    #[arg(short = 'D', long, conflicts_with = "read")]
    pub list_interfaces: bool,
    /// How stamps are taken
    #[arg(long, value_enum, default_value_t = Backend::Auto, conflicts_with = "read")]
    pub backend: Backend,
    /// What a stamp reads: time, or an event of perf (context-switches, msr/tsc/ …)
    #[arg(
        long,
        value_name = "EVENT",
        default_value = "time",
        conflicts_with = "read"
    )]
    pub event: String,
    /// Packets under way that can be followed at once (a power of two)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        conflicts_with = "read"
    )]
    pub slots: u32,
    /// Do not measure first what stamps cost; nothing is then taken out of any time
    #[arg(long, conflicts_with = "read")]
    pub no_calibration: bool,
    /// Measure what stamps cost although it was measured since the machine started (in /run/hopscope)
    #[arg(long, conflicts_with_all = ["read", "no_calibration"])]
    pub recalibrate: bool,
    /// Hooks are attached for one of so many windows only, to cost less: 1/16
    #[arg(long, value_name = "1/N", value_parser = parse_duty, conflicts_with = "read")]
    pub duty: Option<u32>,
    /// Stop when -d is over, or when -c packets are there
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "read")]
    pub mode: Option<Mode>,
    /// Stop after this time (500ms, 5s, 2m; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time, conflicts_with = "read")]
    pub duration: Option<Duration>,
    /// Bytes of each packet that are kept [default: 262144 with -w, -e, -x, -X, -A, else none]
    #[arg(short, long = "snapshot-length", value_name = "BYTES", value_parser = parse_size, conflicts_with = "read")]
    pub snaplen: Option<usize>,
    /// Create this file once every hook is attached
    #[arg(long, value_name = "FILE", conflicts_with = "read")]
    pub ready_file: Option<PathBuf>,
    /// Go on as this user, without privileges, once the hooks are attached; files are created as this user
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
    /// Only packets that this process sent or received, and all of its TCP connections (may be given several times)
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Only packets that processes of this name sent or received, and all of their TCP connections
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Only packets that took this long or longer, from their first stamp to their last (200us)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub min_latency: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Read a recording instead: .hop, or the pcapng of -w; - is stdin
    #[arg(short, long, value_name = "FILE")]
    pub read: Option<PathBuf>,
    /// Write packets as pcapng, with their slices as comments, for Wireshark and for -r; - is stdout
    #[arg(short, long, value_name = "FILE.pcapng", conflicts_with = "output")]
    pub write: Option<PathBuf>,
    /// Write a recording for report, export, diff and -r
    #[arg(short, long, value_name = "FILE.hop")]
    pub output: Option<PathBuf>,
    /// With -w or -o: begin another file when one has this many million bytes
    #[arg(short = 'C', long, value_name = "MB", conflicts_with = "read",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub file_size: Option<u64>,
    /// With -C: this many files, then the oldest is overwritten
    #[arg(short = 'W', long, value_name = "N", requires = "file_size",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub file_count: Option<u32>,
    /// Permissions of the files, octal: 0640 lets the group read them, 0644 everybody
    #[arg(long = "file-mode", id = "file_mode", value_name = "MODE", default_value = "0600", value_parser = parse_mode)]
    pub mode: u32,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct ShownArgs {
    /// Addresses and ports as numbers, as they always are here
    #[arg(short, action = ArgAction::Count)]
    pub numeric: u8,
    /// Each line at once, as it always is here
    #[arg(short = 'l')]
    pub line_buffered: bool,
    /// With -w or -o: what is due is in the file at once
    #[arg(short = 'U', long, conflicts_with = "read")]
    pub packet_buffered: bool,
    /// No time (-t), seconds since 1970 (-tt), since the line before (-ttt), date and time (-tttt), since the first line (-ttttt)
    #[arg(short = 't', action = ArgAction::Count)]
    pub time: u8,
    /// Link headers
    #[arg(short = 'e')]
    pub link: bool,
    /// TCP's sequence numbers as they are, not from the connection's first packet on
    #[arg(short = 'S')]
    pub absolute: bool,
    /// Bytes in hexadecimal; twice: with the link header
    #[arg(short = 'x', action = ArgAction::Count)]
    pub hex: u8,
    /// Bytes in hexadecimal and ASCII; twice: with the link header
    #[arg(short = 'X', action = ArgAction::Count)]
    pub hex_ascii: u8,
    /// Bytes in ASCII; twice: with the link header
    #[arg(short = 'A', action = ArgAction::Count)]
    pub ascii: u8,
    /// One JSON object a packet, and one at the end
    #[arg(long, conflicts_with_all = ["link", "absolute", "hex", "hex_ascii", "ascii"])]
    pub json: bool,
}

/// NetSlice's configuration and statistics, of a `hopscope slice` that runs.
#[derive(Debug, Clone, Subcommand)]
pub enum Control {
    /// Settings and counters of a running slice
    Stat {
        /// Which, where several run
        #[arg(long, value_name = "PID")]
        of: Option<u32>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Change settings of a running slice: enable=0, min-latency=200us …
    Set {
        /// Which, where several run
        #[arg(long, value_name = "PID")]
        of: Option<u32>,
        #[arg(value_name = "NAME=VALUE", required = true)]
        settings: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The best that attaches here
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
