//! `hopscope bench`: what hopscope costs here, beside the floor and the tools that are installed.
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use hopscope_bench::command::{Compared, Expected, Metric};
use hopscope_bench::compare::ROUNDS_MIN;
use hopscope_bench::{Settings, envelope::Output};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure TSC ticks per probed call, hot and round robin, against other tools
    Probe(Common),
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
    /// Show how long each kernel layer takes to send over TCP, system call to driver
    CaseTcpSend(Common),
    /// Measure three network functions with a growing number of probes per packet
    CaseDensity(WithDemo),
    /// Show how a slow packet delays the next ones, and the time of each module
    CasePropagation(WithDemo),
    /// Compare a filter of 3,000 rules on the same packets in another order
    CaseLocality(WithDemo),
    /// Measure how long a browser takes to show a page of 100,000 packets
    Html(Common),
    /// Compare two commands by wall time or a number they print, with a verdict
    Compare(Compare),
}

#[derive(Args)]
struct Compare {
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
    common: Common,
}

#[derive(Args)]
struct WithDemo {
    /// Path of a built demo firewall [default: build it from ./demo]
    #[arg(long, value_name = "PROGRAM")]
    demo: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct WithKernel {
    /// Kernel and headers unpacked by scripts/install-vm [default: vm beside the build]
    #[arg(long, value_name = "DIR")]
    kernel: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl WithKernel {
    fn kernel(&self, settings: &Settings) -> PathBuf {
        let beside = || settings.build_dir.with_file_name("vm");
        self.kernel.clone().unwrap_or_else(beside)
    }
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
    fn compared(&self) -> Compared {
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
        }
    }
}

#[derive(Args)]
struct Common {
    /// Print one JSON object per line: samples, then a summary
    #[arg(long)]
    json: bool,
    /// Run fewer and shorter repetitions
    #[arg(long)]
    quick: bool,
    /// Run the least repetitions: tests that the bench works, figures mean nothing
    #[arg(long, hide = true)]
    least: bool,
    /// Also write the JSON lines to DIR/BENCH.jsonl (see docs/results/DATE-HOST)
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Build measured programs here [default: target/bench, or the cache directory]
    #[arg(long, value_name = "DIR")]
    build_dir: Option<PathBuf>,
    /// Measure this hopscope binary [default: this one]
    #[arg(long, value_name = "PATH")]
    hopscope: Option<PathBuf>,
}

/// Beside a Cargo workspace's other build results, otherwise in the user's cache.
fn default_build_dir() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    if here.join("Cargo.toml").exists() {
        return Ok(here.join("target/bench"));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .context("no home directory; say --build-dir DIR")?;
    Ok(cache.join("hopscope/bench"))
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            hopscope: match &self.hopscope {
                Some(path) => path.clone(),
                None => std::env::current_exe().context("cannot tell my own path")?,
            },
            build_dir: match &self.build_dir {
                Some(dir) => std::path::absolute(dir)?,
                None => default_build_dir()?,
            },
            quick: self.quick || self.least,
            least: self.least,
            quiet: false,
        })
    }
}

pub fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout();
    type Bench<'a> = Box<dyn Fn(&Settings, Output<'_>) -> hopscope_bench::error::Result<bool> + 'a>;
    let (name, common, bench): (_, _, Bench) = match &args.what {
        What::Probe(common) => ("probe", common, Box::new(hopscope_bench::probe::run)),
        What::Attach(common) => ("attach", common, Box::new(hopscope_bench::attach::run)),
        What::Recorder(common) => ("recorder", common, Box::new(hopscope_bench::recorder::run)),
        What::Analyze(common) => ("analyze", common, Box::new(hopscope_bench::analyze::run)),
        What::Load(common) => ("load", common, Box::new(hopscope_bench::load::run)),
        What::Slice(common) => ("slice", common, Box::new(hopscope_bench::slice::run)),
        What::Splice(common) => ("splice", common, Box::new(hopscope_bench::splice::run)),
        What::SpliceGuest(guest) => {
            let bench = |settings: &Settings, output: Output<'_>| {
                hopscope_bench::splice::guest::run(settings, &guest.kernel(settings), output)
            };
            ("splice-guest", &guest.common, Box::new(bench))
        }
        What::Vnet(common) => ("vnet", common, Box::new(hopscope_bench::vnet::run)),
        What::VnetGuest(guest) => {
            let bench = |settings: &Settings, output: Output<'_>| {
                hopscope_bench::vnet::guest::run(settings, &guest.kernel(settings), output)
            };
            ("vnet-guest", &guest.common, Box::new(bench))
        }
        What::CaseTcpSend(common) => {
            let bench = Box::new(hopscope_bench::slice::send::run);
            ("case-tcp-send", common, bench)
        }
        What::Html(common) => ("html", common, Box::new(hopscope_bench::html::run)),
        What::CaseDensity(density) => {
            let demo = density.demo.as_ref();
            let bench = move |settings: &Settings, output: Output<'_>| {
                hopscope_bench::density::run(settings, demo, output)
            };
            ("case-density", &density.common, Box::new(bench))
        }
        What::CasePropagation(propagation) => {
            let demo = propagation.demo.as_ref();
            let bench = move |settings: &Settings, output: Output<'_>| {
                hopscope_bench::propagation::run(settings, demo, output)
            };
            ("case-propagation", &propagation.common, Box::new(bench))
        }
        What::CaseLocality(locality) => {
            let demo = locality.demo.as_ref();
            let bench = move |settings: &Settings, output: Output<'_>| {
                hopscope_bench::locality::run(settings, demo, output)
            };
            ("case-locality", &locality.common, Box::new(bench))
        }
        What::Compare(compare) => {
            let compared = compare.compared();
            let bench = move |settings: &Settings, output: Output<'_>| {
                hopscope_bench::command::run(settings, &compared, output)
            };
            ("compare", &compare.common, Box::new(bench))
        }
    };
    let output = Output::new(name, &mut stdout, common.json, common.save.as_deref())?;
    let complete: bool = bench(&common.settings()?, output)?;
    Ok(ExitCode::from(if complete { 0 } else { 1 }))
}
