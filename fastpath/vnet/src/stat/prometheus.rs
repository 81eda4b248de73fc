//! Prometheus' text format, version 0.0.4: each metric with HELP and TYPE once, then its samples together.
use super::reading::{Queue, Reading, Times};
use std::fmt::{self, Write};

/// Upper ends of the buckets of times, in nanoseconds.
const ENDS_NS: [u64; 15] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

type Counter = (&'static str, &'static str, fn(&Queue) -> Option<u64>);

const COUNTERS: [Counter; 12] = [
    (
        "kicks",
        "Notifications by the driver, as its eventfd adds them up.",
        |q| Some(q.kicks),
    ),
    (
        "kicks_seen",
        "Times this end saw that it had been kicked.",
        |q| Some(q.kicks_seen),
    ),
    (
        "calls",
        "Notifications written to the driver's eventfd.",
        |q| Some(q.calls),
    ),
    ("packets", "Packets handed on.", |q| Some(q.packets)),
    ("bytes", "Bytes of packets handed on.", |q| Some(q.bytes)),
    (
        "chains",
        "Descriptor chains given back to the driver.",
        |q| Some(q.chains),
    ),
    (
        "waits",
        "Times a packet waited for chains (rx) or for room in the port (tx).",
        |q| Some(q.waits),
    ),
    (
        "alarms",
        "Alarms of deferred kicks that came before the kick.",
        |q| Some(q.alarms),
    ),
    (
        "looks",
        "Times that the adaptive kick policy polled again after the cost of a kick, instead of enabling kicks.",
        |q| Some(q.looks),
    ),
    (
        "found",
        "Begins at a place that was read from the ring: the front end did not know it.",
        |q| Some(q.found),
    ),
    (
        "emptied",
        "Entries given back with nothing in them for that.",
        |q| Some(q.emptied),
    ),
    (
        "ring_full",
        "Looks that found more than those before, and the whole split ring available.",
        |q| q.ring_full,
    ),
];

/// # Errors
/// None but those of formatting.
pub fn text(now: &Reading) -> Result<String, fmt::Error> {
    let mut out = String::new();
    one(
        &mut out,
        "up_seconds",
        "gauge",
        "Since the back end began.",
        now.up_ns as f64 / 1e9,
    )?;
    let connected = f64::from(u8::from(now.connected));
    one(
        &mut out,
        "front_end_connected",
        "gauge",
        "Whether a front end is connected.",
        connected,
    )?;
    let connections = now.connections as f64;
    one(
        &mut out,
        "front_ends_total",
        "counter",
        "Front ends that connected.",
        connections,
    )?;
    for (name, help, of) in COUNTERS {
        // No queue tells it: packed rings do not say how full they are.
        if queues(now).all(|(_, queue)| of(queue).is_none()) {
            continue;
        }
        head(&mut out, &format!("{name}_total"), "counter", help)?;
        for (labels, queue) in queues(now) {
            if let Some(count) = of(queue) {
                writeln!(out, "hopscope_vnet_{name}_total{{{labels}}} {count}")?;
            }
        }
    }
    head(
        &mut out,
        "drops_total",
        "counter",
        "Packets that went no further, by reason.",
    )?;
    for (labels, queue) in queues(now) {
        for (reason, count) in &queue.drops {
            writeln!(
                out,
                "hopscope_vnet_drops_total{{{labels},reason=\"{reason}\"}} {count}"
            )?;
        }
    }
    ports(&mut out, now)?;
    policies(&mut out, now)?;
    head(
        &mut out,
        "sojourn_seconds",
        "histogram",
        "From the look that found a sent packet available until it was given back.",
    )?;
    for (labels, queue) in queues(now) {
        if let Some(times) = &queue.sojourn {
            histogram(&mut out, "sojourn_seconds", &labels, times)?;
        }
    }
    Ok(out)
}

fn ports(out: &mut String, now: &Reading) -> fmt::Result {
    type Of = fn(&super::reading::Port) -> u64;
    let counters: [(&str, &str, Of); 2] = [
        (
            "port_receive_dropped_total",
            "Packets dropped before the port gave them.",
            |p| p.receive_dropped,
        ),
        (
            "port_send_failed_total",
            "Packets that the port's device refused.",
            |p| p.send_failed,
        ),
    ];
    for (name, help, of) in counters {
        head(out, name, "counter", help)?;
        for (pair, n) in now.pairs.iter().zip(0u32..) {
            writeln!(
                out,
                "hopscope_vnet_{name}{{pair=\"{n}\"}} {}",
                of(&pair.port)
            )?;
        }
    }
    Ok(())
}

