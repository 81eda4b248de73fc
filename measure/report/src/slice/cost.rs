//! What the probes of a recording cost, and whom.
use super::SliceClosing;
use crate::units::ns_text;
use hopscope_event::slice::{Counter, SliceSummary};
use serde::Serialize;
use std::io::{self, Write};

/// By calibration; of an event's recording nothing is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cost {
    /// Of every hit, whomever it was for.
    total_ns: u64,
    hits: u64,
    /// Of one processor, while the hooks were attached.
    processor_share: Option<f64>,
    /// Of a packet's own stamps, with its record.
    chosen_ns_per_packet: Option<f64>,
    /// Of all else: packets that were not chosen, and hooks that no packet reaches (system calls, context switches).
    other_ns_per_packet: Option<f64>,
}

impl Cost {
    pub(super) fn of(closing: &SliceClosing<'_>, summary: &SliceSummary) -> Option<Cost> {
        let get = |counter| summary.counters.get(counter);
        let total_ns = get(Counter::CostNs);
        if total_ns == 0 || !closing.source.is_time() {
            return None;
        }
        let (packets, own_ns) = closing.stats.own_cost;
        let chosen = (packets > 0).then(|| own_ns as f64 / packets as f64);
        let of_chosen = chosen.unwrap_or(0.0) * get(Counter::Created) as f64;
        let others = get(Counter::Unmatched);
        let of_others = (total_ns as f64 - of_chosen).max(0.0);
        let attached_ns = summary.attached_ns;
        Some(Cost {
            total_ns,
            hits: get(Counter::Hits),
            processor_share: (attached_ns > 0).then(|| total_ns as f64 / attached_ns as f64),
            chosen_ns_per_packet: chosen,
            other_ns_per_packet: (others > 0).then(|| of_others / others as f64),
        })
    }
}

pub(super) fn write(
    out: &mut impl Write,
    closing: &SliceClosing<'_>,
    summary: &SliceSummary,
) -> io::Result<()> {
    let Some(cost) = Cost::of(closing, summary) else {
        return Ok(());
    };
    write!(out, "probes cost about {}", ns_text(cost.total_ns as f64))?;
    if let Some(share) = cost.processor_share {
        write!(out, ", {} of a processor", percent(share))?;
    }
    if let Some(ns) = cost.chosen_ns_per_packet {
        write!(out, "; {} per chosen packet", ns_text(ns))?;
    }
    if let Some(ns) = cost.other_ns_per_packet {
        let what = "with system calls and context switches";
        write!(out, "; {} per other packet, {what}", ns_text(ns))?;
    }
    writeln!(out)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.01 => "less than 0.01 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}
