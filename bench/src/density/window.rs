//! One round: bare, measured, bare, in one process.
use super::choose::Chosen;
use crate::error::{Error, Result};
use crate::function::Running;
use crate::hopscope::Hopscope;
use serde::Serialize;
use std::time::Duration;

/// Processor time of the worker for each packet, and the probes that it ran meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Pair {
    pub(super) before_ns: f64,
    pub(super) measured_ns: f64,
    pub(super) after_ns: f64,
    /// Entry and exit together count as one.
    pub(super) probe_pairs_per_packet: f64,
    /// Of what the probes stored, what the recorder did not save before it was overwritten.
    pub(super) lost_percent: f64,
}

pub(super) fn pair(
    hopscope: &Hopscope,
    nf: &mut Running,
    chosen: &Chosen,
    milliseconds: u64,
) -> Result<Pair> {
    let patterns: Vec<&str> = chosen.patterns.iter().map(String::as_str).collect();
    let before_ns = nf.ns_per_packet(milliseconds)?;
    let recording = hopscope.record(nf.pid(), &patterns, &["--no-calibration"])?;
    let at_begin = nf.counter.packets()?;
    // The first lap of a ring takes a page fault every 256 records.
    std::thread::sleep(Duration::from_millis(milliseconds / 5));
    let measured_ns = nf.ns_per_packet(milliseconds)?;
    let packets = (nf.counter.packets()? - at_begin) as f64;
    let recorded = recording.stop()?;
    recorded.discard()?;
    // More when a name that was chosen is also one of a function that is never called.
    let (functions, refused) = (recorded.number("functions")?, recorded.number("refused")?);
    if functions < chosen.len() as f64 || refused > 0.0 {
        return Err(Error::Functions {
            wanted: chosen.len(),
            functions,
            refused,
        });
    }
    let after_ns = nf.ns_per_packet(milliseconds)?;
    let lost = recorded.number("lost")?;
    let stored = recorded.number("recorded")? + lost + recorded.number("torn")?;
    Ok(Pair {
        before_ns,
        measured_ns,
        after_ns,
        probe_pairs_per_packet: stored / 2.0 / packets,
        lost_percent: 100.0 * lost / stored.max(1.0),
    })
}
