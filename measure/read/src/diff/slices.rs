//! Two recordings of the kernel's path: slice by slice.
use super::DiffOptions;
use crate::error::{Result, refuse, require};
use crate::opened::Opened;
use hopscope_analyze::diff::{Blocks, Spread};
use hopscope_analyze::slice::{PieceFlags, Slicer, Span};
use hopscope_event::Tsc;
use hopscope_event::slice::{SliceEntry, SliceEvent};
use std::collections::BTreeMap;

pub(super) const WHOLE: &str = "whole";

/// One recording, with a row for each name.
pub(super) struct Side<'a> {
    opened: &'a Opened,
    entry: &'a SliceEntry,
    corrected: bool,
}

/// The first pass.
pub(super) struct Spreads {
    pub rows: BTreeMap<String, Spread>,
    start: Tsc,
    end: Tsc,
}

/// Which times of both are compared, and why these.
pub(super) fn times(entries: [&SliceEntry; 2], options: &DiffOptions) -> Result<(bool, String)> {
    let [a, b] = entries;
    require!(
        a.event == SliceEvent::Time && b.event == SliceEvent::Time,
        "recordings of events are not compared: only times are"
    );
    let known = entries.iter().all(|e| e.calibration.tau_o.is_some());
    let alike = a.points == b.points && a.backend == b.backend;
    Ok(match (options.corrected, known) {
        (Some(true), false) => {
            refuse!("a recording is not calibrated: leave out --corrected")
        }
        (Some(true), _) => (true, "time of a slice, corrected (as requested)".into()),
        (Some(false), _) => (false, "time of a slice, raw (as requested)".into()),
        (None, _) if alike => (
            false,
            "time of a slice, as read (same points, same hooks: they add the same to both)".into(),
        ),
        (None, true) => (
            true,
            "time of a slice, corrected (other points or hooks)".into(),
        ),
        (None, false) => (
            false,
            "time of a slice, as read (although points or hooks differ: not calibrated)".into(),
        ),
    })
}

impl<'a> Side<'a> {
    pub(super) fn new(opened: &'a Opened, entry: &'a SliceEntry, corrected: bool) -> Side<'a> {
        Side {
            opened,
            entry,
            corrected,
        }
    }

    /// Leads each time past `each`: name, when, in tenths of ns.
    fn pass(&self, mut each: impl FnMut(&str, Tsc, i64)) -> Result<()> {
        let mut slicer = Slicer::new(self.entry);
        let tenths = |span: &Span| {
            let ns = if self.corrected {
                span.best()
            } else {
                span.raw
            };
            ns as i64 * 10
        };
        for batch in self.opened.reader.slices() {
            for packet in &batch? {
                let slices = slicer.slice(&packet.record);
                // Blocks are of equal time, whatever the clock.
                let at = Tsc(packet.record.t0_ns);
                for piece in &slices.pieces {
                    each(slicer.name(piece.name), at, tenths(&piece.span));
                }
                let is_known = !slices.whole.flags.intersects(PieceFlags::OR_LONGER);
                if !slices.pieces.is_empty() && is_known {
                    each(WHOLE, at, tenths(&slices.whole));
                }
            }
        }
        Ok(())
    }

    pub(super) fn spreads(&self) -> Result<Spreads> {
        let mut rows: BTreeMap<String, Spread> = BTreeMap::new();
        let (mut start, mut end) = (Tsc(u64::MAX), Tsc(0));
        self.pass(|name, at, tenths| {
            (start, end) = (start.min(at), end.max(at));
            match rows.get_mut(name) {
                Some(row) => row.add(tenths),
                None => rows.entry(name.to_owned()).or_default().add(tenths),
            }
        })?;
        Ok(Spreads { rows, start, end })
    }

    pub(super) fn blocks(
        &self,
        names: &[String],
        own: &Spreads,
        other: &Spreads,
    ) -> Result<Vec<Blocks>> {
        let none = Spread::default();
        let mut blocks: Vec<Blocks> = names
            .iter()
            .map(|name| {
                let row = |s: &Spreads| s.rows.get(name).cloned().unwrap_or(none.clone());
                Blocks::new(&row(own), &row(other), own.start, own.end)
            })
            .collect();
        let number: BTreeMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_str(), i))
            .collect();
        self.pass(|name, at, tenths| {
            if let Some(row) = number.get(name) {
                blocks[*row].add(at, tenths);
            }
        })?;
        Ok(blocks)
    }
}
