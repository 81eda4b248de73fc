//! What happens, and what happened.
use hopscope_vnet::serve::{Notice, QueueCounts, ServeCounts};
use serde_json::json;
use std::io::{self, Write};

/// Status is stderr's, data stdout's.
pub(super) fn notice(notice: &Notice<'_>, as_json: bool) -> io::Result<()> {
    let (what, text) = match notice {
        Notice::Connected => ("connected", "a front end connected".into()),
        Notice::TurnedAway => (
            "turned_away",
            "rejected a second front end: one is connected".into(),
        ),
        Notice::Queue { n, size, taken } => {
            let text = format!("queue {n} begins: {size} entries, {taken}");
            ("queue", text)
        }
        Notice::Found { n, emptied } => {
            let text = format!(
                "queue {n} goes on where its ring says, which the front end does not know; \
                 {emptied} entries went back with nothing in them"
            );
            ("queue_found", text)
        }
        Notice::Broken { n, error } => ("queue_broken", format!("queue {n} ends: {error}")),
        Notice::BrokenOff(broken) => (
            "broken_off",
            format!("the front end's connection ends: {broken}"),
        ),
        Notice::Gone => ("gone", "the front end disconnected".into()),
        Notice::Left { path, error } => (
            "socket_left",
            format!(
                "{} is left behind: {error}; the next start takes it over",
                path.display()
            ),
        ),
    };
    if as_json {
        let line = json!({ "type": "event", "schema": 1, "what": what, "text": text });
        writeln!(io::stdout(), "{line}")
    } else {
        crate::status::say!("{text}");
        Ok(())
    }
}

pub(super) fn summary(counts: &ServeCounts, as_json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if as_json {
        let mut line = serde_json::to_value(counts)?;
        line["type"] = "summary".into();
        line["schema"] = 1.into();
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(
        out,
        "front ends {}, rejected {}, protocol errors {}",
        counts.connections, counts.turned_away, counts.broken_off
    )?;
    for (n, pair) in counts.pairs.iter().enumerate() {
        queue(&mut out, &format!("pair {n} tx"), &pair.tx)?;
        queue(&mut out, &format!("pair {n} rx"), &pair.rx)?;
        let p = &pair.port;
        writeln!(
            out,
            "pair {n} port: sent {} ({} B, {} failed), received {} ({} B), dropped before it {}{}",
            p.sent,
            p.sent_bytes,
            p.send_failed,
            p.received,
            p.received_bytes,
            p.receive_dropped,
            if p.device_gone {
                " at least (it is gone)"
            } else {
                ""
            }
        )?;
    }
    Ok(())
}

fn queue(out: &mut impl Write, name: &str, q: &QueueCounts) -> io::Result<()> {
    let per = |n: u64| match q.packets {
        0 => "-".to_owned(),
        packets => format!("{:.4}", n as f64 / packets as f64),
    };
    writeln!(
        out,
        "{name}: packets {} ({} B), kicks {} ({} a packet), calls {} ({}), suppressed {}, waits {}",
        q.packets,
        q.bytes,
        q.kicks,
        per(q.kicks),
        q.calls,
        per(q.calls),
        q.call_policy.suppressed,
        q.waits
    )?;
    if q.found > 0 {
        writeln!(
            out,
            "  begun where the ring said {}, entries given back empty {}",
            q.found, q.emptied
        )?;
    }
    let batches = q.call_policy.batches.iter().enumerate();
    let batches: Vec<String> = batches
        .filter(|(_, count)| **count > 0)
        .map(|(bucket, count)| format!("{}+: {count}", 1u32 << bucket))
        .collect();
    if !batches.is_empty() {
        writeln!(out, "  packets a call: {}", batches.join(", "))?;
    }
    let d = &q.drops;
    let reasons = [
        ("empty", d.empty),
        ("too long", d.too_long),
        ("left undone", d.unfinished),
        ("bad header", d.header),
        ("cut", d.cut),
        ("queue ended", d.ended),
    ];
    let reasons = reasons.iter().filter(|(_, count)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(why, n)| format!("{why} {n}")).collect();
    if !reasons.is_empty() || q.broken > 0 {
        writeln!(
            out,
            "  dropped: {}; ended by errors {}",
            reasons.join(", "),
            q.broken
        )?;
    }
    Ok(())
}
