//! `hopscope record`: what can be asked.
use super::check_cost;
use crate::output::parse_mode;
use crate::units::{parse_size, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Process to record; may be repeated or a comma-separated list
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// Record every process with this command name (as in /proc/PID/comm); where there is none: those that run a
    /// file of this name, or were started under it
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Functions to time: name, module!name, glob, or /regex/; may be repeated. In parentheses what
    /// their probes take along: 'acl_in(frame->n, frame->pkts[0..n].seq, return)'
    #[arg(short, long = "function", value_name = "PATTERN", required = true)]
    pub functions: Vec<String>,
    /// Functions to leave out, of those that -f matches: the same patterns; may be repeated
    #[arg(short = 'x', long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Trace file
    #[arg(short, long, value_name = "FILE", default_value = "hopscope.hop")]
    pub output: PathBuf,
    /// Permissions of what is written, octal: 0640 lets the group read it, 0644 everybody
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode)]
    pub mode: u32,
    /// Stop after this time (500ms, 5s, 2m; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Stop once this many calls are read; what began until the detach is in the file, too
    #[arg(short, long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Ring size of each thread (64K … 1G, a power of two; 16 bytes a record)
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size_log2)]
    pub buffer: u32,
    /// Threads of one process that can be measured at once (1 … 1024)
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Detach when the estimated slowdown exceeds this many per cent; estimates end at 900
    #[arg(long, value_name = "PCT", default_value_t = 50.0)]
    pub max_overhead: f64,
    /// Create this file once every target is being recorded
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Read captured values behind pointers by plain loads: a wrong pointer ends the program
    #[arg(long)]
    pub trust_pointers: bool,
    /// Measure also what exceptions or ending threads could unwind: if one does, the program ends
    #[arg(long)]
    pub assume_no_exceptions: bool,
    /// Say what would be measured or refused, and touch nothing
    #[arg(long)]
    pub dry_run: bool,
    /// One JSON object a line on stdout; with -- COMMAND, which has stdout to itself, on stderr
    #[arg(long)]
    pub json: bool,
    /// Probes that store nothing: the cost of the instrumentation alone (for benches)
    #[arg(long, hide = true)]
    pub empty_probes: bool,
    /// Probes that read the clock and store nothing: what two stamps cost in place (for benches)
    #[arg(long, hide = true, conflicts_with = "empty_probes")]
    pub stamp_probes: bool,
    /// Stop and resume every thread once, change nothing, say how long it took (for benches)
    #[arg(long, hide = true)]
    pub dry_stop: bool,
    /// Do not measure the probe's cost first; the report is then not corrected
    #[arg(long)]
    pub no_calibration: bool,
    /// Measure in the program itself what a call costs: after the recording its probes go on and off in turn for
    /// this long (100ms … 60s, without =TIME 1s); for programs that work as fast as they can
    #[arg(long, value_name = "TIME", value_parser = check_cost::parse, num_args = 0..=1,
          default_missing_value = "1s", require_equals = true,
          conflicts_with_all = ["no_calibration", "flight", "empty_probes", "stamp_probes"])]
    pub check_cost: Option<Duration>,
    /// What a run begins with: a measured function (for --every, and 'packet > TIME' of --trigger)
    #[arg(long, value_name = "FUNCTION")]
    pub root: Option<String>,
    /// Keep each Nth run of a thread whole, and nothing else; the probes cost what they always do
    #[arg(long, value_name = "N", requires = "root", conflicts_with = "flight", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// Keep this much in memory, and save it only around triggers
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "trigger")]
    pub flight: Option<Duration>,
    /// What is worth saving: 'FUNCTION > 50us', 'packet > 1ms' (with --root), SIGUSR1 (sent to hopscope),
    /// exit (of the last process); may be repeated
    #[arg(long, value_name = "WHEN", requires = "flight")]
    pub trigger: Vec<String>,
    /// How much after a trigger is saved too; triggers that come until then go into the same file
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s", requires = "flight")]
    pub after: Duration,
    /// After a file was saved, triggers save nothing for so long; they are counted
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s", requires = "flight")]
    pub cool_down: Duration,
    /// Files of this recording that stay; the oldest is taken away for a new one
    #[arg(long, value_name = "N", default_value_t = 16, requires = "flight", value_parser = parse_keep)]
    pub keep: usize,
    /// Most memory for what is kept; a file is ended, and the next begun, at twice that
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "flight", value_parser = parse_size)]
    pub flight_memory: usize,
    /// Do not record when threads were off the processor
    #[arg(long)]
    pub no_off_cpu: bool,
    /// Record the kernel's path of packets too, in the same file: those of this pcap-filter expression,
    /// or with '' those of the measured processes
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["flight", "every", "dry_stop"])]
    pub with_slices: Option<String>,
    /// With --with-slices: which slices, a preset (tx, rx, both, min, seven) or a file of lines
    /// `name = from .. to`
    #[arg(
        long,
        value_name = "PRESET|FILE",
        default_value = "both",
        requires = "with_slices"
    )]
    pub slice_regions: String,
    /// Command to start and record from its first instruction
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn parse_keep(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(_) => Err(format!("{text:?} is not a whole number")),
    }
}

/// log2 of the records in a ring of the given size in bytes.
pub fn parse_size_log2(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" | "KiB" => 10,
        "m" | "M" | "MiB" => 20,
        "g" | "G" | "GiB" => 30,
        other => return Err(format!("unknown unit {other:?}; use K, M or G")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a whole number"))?;
    let bytes = number
        .checked_shl(shift)
        .filter(|b| b >> shift == number)
        .ok_or("too large")?;
    if !bytes.is_power_of_two() || !(64 << 10..=1 << 30).contains(&bytes) {
        return Err("must be a power of two from 64K to 1G".into());
    }
    Ok((bytes / 16).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size_log2("4M"), Ok(18));
        assert_eq!(parse_size_log2("65536"), Ok(12));
        for wrong in [
            "3M",
            "1K",
            "2G",
            "99999999999999999999",
            "18014398509481984K",
            "x",
        ] {
            assert!(parse_size_log2(wrong).is_err(), "{wrong}");
        }
    }
}
