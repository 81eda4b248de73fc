//! Calls and slices of one recording on one clock.
pub mod packets;

use crate::error::{Context, Result};
use crate::selection::Selection;
use hopscope_analyze::slice::{Borders, Sides, SystemCalls, TimedCall};
use hopscope_analyze::{Calls, PlacedCall};
use hopscope_event::slice::{SliceEntry, SliceEvent, SliceRecord};
use hopscope_event::{ThreadIx, TscFrequency};
use hopscope_report::Timeline;
use hopscope_report::slice::OneTimeline;
use hopscope_trace::TraceReader;
use std::collections::{HashMap, HashSet};

/// Both sides of packets, of a recording that has both.
pub(crate) struct Joined {
    borders: Borders,
    /// Threads of which a call was recorded.
    measured: HashSet<u32>,
    clock_error_ns: u64,
}

/// Whether calls were recorded beside the kernel's path, on clocks that can be compared.
pub(crate) fn has_both(reader: &TraceReader) -> bool {
    let is_of_time = |entry: &SliceEntry| entry.event == SliceEvent::Time;
    let slices = reader.tables().slice.as_ref().is_some_and(is_of_time);
    slices && reader.heads().any(|head| head.records > 0)
}

impl Joined {
    /// Of the packets `wanted`: two passes, over every packet and over every call. `keep` as of
    /// [`Borders::new`].
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn of<'a>(
        selection: &Selection,
        entry: &SliceEntry,
        keep: Option<usize>,
        wanted: impl IntoIterator<Item = &'a SliceRecord>,
    ) -> Result<Joined> {
        let mut borders = Joined::unasked(selection.reader(), entry, keep)?;
        for record in wanted {
            borders.want(record);
        }
        Joined::with_calls(selection, borders)
    }

    /// Of all packets.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn of_all(selection: &Selection, entry: &SliceEntry) -> Result<Joined> {
        let mut borders = Joined::unasked(selection.reader(), entry, None)?;
        for batch in selection.reader().slices() {
            batch?
                .iter()
                .for_each(|packet| borders.want(&packet.record));
        }
        Joined::with_calls(selection, borders)
    }

    fn unasked(reader: &TraceReader, entry: &SliceEntry, keep: Option<usize>) -> Result<Borders> {
        let mut calls = SystemCalls::default();
        for batch in reader.slices() {
            batch?
                .iter()
                .for_each(|packet| calls.packet(&packet.record));
        }
        Ok(Borders::new(&entry.calibration, calls, keep))
    }

    fn with_calls(selection: &Selection, mut borders: Borders) -> Result<Joined> {
        let tables = selection.tables();
        let timeline = selection.timeline();
        let tids = tables.threads.iter();
        let tids: HashMap<ThreadIx, u32> = tids.map(|t| (t.ix, t.tid.unsigned_abs())).collect();
        let mut measured = HashSet::new();
        let mut each = |call: PlacedCall| {
            let Some(tid) = tids.get(&call.thread).filter(|tid| **tid != 0) else {
                return;
            };
            measured.insert(*tid);
            if let Ok(ticks) = u64::try_from(call.ticks) {
                let timed = TimedCall {
                    thread: call.thread,
                    function: call.function,
                    depth: call.depth,
                    entry: call.entry,
                    from_ns: timeline.monotonic_ns(call.entry),
                    to_ns: timeline.monotonic_ns(call.entry + ticks),
                };
                borders.call(*tid, timed);
            }
        };
        let mut calls = Calls::new(selection.index());
        for owned in crate::records::batches(selection.reader()) {
            let owned = owned.context("reading the calls of the recording")?;
            calls.feed(&owned.batch(), &mut each);
        }
        Ok(Joined {
            clock_error_ns: clock_error_ns(&timeline, tables.meta.tsc_frequency),
            borders,
            measured,
        })
    }

    pub(crate) fn sides(&mut self, record: &SliceRecord) -> Sides {
        let measured = &self.measured;
        self.borders.of(record, |tid| measured.contains(&tid))
    }

    /// After the last packet.
    pub(crate) fn quality(&self) -> OneTimeline {
        OneTimeline {
            counts: self.borders.counts(),
            clock_error_ns: self.clock_error_ns,
        }
    }
}

/// Half the widest reading of both clocks, and by how much a reading lies off the line between its
/// neighbours.
fn clock_error_ns(timeline: &Timeline, frequency: TscFrequency) -> u64 {
    let points = timeline.points();
    let widest = points.iter().map(|p| p.window_ticks).max().unwrap_or(0);
    let reading = frequency.ns(widest as i64).unsigned_abs() / 2;
    let off = points.windows(3).map(|p| {
        let whole = i128::from((p[2].tsc - p[0].tsc).max(1));
        let span = i128::from(p[2].monotonic_ns) - i128::from(p[0].monotonic_ns);
        let expected = i128::from(p[1].tsc - p[0].tsc) * span / whole;
        let read = i128::from(p[1].monotonic_ns) - i128::from(p[0].monotonic_ns);
        u64::try_from((read - expected).abs()).unwrap_or(u64::MAX)
    });
    reading.saturating_add(off.max().unwrap_or(0))
}
