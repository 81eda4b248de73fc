//! One round: bare, measured and with stamps only, bare, in one process.
use super::chosen::Chosen;
use crate::error::{Error, Result};
use crate::function::Running;
use crate::hopscope::{Hopscope, Recorded};
use serde::Serialize;
use std::time::Duration;

/// Processor time of the worker for each packet, and the probes that it ran meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Pair {
    pub(super) before_ns: f64,
    pub(super) measured_ns: f64,
    /// With probes at the same places that read the clock and store nothing.
    pub(super) stamps_ns: f64,
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
    stamps_first: bool,
) -> Result<Pair> {
    let before_ns = nf.ns_per_packet(milliseconds)?;
    let first = if stamps_first {
        Some(stamps_ns(hopscope, nf, chosen, milliseconds)?)
    } else {
        None
    };
    let measured = measured(hopscope, nf, chosen, milliseconds)?;
    let stamps_ns = match first {
        Some(ns) => ns,
        None => stamps_ns(hopscope, nf, chosen, milliseconds)?,
    };
    let after_ns = nf.ns_per_packet(milliseconds)?;
    Ok(Pair {
        before_ns,
        measured_ns: measured.ns,
        stamps_ns,
        after_ns,
        probe_pairs_per_packet: measured.stored / 2.0 / measured.packets,
        lost_percent: 100.0 * measured.lost / measured.stored.max(1.0),
    })
}

pub(super) struct Measured {
    ns: f64,
    packets: f64,
    /// Records, of which so many were lost.
    stored: f64,
    lost: f64,
}

impl Measured {
    pub(super) fn executions_per_packet(&self) -> f64 {
        self.stored / self.packets
    }
}

pub(super) fn measured(
    hopscope: &Hopscope,
    nf: &mut Running,
    chosen: &Chosen,
    milliseconds: u64,
) -> Result<Measured> {
    let patterns: Vec<&str> = chosen.patterns.iter().map(String::as_str).collect();
    let recording = hopscope.record(nf.pid(), &patterns, &["--no-calibration"])?;
    let at_begin = nf.counter.packets()?;
    // The first lap of a ring takes a page fault every 256 records.
    std::thread::sleep(Duration::from_millis(milliseconds / 5));
    let ns = nf.ns_per_packet(milliseconds)?;
    let packets = (nf.counter.packets()? - at_begin) as f64;
    let recorded = recording.stop()?;
    recorded.discard()?;
    expect(&recorded, chosen)?;
    let lost = recorded.number("lost")?;
    let stored = recorded.number("recorded")? + lost + recorded.number("torn")?;
    Ok(Measured {
        ns,
        packets,
        stored,
        lost,
    })
}

fn stamps_ns(
    hopscope: &Hopscope,
    nf: &mut Running,
    chosen: &Chosen,
    milliseconds: u64,
) -> Result<f64> {
    let patterns: Vec<&str> = chosen.patterns.iter().map(String::as_str).collect();
    let recording = hopscope.record(nf.pid(), &patterns, &["--stamp-probes"])?;
    std::thread::sleep(Duration::from_millis(milliseconds / 5));
    let ns = nf.ns_per_packet(milliseconds)?;
    let recorded = recording.stop()?;
    recorded.discard()?;
    expect(&recorded, chosen)?;
    Ok(ns)
}

fn expect(recorded: &Recorded, chosen: &Chosen) -> Result<()> {
    // More when a name that was chosen is also one of a function that is never called.
    let (functions, refused) = (recorded.number("functions")?, recorded.number("refused")?);
    if functions >= chosen.len() as f64 && refused == 0.0 {
        Ok(())
    } else {
        Err(Error::Functions {
            wanted: chosen.len(),
            functions,
            refused,
        })
    }
}
