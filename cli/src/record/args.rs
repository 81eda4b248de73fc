//! `hopscope record`: what can be asked.
use super::check_cost;
use crate::output::parse_mode;
use crate::units::{parse_size, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Record this process (repeatable, or a comma-separated list)
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// Record every process with this command name (/proc/PID/comm)
    ///
    /// If none has it: processes whose executable or argv[0] has this name.
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Functions to measure: name, module!name, glob or /regex/ (repeatable)
    ///
    /// Capture arguments and results in parentheses: 'acl_in(frame->n, frame->pkts[0..n].seq, return)'.
    #[arg(short, long = "function", value_name = "PATTERN", required = true)]
    pub functions: Vec<String>,
    /// Exclude functions that match this pattern from -f (repeatable)
    #[arg(short = 'x', long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Write the recording to this file
    #[arg(short, long, value_name = "FILE", default_value = "hopscope.hop")]
    pub output: PathBuf,
    /// File permissions, octal (0640: group may read, 0644: everyone)
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode)]
    pub mode: u32,
    /// Stop after this time (500ms, 5s, 2m; a bare number is in seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Stop after this many calls; calls up to the detach are recorded too
    #[arg(short, long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Ring size per thread in bytes (64K … 1G, power of two; 16 bytes a record)
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size_log2)]
    pub buffer: u32,
    /// Threads per process that can be measured at once (1 … 1024)
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Detach if the estimated slowdown exceeds this percentage (at most 900)
    #[arg(long, value_name = "PCT", default_value_t = 50.0)]
    pub max_overhead: f64,
    /// Create this file when all targets are being recorded
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Also write names and unwind tables of the copies to this file (gdb, perf)
    ///
    /// An ELF file. In gdb: add-symbol-file FILE; with perf: docs/debuggers.md. Of several processes: FILE.PID.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub symbols: Option<PathBuf>,
    /// Dereference captured pointers unchecked: a bad pointer crashes the target
    #[arg(long)]
    pub trust_pointers: bool,
    /// Also measure functions that exceptions could unwind (that kills the target)
    ///
    /// A thread exit that unwinds through such a function terminates the process, too.
    #[arg(long)]
    pub assume_no_exceptions: bool,
    /// Show what would be measured or refused, without attaching
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object per line on stdout; with -- COMMAND on stderr
    #[arg(long)]
    pub json: bool,
    /// Insert probes that store nothing: the cost of instrumentation alone (benches)
    #[arg(long, hide = true)]
    pub empty_probes: bool,
    /// Insert probes that read the TSC and store nothing (for benches)
    #[arg(long, hide = true, conflicts_with = "empty_probes")]
    pub stamp_probes: bool,
    /// Stop and resume all threads once and print the time (for benches)
    #[arg(long, hide = true)]
    pub dry_stop: bool,
    /// Do not calibrate the probe cost; the report is then not corrected
    #[arg(long)]
    pub no_calibration: bool,
    /// Measure the probe cost in the target after recording (100ms … 60s; 1s if bare)
    ///
    /// Switches the probes on and off in alternation for this time. For programs under full load.
    #[arg(long, value_name = "TIME", value_parser = check_cost::parse, num_args = 0..=1,
          default_missing_value = "1s", require_equals = true,
          conflicts_with_all = ["no_calibration", "flight", "empty_probes", "stamp_probes"])]
    pub check_cost: Option<Duration>,
    /// Measured function that starts a run (for --every and --trigger 'packet > TIME')
    #[arg(long, value_name = "FUNCTION")]
    pub root: Option<String>,
    /// Keep only every Nth run of each thread; the probe cost stays the same
    #[arg(long, value_name = "N", requires = "root", conflicts_with = "flight", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// Flight recorder: keep this much time in memory and save it on a trigger
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "trigger")]
    pub flight: Option<Duration>,
    /// Save on: 'FUNCTION > 50us', 'packet > 1ms', SIGUSR1, exit (repeatable)
    ///
    /// 'packet > TIME' needs --root. SIGUSR1 is sent to hopscope. exit is that of the last process.
    #[arg(long, value_name = "WHEN", requires = "flight")]
    pub trigger: Vec<String>,
    /// Also save this much time after a trigger; further triggers share the file
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s", requires = "flight")]
    pub after: Duration,
    /// Ignore, but count, triggers for this time after a file is saved
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s", requires = "flight")]
    pub cool_down: Duration,
    /// Keep at most this many files; a new one replaces the oldest
    #[arg(long, value_name = "N", default_value_t = 16, requires = "flight", value_parser = parse_keep)]
    pub keep: usize,
    /// Memory limit of the flight recorder; files are split at twice this size
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "flight", value_parser = parse_size)]
    pub flight_memory: usize,
    /// Do not record off-CPU times of threads
    #[arg(long)]
    pub no_off_cpu: bool,
    /// Also slice packets in the kernel, into the same file (pcap-filter expression)
    ///
    /// With '' all packets of the measured processes.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["flight", "every", "dry_stop"])]
    pub with_slices: Option<String>,
    /// With --with-slices: preset (tx, rx, both, min, seven), or file of regions
    ///
    /// A file has one region `name = from .. to` per line.
    #[arg(
        long,
        value_name = "PRESET|FILE",
        default_value = "both",
        requires = "with_slices"
    )]
    pub slice_regions: String,
    /// Start this command and record it from its first instruction
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
