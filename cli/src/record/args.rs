//! `hopscope record`: what can be asked.
use crate::method::method;
use crate::output::parse_mode;
use crate::units::{parse_size, parse_time};
use clap::Args;
use hopscope_probe::live::install::Stores;
use hopscope_probe::plan::Method;
use hopscope_session::attach::AttachRequest;
use hopscope_session::record::{DistressRequest, FlightRequest, RecordRequest, parse_check_cost};
use std::path::PathBuf;
use std::time::Duration;

/// Of a process, that can be measured at once unless more are asked for.
pub const THREADS: u32 = 128;

#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Record this process (repeatable, or a comma-separated list)
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<i32>,
    /// Record every process with this command name (/proc/PID/comm)
    ///
    /// If none has it: processes whose executable or argv[0] has this name.
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
    /// Functions to measure: name, module!name, glob or /regex/ (repeatable)
    ///
    /// Capture arguments and results in parentheses: 'acl_in(frame->n, frame->pkts[0..n].seq, return)'.
    /// What each call counts: 'acl_in(@instructions, @cycles)', '@context-switches' on any machine.
    /// 'inlined:PATTERN': where functions were inlined into others; takes debugging information.
    /// 'calls:PATTERN': with what they call through pointers, by callee; 'calls:CALLER->CALLEE': by name.
    /// 'MODULE->PATTERN': only what this module calls, through its GOT.
    #[arg(short, long = "function", value_name = "PATTERN", required = true)]
    functions: Vec<String>,
    /// Exclude functions that match this pattern from -f (repeatable)
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// How calls are led into the measured copies of functions
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = method())]
    method: Method,
    /// Write the recording to this file
    #[arg(short, long, value_name = "FILE", default_value = "hopscope.hop")]
    output: PathBuf,
    /// File permissions, octal (0640: group may read, 0644: everyone)
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode)]
    mode: u32,
    /// Stop after this time (500ms, 5s, 2m; a bare number is in seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Stop after this many calls; calls up to the detach are recorded too
    #[arg(short, long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Ring size per thread in bytes (64K … 1G, power of two; 16 bytes a record)
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size_log2)]
    buffer: u32,
    /// Threads per process that can be measured at once (1 … 1024)
    #[arg(long, value_name = "N", default_value_t = THREADS, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Detach if the estimated slowdown exceeds this percentage (at most 900)
    #[arg(long, value_name = "PCT", default_value_t = 50.0)]
    max_overhead: f64,
    /// Detach if more than this percentage of a second's records is lost
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    max_loss: Option<f64>,
    /// Detach at once when a call takes longer: 'FUNCTION > 5ms', 'packet > 5ms' (repeatable)
    ///
    /// 'packet > TIME' needs --root.
    #[arg(long, value_name = "WHEN")]
    detach_on: Vec<String>,
    /// Detach at once when this file is not touched any more (its time of modification)
    ///
    /// Let the application, or what watches over it, touch it as long as all is well.
    #[arg(long, value_name = "FILE")]
    heartbeat: Option<PathBuf>,
    /// With --heartbeat: how often the file is touched at least
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s", requires = "heartbeat")]
    heartbeat_within: Duration,
    /// Leave out functions whose probes would take more than this percentage of the targets' time (5, 0.5%)
    ///
    /// Those with the shortest calls go first. Running processes are watched for 1 to 5 s before the recording; what
    /// exceeds the budget later is left out then.
    #[arg(long, value_name = "PCT", value_parser = parse_percent,
          conflicts_with_all = ["flight", "dry_stop", "empty_probes", "stamp_probes"])]
    budget: Option<f64>,
    /// Also measure children that the targets fork from now on, as processes of their own
    ///
    /// They write into rings of their parent: raise --threads accordingly. A child that runs another program (exec) is measured until then.
    #[arg(long, conflicts_with_all = ["budget", "check_cost", "flight", "dry_run"])]
    follow_forks: bool,
    /// Also measure what matches in modules that the targets load from now on (dlopen)
    ///
    /// From some milliseconds after the load on: the summary says how many. Patterns may match nothing when the recording begins.
    #[arg(long, conflicts_with_all = ["budget", "check_cost", "dry_run", "dry_stop"])]
    follow_dlopen: bool,
    /// Create this file when all targets are being recorded
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Also write names and unwind tables of the copies to this file (gdb, perf)
    ///
    /// An ELF file. In gdb: add-symbol-file FILE; with perf: docs/debuggers.md. Of several processes: FILE.PID.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    symbols: Option<PathBuf>,
    /// Dereference captured pointers unchecked: a bad pointer crashes the target
    #[arg(long)]
    trust_pointers: bool,
    /// Also measure functions that exceptions could unwind (that kills the target)
    ///
    /// A thread exit that unwinds through such a function terminates the process, too.
    #[arg(long)]
    assume_no_exceptions: bool,
    /// Show what would be measured or refused, without attaching
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object per line on stdout; with -- COMMAND on stderr
    #[arg(long)]
    json: bool,
    /// Insert probes that store nothing: the cost of instrumentation alone (benches)
    #[arg(long, hide = true)]
    empty_probes: bool,
    /// Insert probes that read the TSC and store nothing (for benches)
    #[arg(long, hide = true, conflicts_with = "empty_probes")]
    stamp_probes: bool,
    /// Counters of the processor without one: targets answer `rdpmc` themselves (for tests)
    #[arg(long, hide = true)]
    pub emulate_counters: bool,
    /// Stop and resume all threads once and print the time (for benches)
    #[arg(long, hide = true)]
    dry_stop: bool,
    /// Do not calibrate the probe cost; the report is then not corrected
    #[arg(long)]
    no_calibration: bool,
    /// Wait for all earlier instructions before each timestamp (lfence): exact short calls, at a higher cost
    ///
    /// Without it many processors stamp the end of a call before its body is done; the report says by how much.
    #[arg(long, conflicts_with = "empty_probes")]
    ordered_stamps: bool,
    /// Measure the probe cost in the target after recording (100ms … 60s; 1s if bare)
    ///
    /// Switches the probes on and off in alternation for this time. For programs under full load.
    #[arg(long, value_name = "TIME", value_parser = parse_check_cost, num_args = 0..=1,
          default_missing_value = "1s", require_equals = true,
          conflicts_with_all = ["no_calibration", "flight", "empty_probes", "stamp_probes"])]
    check_cost: Option<Duration>,
    /// Measured function that starts a run (for --every and --trigger 'packet > TIME')
    #[arg(long, value_name = "FUNCTION")]
    root: Option<String>,
    /// Keep only every Nth run of each thread; the probe cost stays the same
    #[arg(long, value_name = "N", requires = "root", conflicts_with = "flight", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Flight recorder: keep this much time in memory and save it on a trigger
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "trigger")]
    flight: Option<Duration>,
    /// Save on: 'FUNCTION > 50us', 'packet > 1ms', SIGUSR1, exit (repeatable)
    ///
    /// 'packet > TIME' needs --root. SIGUSR1 is sent to hopscope. exit is that of the last process.
    #[arg(long, value_name = "WHEN", requires = "flight")]
    trigger: Vec<String>,
    /// Also save this much time after a trigger; further triggers share the file
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s", requires = "flight")]
    after: Duration,
    /// Ignore, but count, triggers for this time after a file is saved
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s", requires = "flight")]
    cool_down: Duration,
    /// Keep at most this many files; a new one replaces the oldest
    #[arg(long, value_name = "N", default_value_t = 16, requires = "flight", value_parser = parse_keep)]
    keep: usize,
    /// Memory limit of the flight recorder; files are split at twice this size
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "flight", value_parser = parse_size)]
    flight_memory: usize,
    /// Do not record off-CPU times of threads
    #[arg(long)]
    no_off_cpu: bool,
    /// Also slice packets in the kernel, into the same file (pcap-filter expression)
    ///
    /// With '' all packets of the measured processes.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["flight", "every", "dry_stop"])]
    with_slices: Option<String>,
    /// With --with-slices: preset (tx, rx, both, min, seven), or file of regions
    ///
    /// A file has one region `name = from .. to` per line.
    #[arg(
        long,
        value_name = "PRESET|FILE",
        default_value = "both",
        requires = "with_slices"
    )]
    slice_regions: String,
    /// Start this command and record it from its first instruction
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl RecordArgs {
    pub fn into_request(self) -> RecordRequest {
        let stores = match (self.empty_probes, self.stamp_probes) {
            (true, _) => Stores::Nothing,
            (_, true) => Stores::Stamps,
            _ => Stores::Records,
        };
        let flight = self.flight.map(|before| FlightRequest {
            before,
            after: self.after,
            triggers: self.trigger,
            cool_down: self.cool_down,
            keep: self.keep,
            memory: self.flight_memory,
        });
        RecordRequest {
            attach: AttachRequest {
                pids: self.pid,
                comm: self.comm,
                functions: self.functions,
                exclude: self.exclude,
                method: self.method,
                ring_records_log2: self.buffer,
                threads: self.threads,
                trust_pointers: self.trust_pointers,
                assume_no_exceptions: self.assume_no_exceptions,
                emulate_counters: self.emulate_counters,
                no_calibration: self.no_calibration,
                ordered_stamps: self.ordered_stamps,
                ready_file: self.ready_file,
            },
            command: self.command,
            stores,
            output: self.output,
            mode: self.mode,
            duration: self.duration,
            calls: self.count,
            max_overhead_percent: self.max_overhead,
            distress: DistressRequest {
                max_loss_percent: self.max_loss,
                heartbeat: self.heartbeat.map(|file| (file, self.heartbeat_within)),
                calls: self.detach_on,
            },
            budget_percent: self.budget,
            follow_forks: self.follow_forks,
            follow_dlopen: self.follow_dlopen,
            symbols: self.symbols,
            check_cost: self.check_cost,
            root: self.root,
            every: self.every,
            flight,
            no_off_cpu: self.no_off_cpu,
            with_slices: self.with_slices,
            slice_regions: self.slice_regions,
            dry_run: self.dry_run,
            dry_stop: self.dry_stop,
            json: self.json,
        }
    }
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

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err(format!("a percentage above 0 and up to 100, not {text:?}")),
    }
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
