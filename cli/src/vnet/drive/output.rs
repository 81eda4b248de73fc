//! What was agreed, and what happened.
use super::DriveArgs;
use hopscope_vnet::Negotiated;
use hopscope_vnet::drive::{DriveCounts, DriveQueueCounts};
use serde_json::json;
use std::io::{self, Write};

pub(super) fn ready(args: &DriveArgs, taken: Negotiated) -> io::Result<()> {
    let features = taken.to_string();
    if args.json {
        let line = json!({
            "type": "ready", "schema": 1, "socket": args.socket, "features": features,
            "policy": args.kick_policy, "rx_policy": args.rx_kick_policy, "ring": args.ring,
        });
        return writeln!(io::stdout(), "{line}");
    }
    crate::status::say!(
        "driving {}: {features}; {} entries; kicks: {}",
        args.socket.display(),
        args.ring,
        args.kick_policy
    );
    Ok(())
}

fn per(count: u64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| count as f64 / packets as f64)
}

pub(super) fn summary(args: &DriveArgs, counts: &DriveCounts) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let sent = counts.tx.packets;
    let elapsed_s = counts.spent.elapsed.0 as f64 / 1e9;
    // Of the direction that this end is there for.
    let main = if args.sink { &counts.rx } else { &counts.tx };
    let packets_per_s = main.packets as f64 / elapsed_s;
    if args.json {
        let mut line = serde_json::to_value(counts)?;
        line["type"] = "summary".into();
        line["schema"] = 1.into();
        line["policy"] = json!(args.kick_policy);
        line["sent"] = sent.into();
        line["received"] = counts.rx.packets.into();
        line["kicks"] = main.kicks.into();
        line["calls"] = main.calls.into();
        line["kicks_per_packet"] = per(main.kicks, main.packets).into();
        line["calls_per_packet"] = per(main.calls, main.packets).into();
        line["packets_per_s"] = packets_per_s.into();
        line["ring_full"] = counts.tx.full.into();
        writeln!(out, "{line}")?;
        return Ok(());
    }
    queue(&mut out, "tx", &counts.tx)?;
    queue(&mut out, "rx", &counts.rx)?;
    let (spent, latency) = (&counts.spent, &counts.latency);
    let us = |ns: hopscope_vnet::Ns| ns.0 as f64 / 1e3;
    writeln!(
        out,
        "{packets_per_s:.0} packets/s in {elapsed_s:.3} s; latency p50 {:.1} us, p99 {:.1} us, max {:.1} us; cpu {:.3} s, \
         switches {} voluntary, {} not",
        us(latency.p50),
        us(latency.p99),
        us(latency.max),
        spent.cpu.0 as f64 / 1e9,
        spent.voluntary_switches,
        spent.involuntary_switches
    )?;
    let came = &counts.came;
    writeln!(
        out,
        "came: ours {} ({} out of order, {} with other bytes), others {}, dropped {}",
        came.own, came.disordered, came.wrong, came.others, came.dropped
    )?;
    if let Some(port) = &counts.port {
        writeln!(
            out,
            "port: sent {} ({} failed), received {}, dropped before it {}",
            port.sent, port.send_failed, port.received, port.receive_dropped
        )?;
    }
    Ok(())
}

fn queue(out: &mut impl Write, name: &str, q: &DriveQueueCounts) -> io::Result<()> {
    let per = |n| per(n, q.packets).map_or("-".to_owned(), |per| format!("{per:.4}"));
    writeln!(
        out,
        "{name}: packets {} ({} B), kicks {} ({} a packet), calls {} ({}), suppressed {}, full {}, held {} (at most {:.1} us)",
        q.packets,
        q.bytes,
        q.kicks,
        per(q.kicks),
        q.calls,
        per(q.calls),
        q.kick_policy.suppressed,
        q.full,
        q.kick_policy.holds,
        q.kick_policy.hold_max.0 as f64 / 1e3
    )
}
