//! The command line of `hopscope bench`. `hopscope` reads it for its help and docs/commands.md, and to run `compare`;
//! `hopscope-bench` reads it again and runs the benches.
#![forbid(unsafe_code)]

use clap::{Args, Subcommand, ValueEnum};
use hopscope_compare::commands::{Compared, Expected, Metric};
use hopscope_compare::comparison::ROUNDS_MIN;
use std::path::PathBuf;

#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub bench: Bench,
}

#[derive(Subcommand)]
pub enum Bench {
    /// Measure TSC ticks per probed call, hot and round robin, against other tools
    Probe(Common),
    /// Compare ways to read a counter: rdpmc, PAPI, read(2), the kernel's page
    Counters(Common),
    /// Measure how long a target is stopped at attach and detach
    Attach(Common),
    /// Measure records per second written to disk, against a plain write
    Recorder(Common),
    /// Measure time and memory to report on a large recording
    Analyze(Common),
    /// Measure the load generator: packet rate, round trips, a known delay
    Load(Common),
    /// Measure what kernel hooks add to a packet, before and after correction
    Slice(Common),
    /// Compare echo servers in user space and in the kernel, plain and accelerated
    Splice(Common),
    /// Compare them with an echo server in a kernel module, in a virtual machine
    SpliceGuest(WithKernel),
    /// Compare notification policies: one queue, and two networks over a queue pair
    Vnet(Common),
    /// Compare notification policies with the unmodified driver of a virtual machine
    VnetGuest(WithKernel),
    /// Compare unmodified programs on the stack in user space, within them or beside, with the kernel's
    Stack(Common),
    /// Compare the TCP/IP stack in user space with the kernel's: requests, bulk, loss
    StackEngine(Common),
    /// Show how long each kernel layer takes to send over TCP, system call to driver
    CaseTcpSend(Common),
    /// Measure three network functions with a growing number of probes per packet
    CaseDensity(WithDemo),
    /// Show how a slow packet delays the next ones, and the time of each module
    CasePropagation(WithDemo),
    /// Compare a filter of 3,000 rules on the same packets in another order
    CaseLocality(WithDemo),
    /// Measure every function of large programs: how many can be, is the output the same
    Coverage(Coverage),
    /// Measure how long a browser takes to show a page of 100,000 packets
    Html(Common),
    /// Compare two commands by wall time or a number they print, with a verdict
    Compare(Compare),
}

#[derive(Args)]
pub struct Compare {
    /// First command, for `sh -c`; it also runs against itself as the control
    #[arg(long, value_name = "CMD")]
    a: String,
    /// Second command
    #[arg(long, value_name = "CMD")]
    b: String,
    /// Rounds of A, B and A again, in varying order [default: 21, --quick: 9]
    #[arg(long, value_name = "N", value_parser = rounds)]
    runs: Option<usize>,
    /// Runs of each command before measurement starts
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// Compare wall time (s) or a JSON field of the last stdout line (summary.pps)
    #[arg(long, value_name = "FIELD", default_value = "wall")]
    metric: String,
    /// Exit with 1 unless B compared with A gives this verdict
    #[arg(long, value_enum, value_name = "VERDICT")]
    expect: Option<Expect>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args)]
pub struct Coverage {
    /// Only this program (repeatable) [default: all that are installed]
    #[arg(long = "program", value_name = "NAME")]
    pub programs: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args)]
pub struct WithDemo {
    /// Path of a built demo firewall [default: build it from ./demo]
    #[arg(long, value_name = "PROGRAM")]
    pub demo: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args)]
pub struct WithKernel {
    /// Kernel and headers unpacked by scripts/install-vm [default: vm beside the build]
    #[arg(long, value_name = "DIR")]
    pub kernel: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum Expect {
    NoDifference,
    Higher,
    Lower,
    NotHigher,
    NotLower,
}

impl Expect {
    fn expected(expect: Option<Expect>) -> Expected {
        match expect {
            None => Expected::Any,
            Some(Expect::NoDifference) => Expected::NoDifference,
            Some(Expect::Higher) => Expected::Higher,
            Some(Expect::Lower) => Expected::Lower,
            Some(Expect::NotHigher) => Expected::NotHigher,
            Some(Expect::NotLower) => Expected::NotLower,
        }
    }
}

/// Six rounds at least: fewer allow no verdict.
fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (ROUNDS_MIN..=100_000).contains(&n) => Ok(n),
        _ => Err(format!(
            "a number from {ROUNDS_MIN} (fewer allow no verdict) to 100000 is needed"
        )),
    }
}

impl Compare {
    #[must_use]
    pub fn compared(&self, quiet: bool) -> Compared {
        Compared {
            a: self.a.clone(),
            b: self.b.clone(),
            rounds: self.runs.unwrap_or(if self.common.quick { 9 } else { 21 }),
            warm_up: self.warmup,
            metric: match self.metric.as_str() {
                "wall" => Metric::Wall,
                field => Metric::Field(field.into()),
            },
            expected: Expect::expected(self.expect),
            quiet,
        }
    }
}

#[derive(Args)]
pub struct Common {
    /// Print one JSON object per line: samples, then a summary
    #[arg(long)]
    pub json: bool,
    /// Run fewer and shorter repetitions
    #[arg(long)]
    pub quick: bool,
    /// Run the least repetitions: tests that the bench works, figures mean nothing
    #[arg(long, hide = true)]
    pub least: bool,
    /// Also write the JSON lines to DIR/BENCH.jsonl (see docs/results/DATE-HOST)
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Build measured programs here [default: target/bench, or the cache directory]
    #[arg(long, value_name = "DIR")]
    pub build_dir: Option<PathBuf>,
    /// Measure this hopscope binary [default: this one]
    #[arg(long, value_name = "PATH")]
    pub hopscope: Option<PathBuf>,
}

impl Bench {
    /// Its name in results, and what every bench takes.
    #[must_use]
    pub fn named(&self) -> (&'static str, &Common) {
        match self {
            Bench::Probe(common) => ("probe", common),
            Bench::Counters(common) => ("counters", common),
            Bench::Attach(common) => ("attach", common),
            Bench::Recorder(common) => ("recorder", common),
            Bench::Analyze(common) => ("analyze", common),
            Bench::Load(common) => ("load", common),
            Bench::Slice(common) => ("slice", common),
            Bench::Splice(common) => ("splice", common),
            Bench::SpliceGuest(guest) => ("splice-guest", &guest.common),
            Bench::Vnet(common) => ("vnet", common),
            Bench::VnetGuest(guest) => ("vnet-guest", &guest.common),
            Bench::Stack(common) => ("stack", common),
            Bench::StackEngine(common) => ("stack-engine", common),
            Bench::CaseTcpSend(common) => ("case-tcp-send", common),
            Bench::CaseDensity(case) => ("case-density", &case.common),
            Bench::CasePropagation(case) => ("case-propagation", &case.common),
            Bench::CaseLocality(case) => ("case-locality", &case.common),
            Bench::Coverage(coverage) => ("coverage", &coverage.common),
            Bench::Html(common) => ("html", common),
            Bench::Compare(compare) => ("compare", &compare.common),
        }
    }
}
