//! `hopscope top`: what can be asked.
use crate::method::method;
use crate::record::{THREADS, parse_size_log2};
use crate::units::parse_time;
use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hopscope_probe::plan::Method;
use hopscope_session::attach::AttachRequest;
use hopscope_session::top::{By, TopRequest};
use std::io::IsTerminal;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Measure this process (repeatable, or a comma-separated list)
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<i32>,
    /// Measure every process with this command name (/proc/PID/comm)
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
    /// Functions to measure: name, module!name, glob or /regex/ (repeatable)
    #[arg(short, long = "function", value_name = "PATTERN", required = true)]
    functions: Vec<String>,
    /// Exclude functions that match this pattern from -f (repeatable)
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// How calls are led into the measured copies of functions
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = method())]
    method: Method,
    /// Also measure what matches in modules that the targets load from now on (dlopen)
    #[arg(long)]
    follow_dlopen: bool,
    /// Refresh interval (100ms …)
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    interval: Duration,
    /// Stop after this time (500ms, 5s, 2m; a bare number is in seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Sort rows, largest first (names ascending)
    #[arg(long, value_name = "SORT", default_value = "share", value_parser = by())]
    sort: By,
    /// Print lines instead of a screen: one per called function and interval
    #[arg(long)]
    raw: bool,
    /// With --raw: print one JSON object per line
    #[arg(long, requires = "raw")]
    json: bool,
    /// Ring size per thread in bytes (64K … 1G, power of two; 16 bytes a record)
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size_log2)]
    buffer: u32,
    /// Detach if the estimated slowdown exceeds this percentage (at most 900)
    #[arg(long, value_name = "PCT", default_value_t = 50.0)]
    max_overhead: f64,
    /// Also measure functions that exceptions could unwind (that kills the target)
    ///
    /// A thread exit that unwinds through such a function terminates the process, too.
    #[arg(long)]
    assume_no_exceptions: bool,
    /// Do not calibrate the probe cost; times are then not corrected
    #[arg(long)]
    no_calibration: bool,
    /// Wait for all earlier instructions before each timestamp (lfence): exact short calls, at a higher cost
    #[arg(long)]
    ordered_stamps: bool,
    /// Create this file when all targets are being measured
    #[arg(long, value_name = "FILE")]
    ready_file: Option<std::path::PathBuf>,
}

/// The words of [`By`], which the help lists.
fn by() -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(By::ALL.map(By::word)).map(|word| {
        let named = |by: &By| by.word() == word;
        By::ALL.into_iter().find(named).unwrap_or(By::Share)
    })
}

impl TopArgs {
    pub fn check(&self) -> anyhow::Result<()> {
        if self.interval < Duration::from_millis(100) {
            bail!("--interval: at least 100ms; shorter ones hold too few calls to be read");
        }
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if !(self.raw || terminal) {
            bail!("top needs a terminal; --raw writes lines for a pipe or a file");
        }
        Ok(())
    }

    /// The attach is that of `record`, with its defaults for what `top` does not offer.
    pub fn into_request(self) -> TopRequest {
        TopRequest {
            attach: AttachRequest {
                pids: self.pid,
                comm: self.comm,
                functions: self.functions,
                exclude: self.exclude,
                method: self.method,
                ring_records_log2: self.buffer,
                threads: THREADS,
                trust_pointers: false,
                assume_no_exceptions: self.assume_no_exceptions,
                emulate_counters: false,
                no_calibration: self.no_calibration,
                ordered_stamps: self.ordered_stamps,
                ready_file: self.ready_file,
            },
            follow_dlopen: self.follow_dlopen,
            interval: self.interval,
            duration: self.duration,
            max_overhead_percent: self.max_overhead,
            sort: self.sort,
            raw: self.raw,
            json: self.json,
        }
    }
}
