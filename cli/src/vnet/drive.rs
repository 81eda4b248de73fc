//! `hopscope vnet drive`: a driver in user space, as a source, a sink or a bridge.
use super::recording;
use crate::command::stop_socket;
use crate::units::parse_time;
use crate::{event_file, netns};
use anyhow::{Context, bail};
use clap::Args;
use hopscope_netio::{PacketIo, TapOptions, TapPort};
use hopscope_openloop::Arrivals;
use hopscope_serving::events::EventFile;
use hopscope_vnet::Ns;
use hopscope_vnet::drive::{Arm, DrivePlan, Driver, Rate, Source, Work};
use hopscope_vnet::events::End;
use hopscope_vnet::policy::PolicyKind;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

mod output;

/// A vhost-user front end without a virtual machine: a virtio-net driver in user space. Sends numbered UDP frames,
/// receives them, or forwards packets of a TAP device, and counts every kick and interrupt.
#[derive(Args)]
pub struct DriveArgs {
    /// vhost-user socket on which the back end listens
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Listen on the socket; the back end connects (its --client)
    #[arg(long)]
    listen: bool,
    /// When to kick the back end for transmit buffers
    ///
    /// Policies: plain, suppress, event-idx, tam[:LIMIT], batch[:LIMIT], ahc:US:LIMIT, ahc-window:US:LIMIT,
    /// coal:PACKETS:US, adaptive.
    #[arg(long, value_name = "POLICY", default_value = "event-idx")]
    kick_policy: PolicyKind,
    /// When to kick the back end for receive buffers, of the same policies
    #[arg(long, value_name = "POLICY", default_value = "batch")]
    rx_kick_policy: PolicyKind,
    /// Use packed instead of split virtqueues
    #[arg(long)]
    packed: bool,
    /// Queue size (power of two)
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: u16,
    /// Do not negotiate VIRTIO_F_EVENT_IDX; suppress notifications by flags
    #[arg(long)]
    no_event_idx: bool,
    /// Before sleep, enable the interrupt for the first used buffer or three-quarters
    ///
    /// first: the next used buffer. three-quarters: three quarters of all outstanding buffers.
    #[arg(long, value_name = "WHERE", value_parser = arm, default_value = "first")]
    arm: Arm,
    /// Busy-poll for this time in µs before sleep; always: never enable interrupts
    #[arg(long, value_name = "US", default_value = "60")]
    spin: Spin,
    /// Frame size in bytes without FCS (60 … 1514)
    ///
    /// MIN-MAX uses all lengths in the range; each buffer keeps its length.
    #[arg(long, value_name = "BYTES", default_value = "64", conflicts_with_all = ["sink", "tap"])]
    size: Sizes,
    /// Packets per second (open loop), or saturate
    #[arg(long, value_name = "PPS", default_value = "saturate", conflicts_with_all = ["sink", "tap"])]
    rate: Pps,
    /// Distribution of send times: even, poisson
    #[arg(long, value_name = "HOW", value_parser = arrivals, default_value = "even", conflicts_with_all = ["sink", "tap"])]
    arrivals: Arrivals,
    /// Seed of --arrivals poisson
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Expect the frames back, with at most N in flight, and wait for all of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["sink", "tap"])]
    echo: Option<u64>,
    /// Stop after N packets are sent, or received with --sink
    #[arg(long, value_name = "N", conflicts_with = "tap", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this time (500ms, 5s, 2m) [default: --count, SIGTERM or SIGINT]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Do not send
    #[arg(long)]
    sink: bool,
    /// Create this TAP device and forward between it and the back end
    #[arg(long, value_name = "NAME", conflicts_with = "sink")]
    tap: Option<String>,
    /// Network namespace of the TAP device: ip-netns name or path
    #[arg(long, value_name = "NAME|PATH", requires = "tap")]
    netns: Option<String>,
    /// Disable checksum offload and TSO on the TAP device
    #[arg(long, requires = "tap")]
    no_offload: bool,
    /// Record each kick, interrupt and reclaim for `hopscope report`
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Create this file when both queues run, or with --listen when listening
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Print one JSON object per line: ready, then a summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
struct Spin(Option<Ns>);

impl FromStr for Spin {
    type Err = String;