fn policies(out: &mut String, now: &Reading) -> fmt::Result {
    head(out, "live", "gauge", "Whether the queue's ring is live.")?;
    for (labels, queue) in queues(now) {
        let live = u8::from(queue.ring.is_some());
        writeln!(out, "hopscope_vnet_live{{{labels}}} {live}")?;
    }
    head(out, "policy_info", "gauge", "The policies at work.")?;
    for (labels, queue) in queues(now) {
        let (calls, kicks) = (&queue.policy, &queue.kick_policy);
        writeln!(
            out,
            "hopscope_vnet_policy_info{{{labels},policy=\"{calls}\",kick_policy=\"{kicks}\"}} 1"
        )?;
    }
    type Of = fn(&super::reading::ByPolicy) -> u64;
    let counters: [(&str, &str, Of); 3] = [
        (
            "policy_published_total",
            "Packets that the driver could see as used.",
            |p| p.published,
        ),
        (
            "policy_notified_total",
            "Calls that a policy decided on.",
            |p| p.notified,
        ),
        (
            "policy_suppressed_total",
            "Times the driver needed no call.",
            |p| p.suppressed,
        ),
    ];
    for (name, help, of) in counters {
        head(out, name, "counter", help)?;
        for (labels, queue) in queues(now) {
            for one in &queue.policies {
                let count = of(one);
                writeln!(
                    out,
                    "hopscope_vnet_{name}{{{labels},policy=\"{}\"}} {count}",
                    one.policy
                )?;
            }
        }
    }
    head(
        out,
        "batch_packets",
        "histogram",
        "Packets that one call announced.",
    )?;
    for (labels, queue) in queues(now) {
        for one in &queue.policies {
            let labels = format!("{labels},policy=\"{}\"", one.policy);
            let mut so_far = 0;
            // The last has no end: powers of two from there on are together.
            let (last, bounded) = one.batches.split_last().unwrap_or((&0, &[]));
            for (count, n) in bounded.iter().zip(0u32..) {
                so_far += count;
                let end = (1u64 << (n + 1)) - 1;
                writeln!(
                    out,
                    "hopscope_vnet_batch_packets_bucket{{{labels},le=\"{end}\"}} {so_far}"
                )?;
            }
            so_far += last;
            ends(out, "batch_packets", &labels, so_far, one.announced as f64)?;
        }
    }
    head(
        out,
        "hold_seconds",
        "histogram",
        "How long the oldest packet of an announcement was unannounced.",
    )?;
    for (labels, queue) in queues(now) {
        for one in &queue.policies {
            let labels = format!("{labels},policy=\"{}\"", one.policy);
            histogram(out, "hold_seconds", &labels, &one.hold)?;
        }
    }
    Ok(())
}

fn queues(now: &Reading) -> impl Iterator<Item = (String, &Queue)> {
    now.queues()
        .map(|(pair, direction, queue)| (format!("pair=\"{pair}\",queue=\"{direction}\""), queue))
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP hopscope_vnet_{name} {help}")?;
    writeln!(out, "# TYPE hopscope_vnet_{name} {kind}")
}

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: f64) -> fmt::Result {
    head(out, name, kind, help)?;
    writeln!(out, "hopscope_vnet_{name} {value}")
}

/// Of a cell that spans an end nothing is counted below that end: at most a hundredth of its value is meant.
fn histogram(out: &mut String, name: &str, labels: &str, times: &Times) -> fmt::Result {
    for end_ns in ENDS_NS {
        let (end, count) = (end_ns as f64 / 1e9, times.up_to(end_ns));
        writeln!(
            out,
            "hopscope_vnet_{name}_bucket{{{labels},le=\"{end}\"}} {count}"
        )?;
    }
    ends(out, name, labels, times.count, times.sum_ns as f64 / 1e9)
}

fn ends(out: &mut String, name: &str, labels: &str, count: u64, sum: f64) -> fmt::Result {
    writeln!(
        out,
        "hopscope_vnet_{name}_bucket{{{labels},le=\"+Inf\"}} {count}"
    )?;
    writeln!(out, "hopscope_vnet_{name}_sum{{{labels}}} {sum}")?;
    writeln!(out, "hopscope_vnet_{name}_count{{{labels}}} {count}")
}
