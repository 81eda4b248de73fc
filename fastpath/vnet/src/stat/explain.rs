//! What other policies would have sent, in words.
use super::error::StatError;
use super::queue_name;
use super::reading::Reading;
use serde_json::Value;
use std::io::Write;

/// # Errors
/// No policies run in shadow mode; those of `out`.
pub fn write(out: &mut impl Write, now: &Reading) -> Result<(), StatError> {
    if now.queues().all(|(_, _, queue)| queue.shadows.is_none()) {
        return Err(StatError::NoShadows);
    }
    for (pair, direction, queue) in now.queues() {
        let Some(shadows) = &queue.shadows else {
            continue;
        };
        let since_ns = counted(shadows, "since_ns")?.as_u64().unwrap_or(0);
        let did = counted(shadows, "did")?;
        let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
        let packets = number(did, "published");
        writeln!(
            out,
            "{}: {packets} packets in {:.1} s under {}: {} calls, {} spared, packets waited {:.1} us",
            queue_name(pair, direction),
            now.up_ns.saturating_sub(since_ns) as f64 / 1e9,
            queue.policy,
            number(did, "notified"),
            number(did, "suppressed"),
            number(did, "waited_ns") as f64 / packets.max(1) as f64 / 1e3,
        )?;
        writeln!(
            out,
            "  {:<16} {:>10} {:>9} {:>10} {:>9} {:>10}",
            "would", "calls", "call/pkt", "spared", "wait us", "hold max us"
        )?;
        for would in counted(shadows, "would")?.as_array().into_iter().flatten() {
            let published = number(would, "published").max(1) as f64;
            writeln!(
                out,
                "  {:<16} {:>10} {:>9.4} {:>10} {:>9.1} {:>10.1}",
                would["policy"].as_str().unwrap_or("?"),
                number(would, "notified"),
                number(would, "notified") as f64 / published,
                number(would, "suppressed"),
                number(would, "waited_ns") as f64 / published / 1e3,
                number(would, "hold_max_ns") as f64 / 1e3,
            )?;
        }
        writeln!(
            out,
            "  {}",
            counted(shadows, "said")?.as_str().unwrap_or("?")
        )?;
    }
    Ok(())
}

fn counted<'a>(value: &'a Value, name: &'static str) -> Result<&'a Value, StatError> {
    value.get(name).ok_or(StatError::Missing(name))
}
