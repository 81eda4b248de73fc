//! What happens, and what happened.
use super::{Notice, QueueCounts, ServeCounts};
use std::fmt;

impl Notice<'_> {
    /// A word for programs, and a line for people.
    pub fn told(&self) -> (&'static str, String) {
        match self {
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
        }
    }
}

impl fmt::Display for ServeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "front ends {}, rejected {}, protocol errors {}",
            self.connections, self.turned_away, self.broken_off
        )?;
        for (n, pair) in self.pairs.iter().enumerate() {
            queue(f, &format!("pair {n} tx"), &pair.tx)?;
            queue(f, &format!("pair {n} rx"), &pair.rx)?;
            let p = &pair.port;
            writeln!(
                f,
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
}

fn queue(f: &mut fmt::Formatter<'_>, name: &str, q: &QueueCounts) -> fmt::Result {
    let per = |n: u64| match q.packets {
        0 => "-".to_owned(),
        packets => format!("{:.4}", n as f64 / packets as f64),
    };
    writeln!(
        f,
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
            f,
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
        writeln!(f, "  packets a call: {}", batches.join(", "))?;
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
            f,
            "  dropped: {}; ended by errors {}",
            reasons.join(", "),
            q.broken
        )?;
    }
    Ok(())
}
