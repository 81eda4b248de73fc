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
    /// Ticks per measured call: hot and round robin, beside the floor and other tools
    Probe(Common),
    /// How long a target stands still at attach and detach, beside the stop alone
    Attach(Common),
    /// Records a second that reach the disk, beside a plain write of the same bytes
    Recorder(Common),
    /// How fast a large recording becomes a report, and in how much memory
    Analyze(Common),
    /// The generator: packets a second, round trips beside a C client, a known delay
    Load(Common),
    /// What hooks in the kernel add to a packet, and what is left of it once corrected
    Slice(Common),
    /// Echo servers in user space and in the kernel, plain and accelerated, in turn
    Splice(Common),
    /// Such a server as a kernel module, beside the others, in a virtual machine
    SpliceGuest(WithKernel),
    /// Policies of notification: one queue alone, and two networks joined by a pair of queues
    Vnet(Common),
    /// Such policies with an unmodified driver: devices of a virtual machine, each with a back end of its own
    VnetGuest(WithKernel),
    /// Which layer of the kernel takes how long to send over TCP, from the call to the driver
    CaseTcpSend(Common),
    /// Three network functions at growing numbers of probes a packet, beside what the floor costs
    CaseDensity(WithDemo),
    /// What the packets behind a slow one lose, and what the firewall's modules take
    CasePropagation(WithDemo),
    /// A filter of 3,000 rules on the same packets in another order
    CaseLocality(WithDemo),
    /// How long a browser takes to show the page of 100,000 packets
    Html(Common),
    /// Any two commands in turn, by wall time or a number they print, with a verdict
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
    /// Rounds; each runs A, B and A again, in an order that changes [default: 21, --quick: 9]
    #[arg(long, value_name = "N", value_parser = rounds)]
    runs: Option<usize>,
    /// Runs of each before anything is measured
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// "wall" (seconds), or a field of the JSON object on the last line of stdout: `summary.pps`
    #[arg(long, value_name = "FIELD", default_value = "wall")]
    metric: String,
    /// Exit with 1 unless B against A comes out so
    #[arg(long, value_enum, value_name = "VERDICT")]
    expect: Option<Expect>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct WithDemo {
    /// The demo firewall, built [default: it is built from ./demo]
    #[arg(long, value_name = "PROGRAM")]
    demo: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct WithKernel {
    /// Debian's kernel and its headers, as scripts/install-vm unpacks them [default: vm beside the build
    /// directory]
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
    /// One JSON object per line: samples, then a summary
    #[arg(long)]
    json: bool,
    /// Fewer and shorter repetitions
    #[arg(long)]
    quick: bool,
    /// As few and as short as there can be: whether a bench works, not what it finds
    #[arg(long, hide = true)]
    least: bool,
    /// Also write the lines to DIR/BENCH.jsonl (by custom docs/results/DATE-HOST)
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Where the measured programs are built [default: target/bench, or the cache folder]
    #[arg(long, value_name = "DIR")]
    build_dir: Option<PathBuf>,
    /// The hopscope binary to measure [default: this one]
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
