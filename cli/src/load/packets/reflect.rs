//! `--reflect`: the far end, so that one machine or a pair of namespaces is enough.
use super::args::PacketsArgs;
use anyhow::{Context, bail};
use hopscope_load::packets::PacketsError;
use hopscope_load::packets::clock;
use hopscope_load::packets::reflect::Reflector;
use hopscope_load::packets::wait::{Idle, Wait};
use hopscope_netio::{Direction, OpenOptions, PortName};
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn run(args: &PacketsArgs, stop: &Arc<AtomicBool>) -> anyhow::Result<ExitCode> {
    let Some(rx) = &args.rx else {
        bail!("give the port to reflect: --rx packet:DEVICE");
    };
    let open = |name: &PortName, direction| {
        let options = OpenOptions {
            direction,
            ..OpenOptions::default()
        };
        name.open(options).map_err(PacketsError::opening(name))
    };
    let other = args.tx.as_ref().filter(|tx| *tx != rx);
    let direction = match other {
        Some(_) => Direction::Receive,
        None => Direction::Both,
    };
    let mut port = open(rx, direction)?;
    let mut out = match other {
        Some(tx) => Some(open(tx, Direction::Send)?),
        None => None,
    };
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "ready\n").with_context(|| format!("creating {}", path.display()))?;
    }
    let wait = if args.spin { Wait::Spin } else { Wait::Sleep };
    let idle = Idle::new(wait, clock::frequency());
    let mut reflector = Reflector::default();
    let out = out.as_mut().map(|out| &mut **out as _);
    reflector.run(port.as_mut(), out, idle, stop)?;
    let counts = reflector.counts();
    let dropped = port.counters()?.receive_dropped;
    let line = if args.json {
        json!({
            "type": "summary", "schema": 1, "received": counts.received, "sent": counts.sent,
            "unfit": counts.unfit, "dropped": counts.dropped, "receiver_dropped": dropped,
        })
        .to_string()
    } else {
        format!(
            "received {}, sent back {}, no room for {}, not fit {}, dropped by the receiving port {dropped}",
            counts.received, counts.sent, counts.dropped, counts.unfit
        )
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(ExitCode::SUCCESS)
}
