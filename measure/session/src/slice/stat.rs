//! Settings and statistics of a slicer that runs, in NetSlice's words: one value, for programs and for people.
use crate::error::Result;
use hopscope_event::slice::{Counter, Counters};
use hopscope_slice::programs::Running;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Debug, Serialize)]
pub struct SlicerStat {
    pid: u32,
    buffer_size: u32,
    ring_bytes: u32,
    enable: bool,
    min_latency_ns: u64,
    packets: u64,
    drops: u64,
    in_flight: i64,
    counters: Counters,
}

impl SlicerStat {
    /// # Errors
    /// It has ended, or its maps may not be read.
    pub fn of(slicer: &Running) -> Result<SlicerStat> {
        let settings = slicer.settings()?;
        let counters = slicer.counters()?;
        Ok(SlicerStat {
            pid: slicer.pid,
            buffer_size: slicer.slots,
            ring_bytes: slicer.ring_bytes,
            enable: settings.is_enabled,
            min_latency_ns: settings.min_latency_ns,
            packets: counters.get(Counter::Written),
            drops: counters.get(Counter::NoSlot),
            in_flight: counters.in_flight(),
            counters,
        })
    }

    /// Lines for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let size = self.buffer_size;
        writeln!(out, "hopscope slice, process {}", self.pid)?;
        writeln!(out, "  buffer_size  {size:>12}  packets under way at once")?;
        writeln!(out, "  enable       {:>12}", u8::from(self.enable))?;
        writeln!(out, "  min_latency  {:>12}  ns", self.min_latency_ns)?;
        writeln!(out, "  packets      {:>12}", self.packets)?;
        writeln!(out, "  drops        {:>12}", self.drops)?;
        writeln!(out, "  in_flight    {:>12}", self.in_flight)?;
        for counter in Counter::ALL {
            let count = self.counters.get(*counter);
            if count > 0 {
                let (name, what) = (counter.name(), counter.what());
                writeln!(out, "    {name:<14} {count:>12}  {what}")?;
            }
        }
        Ok(())
    }
}
