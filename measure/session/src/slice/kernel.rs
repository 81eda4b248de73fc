//! Hooks in the kernel, and what comes from them: of `slice`, and of `record --with-slices`.
use crate::error::{Error, Result};
use hopscope_event::slice::{
    InterfaceEntry, RegionEntry, SliceBytes, SliceCalibration, SliceEntry, SliceSummary, Sliced,
};
use hopscope_slice::programs::{Drained, ENTRIES_MAX, Entry, Slicer};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What a look at the ring came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    All,
    /// More lies there.
    Part,
    /// Whoever was given the packets wants no more.
    Enough,
}

/// Programs that are loaded; what they were attached for is counted.
pub struct Kernel {
    slicer: Slicer,
    ring: Drained,
    /// Bytes whose record is not here yet, by id: of this look at the ring, and of the one before. A
    /// record follows its bytes at once, so older ones are of a record that was lost, and counted.
    waiting: [HashMap<u64, SliceBytes>; 2],
    begun: Instant,
    attached: Duration,
    window: Option<Instant>,
}

impl Kernel {
    /// # Errors
    /// The ring cannot be mapped.
    pub fn new(slicer: Slicer) -> Result<Kernel> {
        Ok(Kernel {
            ring: slicer.drain()?,
            slicer,
            waiting: Default::default(),
            begun: Instant::now(),
            attached: Duration::ZERO,
            window: None,
        })
    }

    /// What a file says of it; `hopscope slice -L` shows the same hooks.
    pub fn entry(
        &self,
        regions: Vec<RegionEntry>,
        filter: String,
        calibration: SliceCalibration,
        duty_of: u32,
        interfaces: Vec<InterfaceEntry>,
    ) -> SliceEntry {
        SliceEntry {
            backend: self.slicer.backend().name().to_owned(),
            event: self.slicer.options().event.clone(),
            filter,
            points: self.slicer.points(),
            hooks: self.slicer.hooks().to_vec(),
            regions,
            calibration,
            slots: self.slicer.options().slots,
            kernel: hopscope_trace::host::kernel(),
            duty_of,
            drop_reasons: self.slicer.drop_reasons().to_vec(),
            interfaces,
        }
    }

    /// Attaches every hook; what calibration left is not of this recording.
    ///
    /// # Errors
    /// A hook that could be attached before cannot be now.
    pub fn begin(&mut self) -> Result<()> {
        self.ring.take_all()?;
        self.slicer.forget_counts()?;
        self.begun = Instant::now();
        self.window = Some(Instant::now());
        self.slicer.start()?;
        Ok(())
    }

    /// Attaches again what was detached.
    ///
    /// # Errors
    /// As [`Kernel::begin`].
    pub fn resume(&mut self) -> Result<()> {
        self.window = Some(Instant::now());
        self.slicer.resume()?;
        Ok(())
    }

    /// For how long it was attached, from the first hook to the last.
    pub fn detach(&mut self) -> Duration {
        self.slicer.detach();
        let window = self.window.take();
        let window = window.map_or(Duration::ZERO, |since| since.elapsed());
        self.attached += window;
        window
    }

    pub fn is_attached(&self) -> bool {
        self.window.is_some()
    }

    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Part of what lies in the ring, until `each` says that it is enough.
    ///
    /// # Errors
    /// The ring's, and those of `each`.
    pub fn take(&mut self, mut each: impl FnMut(Sliced) -> Result<bool>) -> Result<Taken> {
        let entries = self.ring.take()?;
        let is_part = entries.len() >= ENTRIES_MAX;
        for entry in entries {
            match entry {
                Entry::Bytes {
                    id,
                    wire_len,
                    link,
                    bytes,
                } => {
                    let link_len = link.len() as u16;
                    let packet = SliceBytes {
                        original_len: wire_len + u32::from(link_len),
                        link_len,
                        bytes: [link, bytes].concat(),
                    };
                    self.waiting[0].insert(id, packet);
                }
                Entry::Record(record) => {
                    let bytes = self.waiting.iter_mut().find_map(|of| of.remove(&record.id));
                    if each(Sliced { record, bytes })? {
                        return Ok(Taken::Enough);
                    }
                }
            }
        }
        self.waiting.swap(0, 1);
        self.waiting[0].clear();
        Ok(if is_part { Taken::Part } else { Taken::All })
    }

    /// After the hooks were detached and everything taken.
    ///
    /// # Errors
    /// The kernel does not tell its counters, or they contradict each other.
    pub fn summary(&self, duration: Duration) -> Result<SliceSummary> {
        let counters = self.slicer.final_counters()?;
        let in_flight = counters.in_flight();
        if in_flight < 0 {
            return Err(Error::Unbalanced { in_flight });
        }
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Ok(SliceSummary {
            in_flight: in_flight.unsigned_abs(),
            hooks: self.slicer.hooks_with_missed()?,
            duration_ns: ns(duration),
            attached_ns: ns(self.attached),
            counters,
        })
    }
}

pub fn say_what_is_missing(entry: &SliceEntry) {
    for hook in &entry.hooks {
        if let Some(why) = &hook.missing {
            log::warn!(
                "{} is not stamped, its slice is part of the next: {why}",
                hook.point
            );
        }
    }
}
