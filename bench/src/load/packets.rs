//! Packets a second: sent with a stamp, sent and matched, and through memory alone.
use super::Bench;
use super::commands::Ports;
use super::network::Namespace;
use crate::error::{Error, Result};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;

/// One way of sending packets as fast as it goes. Its name begins with the figure that it is one of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    ports: Ports,
}

pub(crate) const WAYS: [Way; 6] = [
    Way {
        name: "tx_stamped_pps packet",
        ports: Ports::Packet { receives: false },
    },
    Way {
        name: "tx_stamped_pps xdp",
        ports: Ports::Xdp { receives: false },
    },
    Way {
        name: "matched_pps packet",
        ports: Ports::Packet { receives: true },
    },
    Way {
        name: "matched_pps xdp",
        ports: Ports::Xdp { receives: true },
    },
    Way {
        name: "inmem_pps 1 thread",
        ports: Ports::Memory { threads: 1 },
    },
    Way {
        name: "inmem_pps 2 threads",
        ports: Ports::Memory { threads: 2 },
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Rate {
    /// Matched where something receives, sent otherwise.
    pub(crate) pps: Spread,
    /// The same for each second of processor time that it used, start-up included: what a machine
    /// without other work gives to each processor that it uses.
    pub(crate) per_cpu_s: Spread,
    /// Share of what was sent that did not arrive, median.
    pub(crate) lost_percent: Option<f64>,
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>, way: Way) -> Result<Rate> {
    let (mut rates, mut per_cpu_s, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.repetitions {
        bench.say(way.name, round, bench.repetitions);
        // New ones each time: a cable's queue and a ring's first lap are part of what a user meets.
        let (here, there) = (Namespace::new()?, Namespace::new()?);
        let sends_only = matches!(
            way.ports,
            Ports::Packet { receives: false } | Ports::Xdp { receives: false }
        );
        here.cable("p0", if sends_only { &there } else { &here }, "p1")?;
        let ran = bench.load.packets(&here, way.ports, bench.milliseconds)?;
        let pps = ran.matched.unwrap_or(ran.sent) / ran.seconds;
        let lost = ran.matched.map(|m| 100.0 * (1.0 - m / ran.sent));
        bench.sample(json!({
            "what": way.name, "round": round, "pps": pps, "lost_percent": lost,
            "sent": ran.sent, "matched": ran.matched, "seconds": ran.seconds, "cpu_s": ran.cpu_s,
        }))?;
        rates.push(pps);
        per_cpu_s.push(pps * ran.seconds / ran.cpu_s);
        losses.extend(lost);
    }
    let nothing = || Error::Nothing { what: way.name };
    Ok(Rate {
        pps: Spread::of(&rates).ok_or_else(nothing)?,
        per_cpu_s: Spread::of(&per_cpu_s).ok_or_else(nothing)?,
        lost_percent: Spread::of(&losses).map(|s| s.median),
    })
}
