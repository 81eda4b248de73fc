//! Rows for people, in the manner of sar: a head, then a line for each queue.
use super::queue_name;
use super::reading::{Queue, Reading, Times};
use std::io::{self, Write};

/// Rows under one head.
const ROWS: usize = 24;

#[derive(Default)]
pub struct Table {
    rows: usize,
}

impl Table {
    /// Since the start without `before`, else what happened since.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &mut self,
        out: &mut impl Write,
        before: Option<&Reading>,
        now: &Reading,
    ) -> io::Result<()> {
        let began_ns = before.map_or(0, |reading| reading.up_ns);
        let seconds = now.up_ns.saturating_sub(began_ns) as f64 / 1e9;
        if before.is_none() {
            let whom = if now.connected {
                "one is there"
            } else {
                "none is there"
            };
            writeln!(
                out,
                "up {seconds:.1} s, front ends {} ({whom})",
                now.connections
            )?;
        }
        let mut earlier = before.map(Reading::queues);
        for (pair, direction, queue) in now.queues() {
            if self.rows.is_multiple_of(ROWS) {
                head(out, before.is_some())?;
            }
            self.rows += 1;
            let earlier = earlier.as_mut().and_then(Iterator::next);
            let earlier = earlier.map(|(_, _, queue)| queue);
            row(
                out,
                now.up_ns,
                &queue_name(pair, direction),
                earlier,
                queue,
                seconds,
            )?;
        }
        if before.is_none() {
            for (pair, direction, queue) in now.queues() {
                by_policy(out, &queue_name(pair, direction), queue)?;
            }
        }
        Ok(())
    }
}

/// With `None` as what JSON has for what was not measured.
fn us(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| format!("{:.1}", ns as f64 / 1e3))
}

fn head(out: &mut impl Write, rates: bool) -> io::Result<()> {
    let of = |word: &str| {
        if rates {
            format!("{word}/s")
        } else {
            word.to_owned()
        }
    };
    writeln!(
        out,
        "{:>8} {:>5} {:<14} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6} {:>7} {:>7} {:>8} {:>8} {:>8} {:>7} {:>7}",
        "up s",
        "queue",
        "policy",
        of("packet"),
        of("kB"),
        of("kick"),
        of("call"),
        of("spared"),
        "kick/pkt",
        "call/pkt",
        "batch",
        "hold us",
        "p99",
        "stay us",
        "p99",
        of("wait"),
        of("full"),
        of("drop"),
    )
}

fn row(
    out: &mut impl Write,
    up_ns: u64,
    name: &str,
    before: Option<&Queue>,
    now: &Queue,
    seconds: f64,
) -> io::Result<()> {
    let since = |of: &dyn Fn(&Queue) -> u64| of(now).saturating_sub(before.map_or(0, of));
    let shown = |count: u64| match before {
        None => count.to_string(),
        Some(_) => format!("{:.0}", count as f64 / seconds.max(1e-9)),
    };
    let ratio = |n: u64, of: u64, digits: usize| match of {
        0 => "-".to_owned(),
        _ => format!("{:.digits$}", n as f64 / of as f64),
    };
    let packets = since(&|q| q.packets);
    let (kicks, calls) = (since(&|q| q.kicks), since(&|q| q.calls));
    let spared = since(&|q| q.sum(|one| one.suppressed));
    let announced = since(&|q| q.sum(|one| one.announced));
    let notified = since(&|q| q.sum(|one| one.notified));
    let hold = now
        .hold()
        .since(&before.map(Queue::hold).unwrap_or_default());
    let stay = now.sojourn.as_ref().map(|times| {
        let earlier = before.and_then(|queue| queue.sojourn.clone());
        times.since(&earlier.unwrap_or_default())
    });
    let stay = |part| us(stay.as_ref().and_then(|times: &Times| times.quantile(part)));
    let full = now.ring_full.map_or_else(
        || "-".into(),
        |_| shown(since(&|q| q.ring_full.unwrap_or(0))),
    );
    writeln!(
        out,
        "{:>8.1} {name:>5} {:<14} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6} {:>7} {:>7} {:>8} {:>8} {:>8} {:>7} {:>7}",
        up_ns as f64 / 1e9,
        now.policy,
        shown(packets),
        shown(since(&|q| q.bytes) / 1_000),
        shown(kicks),
        shown(calls),
        shown(spared),
        ratio(kicks, packets, 4),
        ratio(calls, packets, 4),
        ratio(announced, notified, 1),
        us(hold.quantile(0.5)),
        us(hold.quantile(0.99)),
        stay(0.5),
        stay(0.99),
        shown(since(&|q| q.waits)),
        full,
        shown(since(&Queue::dropped)),
    )
}

/// Where several were at work: each with what it did.
fn by_policy(out: &mut impl Write, name: &str, queue: &Queue) -> io::Result<()> {
    if queue.policies.len() < 2 {
        return Ok(());
    }
    for one in &queue.policies {
        writeln!(
            out,
            "  {name} {:<14} packets {}, calls {} ({:.4} a packet), spared {}, hold p50 {} us, p99 {} us",
            one.policy,
            one.published,
            one.notified,
            one.notified as f64 / one.published.max(1) as f64,
            one.suppressed,
            us(one.hold.quantile(0.5)),
            us(one.hold.quantile(0.99)),
        )?;
    }
    Ok(())
}
