//! `hopscope load bridge`: a cable between two ports that loses, delays and damages what goes over it.
use crate::units::parse_time;
use anyhow::Context;
use clap::Args;
use hopscope_event::Ns;
use hopscope_netio::bridge::{Bridge, Impairments, LaneCounts, Waiting};
use hopscope_netio::clock::measure_frequency;
use hopscope_netio::{OpenOptions, PortName};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Forwards frames between two ports, both ways, until SIGINT or SIGTERM; prints what became of them. Which frames are
/// lost follows from --seed and their number alone.
#[derive(Args)]
pub struct BridgeArgs {
    /// First port
    #[arg(value_name = "PORT")]
    a: PortName,
    /// Second port
    #[arg(value_name = "PORT")]
    b: PortName,
    /// Part of the frames that is lost, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    loss: f64,
    /// Part of the segments that end a write (PSH) that is lost once, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    tail_loss: f64,
    /// Part that arrives twice, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    duplicate: f64,
    /// Part that three later frames overtake, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    reorder: f64,
    /// Part in which a bit is flipped, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    corrupt: f64,
    /// Delay of each frame
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    delay: Duration,
    /// Added to the delay: random, up to this
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    jitter: Duration,
    /// Impair frames from the first to the second port only; those back are only delayed
    #[arg(long)]
    one_way: bool,
    /// Seed of what becomes of each frame
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Forward frames of up to 64 KiB as one (packet, tap)
    #[arg(long)]
    offload: bool,
    /// Busy-poll: delays to the microsecond
    #[arg(long)]
    spin: bool,
    /// Create this file when forwarding
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Print one JSON object: the summary
    #[arg(long)]
    json: bool,
}

impl BridgeArgs {
    fn impairments(&self) -> [Impairments; 2] {
        let ns = |time: Duration| Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let delays = Impairments {
            delay: ns(self.delay),
            jitter: ns(self.jitter),
            ..Impairments::default()
        };
        let all = Impairments {
            drop: self.loss / 100.0,
            drop_tail: self.tail_loss / 100.0,
            duplicate: self.duplicate / 100.0,
            reorder: self.reorder / 100.0,
            corrupt: self.corrupt / 100.0,
            ..delays
        };
        [all, if self.one_way { delays } else { all }]
    }
}

pub fn run(args: &BridgeArgs) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("taking over signals")?;
    }
    let open = |name: &PortName| {
        let options = OpenOptions {
            gso: args.offload,
            ..OpenOptions::default()
        };
        name.open(options)
            .with_context(|| format!("opening {name}"))
    };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let [there, back] = args.impairments();
    let frequency = measure_frequency();
    let mut bridge = Bridge::new(a, b, there, back, args.seed, frequency, false)?;
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "ready\n").with_context(|| format!("creating {}", path.display()))?;
    }
    let waiting = if args.spin {
        Waiting::Spin
    } else {
        Waiting::Sleep
    };
    bridge.run(&stop, waiting)?;
    let mut lanes = Vec::new();
    for (counts, port) in bridge.counts().into_iter().zip(bridge.ports_mut()) {
        lanes.push((counts, port.counters()?.receive_dropped));
    }
    let mut out = std::io::stdout();
    if args.json {
        let line = json!({
            "type": "summary", "schema": 1, "there": object(lanes[0]), "back": object(lanes[1]),
        });
        writeln!(out, "{line}")?;
        return Ok(ExitCode::SUCCESS);
    }
    for (way, (c, not_received)) in ["there", "back"].iter().zip(lanes) {
        writeln!(
            out,
            "{way}: received {}, forwarded {}, lost {}, duplicated {}, reordered {}, corrupted {}, held {}; \
             too many held {}, not sendable {}, dropped before the port {not_received}",
            c.received,
            c.released,
            c.dropped,
            c.duplicated,
            c.reordered,
            c.corrupted,
            c.held,
            c.overrun,
            c.not_sendable
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn object((c, receive_dropped): (LaneCounts, u64)) -> Value {
    json!({
        "received": c.received, "released": c.released, "dropped": c.dropped, "duplicated": c.duplicated,
        "reordered": c.reordered, "corrupted": c.corrupted, "held": c.held, "overrun": c.overrun,
        "not_sendable": c.not_sendable, "receive_dropped": receive_dropped,
    })
}
