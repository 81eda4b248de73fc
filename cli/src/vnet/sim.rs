//! `hopscope vnet sim`.
use anyhow::bail;
use clap::{Args, ValueEnum};
use hopscope_vnet::Ns;
use hopscope_vnet::policy::PolicyKind;
use hopscope_vnet::sim::{self, Costs, Defer, Load, Setup, SimResult, Suppression, table};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// Simulates a driver and a device with one transmit queue in virtual time; the same seed gives the same output.
/// Without policies and loads it prints the reference table of docs/vnet.md.
#[derive(Args)]
pub struct SimArgs {
    /// When the driver kicks (repeatable)
    ///
    /// Policies: plain, suppress, event-idx, tam[:LIMIT], batch[:LIMIT], ahc:US:LIMIT, ahc-window:US:LIMIT,
    /// coal:PACKETS:US, adaptive.
    #[arg(long, value_name = "POLICY")]
    kick_policy: Vec<PolicyKind>,
    /// When the device interrupts, same policies [default: batch; with plain: plain]
    #[arg(long, value_name = "POLICY")]
    call_policy: Option<PolicyKind>,
    /// Offered load in million packets per second (repeatable)
    #[arg(long, value_name = "MPPS")]
    load: Vec<f64>,
    /// With --load: packets that arrive at the same instant
    #[arg(long, value_name = "N", default_value_t = 1, requires = "load")]
    burst: u32,
    /// Number of packets
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    packets: u32,
    /// Queue size
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    ring: u32,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How a busy end disables notifications
    #[arg(long, value_enum, default_value = "flag")]
    suppression: By,
    /// With --suppression index: enable the kick only at the K-th entry
    ///
    /// After K entries in a row, the device enables the kick at the K-th next entry and polls after US
    /// microseconds.
    #[arg(long, value_name = "K:US", value_parser = defer)]
    defer: Option<Defer>,
    #[command(flatten)]
    costs: CostArgs,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Nanoseconds.
#[derive(Args)]
#[command(next_help_heading = "Time of each step, in ns")]
struct CostArgs {
    /// Driver: time to publish one packet
    #[arg(long, value_name = "NS", default_value_t = Costs::default().publish.0)]
    publish_ns: u64,
    /// Driver: time of a kick
    #[arg(long, value_name = "NS", default_value_t = Costs::default().kick.0)]
    kick_ns: u64,
    /// Time from a kick until a sleeping device runs
    #[arg(long, value_name = "NS", default_value_t = Costs::default().wake.0)]
    wake_ns: u64,
    /// Device: time to serve one packet
    #[arg(long, value_name = "NS", default_value_t = Costs::default().serve.0)]
    serve_ns: u64,
    /// Device: time to interrupt the guest
    #[arg(long, value_name = "NS", default_value_t = Costs::default().call.0)]
    call_ns: u64,
    /// Driver: time to take an interrupt
    #[arg(long, value_name = "NS", default_value_t = Costs::default().interrupt.0)]
    interrupt_ns: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Set a flag when it runs
    Flag,
    /// The first notification disables it (event index)
    Index,
}

pub fn run(args: SimArgs) -> anyhow::Result<ExitCode> {
    let pairs = pairs(&args);
    let loads = if args.load.is_empty() {
        sim::LOADS.to_vec()
    } else {
        args.load
            .iter()
            .map(|&mpps| load(mpps, args.burst))
            .collect()
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let first = setup(&args, pairs[0], loads[0]);
    let mut cells: Vec<(Setup, SimResult)> = Vec::new();
    for load in loads {
        for pair in &pairs {
            let setup = setup(&args, *pair, load);
            let outcome = sim::run(&setup)?;
            if cells.is_empty() && !args.json {
                table::head(&mut out, &first)?;
            }
            if args.json {
                table::json(&mut out, &setup, &outcome)?
            } else {
                table::row(&mut out, &setup, &outcome)?
            }
            cells.push((setup, outcome));
        }
    }
    table::end(&mut out, &first, &cells, args.json)?;
    out.flush()?;
    if let Some((setup, outcome)) = cells.iter().find(|(_, outcome)| !outcome.conserved()) {
        bail!(
            "{} of {} packets came through with --kick-policy {} at {} Mpps: a bug in the simulator",
            outcome.reclaimed_in_order,
            outcome.packets,
            setup.kick,
            setup.load.mpps
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Pairs of policies to be compared.
fn pairs(args: &SimArgs) -> Vec<(PolicyKind, PolicyKind)> {
    let beside = |kick| match kick {
        PolicyKind::Plain => PolicyKind::Plain,
        _ => PolicyKind::Batch { limit: u32::MAX },
    };
    let kicks = if args.kick_policy.is_empty() {
        sim::COLUMNS.iter().map(|column| column.kick).collect()
    } else {
        args.kick_policy.clone()
    };
    let pair = |kick| (kick, args.call_policy.unwrap_or(beside(kick)));
    kicks.into_iter().map(pair).collect()
}

fn defer(text: &str) -> Result<Defer, String> {
    let parts = text.split_once(':');
    let parts =
        parts.and_then(|(entries, us)| Some((entries.parse().ok()?, us.parse::<u32>().ok()?)));
    let (entries, us) = parts.ok_or("two whole numbers: entries, and microseconds, as in 8:20")?;
    let time = Ns::from_us(us.into());
    Ok(Defer { entries, time })
}

fn load(mpps: f64, burst: u32) -> Load {
    Load { mpps, burst }
}

fn setup(args: &SimArgs, (kick, call): (PolicyKind, PolicyKind), load: Load) -> Setup {
    Setup {
        kick,
        call,
        suppression: match args.suppression {
            By::Flag => Suppression::Flag,
            By::Index => Suppression::Index,
        },
        defer: args.defer,
        costs: Costs {
            publish: Ns(args.costs.publish_ns),
            kick: Ns(args.costs.kick_ns),
            wake: Ns(args.costs.wake_ns),
            serve: Ns(args.costs.serve_ns),
            call: Ns(args.costs.call_ns),
            interrupt: Ns(args.costs.interrupt_ns),
        },
        load,
        ring: args.ring,
        packets: args.packets,
        seed: args.seed,
    }
}