    fn from_str(text: &str) -> Result<Spin, String> {
        if text == "always" {
            return Ok(Spin(None));
        }
        let us = text.parse::<u32>();
        let us = us.map_err(|_| "microseconds, or always")?;
        Ok(Spin(Some(Ns::from_us(us.into()))))
    }
}

#[derive(Clone, Copy)]
struct Sizes(usize, usize);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let bytes = |word: &str| word.parse().map_err(|_| "BYTES or MIN-MAX".to_owned());
        Ok(Sizes(bytes(least)?, bytes(most)?))
    }
}

#[derive(Clone, Copy)]
struct Pps(Option<f64>);

impl FromStr for Pps {
    type Err = String;

    fn from_str(text: &str) -> Result<Pps, String> {
        if text == "saturate" {
            return Ok(Pps(None));
        }
        let pps = text.parse().ok().filter(|pps| (0.001..=1e9).contains(pps));
        Ok(Pps(Some(
            pps.ok_or("0.001 to 1e9 packets a second, or saturate")?,
        )))
    }
}

fn arm(text: &str) -> Result<Arm, String> {
    match text {
        "first" => Ok(Arm::First),
        "three-quarters" => Ok(Arm::ThreeQuarters),
        _ => Err("first or three-quarters".into()),
    }
}

fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text {
        "even" => Ok(Arrivals::Constant),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err("even or poisson".into()),
    }
}

pub fn run(args: DriveArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_socket()?;
    let limit = args.duration.map(duration).transpose()?;
    let (events, file) = recording::begin(args.output.as_deref(), End::Front, 1)?;
    let file = file.map(EventFile::start);
    let plan = DrivePlan {
        socket: args.socket.clone(),
        listen: args.listen,
        packed: args.packed,
        event_idx: !args.no_event_idx,
        ring: args.ring,
        kicks: args.kick_policy,
        rx_kicks: args.rx_kick_policy,
        arm: args.arm,
        spin: args.spin.0,
        count: args.count,
        duration: limit,
        offload: !args.no_offload,
        work: work(&args)?,
        events,
    };
    let mut can_connect = Ok(());
    let driver = Driver::start(plan, stop.as_fd(), &mut || can_connect = ready(&args))?;
    can_connect?;
    output::ready(&args, driver.taken())?;
    if !args.listen {
        ready(&args)?;
    }
    let driven = driver.run(stop.as_fd());
    let failed = driven.as_ref().err().map(ToString::to_string);
    let kept = event_file::finish(file, failed, args.json);
    let counts = driven?;
    output::summary(&args, &counts)?;
    kept?;
    if counts.tx.entries != counts.tx.packets {
        bail!("packet counters do not add up: a bug in hopscope");
    }
    let wrong = counts.came.wrong + counts.came.disordered;
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn ready(args: &DriveArgs) -> anyhow::Result<()> {
    match &args.ready_file {
        Some(path) => {
            std::fs::write(path, "").with_context(|| format!("writing {}", path.display()))
        }
        None => Ok(()),
    }
}

fn duration(time: Duration) -> anyhow::Result<Ns> {
    match u64::try_from(time.as_nanos()) {
        Ok(ns @ 1_000_000..=1_000_000_000_000_000) => Ok(Ns(ns)),
        _ => bail!(
            "--duration {}: 0.001 to 1e6 seconds are possible",
            time.as_secs_f64()
        ),
    }
}

fn work(args: &DriveArgs) -> anyhow::Result<Work> {
    if args.sink {
        return Ok(Work::Sink);
    }
    let Some(tap) = &args.tap else {
        return Ok(Work::Source(Source {
            shortest: args.size.0,
            longest: args.size.1,
            rate: match args.rate.0 {
                None => Rate::Saturate,
                Some(pps) => Rate::At {
                    pps,
                    arrivals: args.arrivals,
                    seed: args.seed,
                },
            },
            echo: args.echo,
        }));
    };
    let port = netns::within(args.netns.as_deref(), || {
        let options = TapOptions {
            queues: 1,
            gso: !args.no_offload,
        };
        let port = TapPort::open(tap, options)?.into_iter().next();
        let port = port.context("a TAP device without a queue")?;
        Ok(Box::new(port) as Box<dyn PacketIo>)
    })?;
    Ok(Work::Bridge(port))
}
