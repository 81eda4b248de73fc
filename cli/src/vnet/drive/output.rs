//! What was agreed, and what happened.
use super::DriveArgs;
use crate::json::tagged;
use hopscope_vnet::Negotiated;
use hopscope_vnet::drive::{DriveCounts, per_packet};
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

pub(super) fn summary(args: &DriveArgs, counts: &DriveCounts) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let sent = counts.tx.packets;
    let main = counts.main(args.sink);
    if args.json {
        let mut line = tagged("summary", counts)?;
        line["policy"] = json!(args.kick_policy);
        line["sent"] = sent.into();
        line["received"] = counts.rx.packets.into();
        line["kicks"] = main.kicks.into();
        line["calls"] = main.calls.into();
        line["kicks_per_packet"] = per_packet(main.kicks, main.packets).into();
        line["calls_per_packet"] = per_packet(main.calls, main.packets).into();
        line["packets_per_s"] = counts.packets_per_s(args.sink).into();
        line["ring_full"] = counts.tx.full.into();
        writeln!(out, "{line}")?;
        return Ok(());
    }
    counts.write(&mut out, args.sink)?;
    Ok(())
}
