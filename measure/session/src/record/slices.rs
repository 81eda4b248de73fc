//! `--with-slices`: the kernel's path of packets, in the same file as the calls.
use super::RecordRequest;
use crate::error::{Result, in_one_line};
use crate::slice::{
    Kernel, Taken, beside_functions, measured_constants, regions_of, say_what_is_missing,
};
use crate::status::text_line;
use hopscope_analyze::slice::Connections;
use hopscope_event::clock::read::clock_sync;
use hopscope_event::slice::{Counter, SliceCalibration, SliceEntry, SliceSummary, Sliced};
use hopscope_event::{
    ClockSync, LeftOutEntry, OffCpuEntry, ProcessEntry, ThinEntry, ThreadEntry, Tsc,
};
use hopscope_probe::recorder::Sink;
use hopscope_probe::recorder::rows::NewRows;
use hopscope_slice::interfaces;
use hopscope_slice::programs::Slicer;
use hopscope_trace::{RecordBatch, Switches, TraceError, TraceWriter};
use std::io::Write;
use std::time::{Duration, Instant};

/// Between two looks at the ring; its programs wake nobody.
const POLL: Duration = Duration::from_millis(5);
/// Between two readings of all clocks: calls and packets have different ones.
const SYNC: Duration = Duration::from_millis(150);
/// Packets of a chunk; fewer wait for the next second.
const BATCH: usize = 256;

/// Slicing beside probes. Its hooks go with this process, however that ends.
pub(super) struct Beside {
    kernel: Kernel,
    entry: SliceEntry,
    /// Packets of other processes are left out here where the kernel programs could not.
    only: Option<Vec<u32>>,
    connections: Connections,
    rows: Vec<Sliced>,
    packets: u64,
    of_others: u64,
    polled: Instant,
    synced: Instant,
    failed: Option<String>,
}

/// What came of it.
#[derive(Debug, serde::Serialize)]
pub(super) struct SlicesDone {
    pub packets: u64,
    pub summary: Option<SliceSummary>,
    /// Why there is no summary.
    pub failed: Option<String>,
}

impl SlicesDone {
    pub(super) fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let packets = self.packets;
        let Some(summary) = &self.summary else {
            let why = self.failed.as_deref().unwrap_or_default();
            return text_line!(out, "{packets} packets sliced; losses are unknown: {why}");
        };
        let count = |counter| summary.counters.get(counter);
        text_line!(
            out,
            "{packets} packets sliced; lost: {} without a slot, {} the ring was full, {} never ended; \
             {} under way at the end",
            count(Counter::NoSlot),
            count(Counter::RingFull),
            count(Counter::Aged) + count(Counter::StaleEnded),
            summary.in_flight
        )
    }
}

impl Beside {
    /// Loads and calibrates; nothing of a target is touched. `None`: not asked for.
    ///
    /// # Errors
    /// This kernel, or this user, has none of the hooks; or the expression is wrong.
    pub(super) fn prepare(request: &RecordRequest, pids: &[i32]) -> Result<Option<Beside>> {
        let Some(expression) = &request.with_slices else {
            return Ok(None);
        };
        let regions = regions_of("--slice-regions", &request.slice_regions)?;
        let options = beside_functions(&regions, expression, pids)?;
        let only = (expression.is_empty() && options.tgid.is_none())
            .then(|| pids.iter().map(|pid| pid.unsigned_abs()).collect());
        let mut slicer = Slicer::load(&options)?;
        let calibration = if request.attach.no_calibration {
            SliceCalibration::default()
        } else {
            measured_constants(&mut slicer, false)?
        };
        let kernel = Kernel::new(slicer)?;
        let entry = kernel.entry(
            regions,
            expression.clone(),
            calibration,
            1,
            interfaces::names(),
        );
        say_what_is_missing(&entry);
        let now = Instant::now();
        Ok(Some(Beside {
            kernel,
            entry,
            only,
            connections: Connections::default(),
            rows: Vec::new(),
            packets: 0,
            of_others: 0,
            polled: now,
            synced: now,
            failed: None,
        }))
    }

    /// From here on packets are sliced.
    pub(super) fn begin<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> Result<()> {
        writer.slice(&self.entry)?;
        writer.clock(clock_sync())?;
        writer.flush()?;
        self.kernel.begin()
    }

    fn poll<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
    ) -> std::result::Result<(), TraceError> {
        let now = Instant::now();
        if now - self.synced >= SYNC {
            self.synced = now;
            writer.clock(clock_sync())?;
        }
        if now - self.polled < POLL {
            return Ok(());
        }
        if self.take() != Taken::Part {
            self.polled = now;
        }
        if self.rows.len() >= BATCH {
            self.write(writer)
        } else {
            Ok(())
        }
    }

    /// A ring that cannot be read any more ends the slices, not the recording.
    fn take(&mut self) -> Taken {
        if self.failed.is_some() {
            return Taken::All;
        }
        let (rows, others) = (&mut self.rows, &mut self.of_others);
        let (only, connections) = (&self.only, &mut self.connections);
        let taken = self.kernel.take(|packet| {
            let record = &packet.record;
            let ours = |pids: &Vec<u32>| {
                let has = |tgid| pids.contains(&tgid);
                connections.has(record, has(record.tx_tgid) || has(record.rx_tgid))
            };
            if only.as_ref().is_none_or(ours) {
                rows.push(packet)
            } else {
                *others += 1
            }
            Ok(false)
        });
        taken.unwrap_or_else(|error| {
            let why = in_one_line(&error);
            crate::status::say!("no more slices are recorded: {why}");
            self.failed = Some(why);
            self.kernel.detach();
            Taken::All
        })
    }

    fn write<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
    ) -> std::result::Result<(), TraceError> {
        writer.slices(&self.rows)?;
        self.packets += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }

    /// Detaches, and writes what is left.
    pub(super) fn finish<W: Write>(
        mut self,
        writer: &mut TraceWriter<W>,
    ) -> std::result::Result<SlicesDone, TraceError> {
        self.kernel.detach();
        let duration = self.kernel.begun().elapsed();
        while self.take() == Taken::Part {
            self.write(writer)?;
        }
        self.write(writer)?;
        writer.clock(clock_sync())?;
        let summary = match self.failed.take() {
            Some(why) => Err(why),
            None => self.kernel.summary(duration).map_err(|e| in_one_line(&e)),
        };
        let summary = summary.map(|mut summary| {
            // As the kernel programs would have counted them.
            for (name, more) in [("other_process", 1), ("written", -1)] {
                if let Some(count) = summary.counters.0.get_mut(name) {
                    *count = count.saturating_add_signed(more * self.of_others as i64);
                }
            }
            summary
        });
        if let Ok(summary) = &summary {
            writer.slice_summary(summary)?;
        }
        let failed = summary.as_ref().err().cloned();
        Ok(SlicesDone {
            packets: self.packets,
            summary: summary.ok(),
            failed,
        })
    }
}

/// A file of calls and packets.
pub(super) struct WithSlices<'a, W: Write> {
    pub writer: &'a mut TraceWriter<W>,
    pub beside: &'a mut Beside,
}

impl<W: Write> Sink for WithSlices<'_, W> {
    fn process(&mut self, entry: &ProcessEntry) -> std::result::Result<(), TraceError> {
        self.writer.process(entry)
    }

    fn thread(&mut self, entry: &ThreadEntry) -> std::result::Result<(), TraceError> {
        self.writer.thread(entry)
    }

    fn rows(&mut self, new: &NewRows) -> std::result::Result<(), TraceError> {
        Sink::rows(self.writer, new)
    }

    fn records(&mut self, batch: RecordBatch<'_>) -> std::result::Result<(), TraceError> {
        self.writer.records(batch)
    }

    fn switches(&mut self, batch: Switches<'_>) -> std::result::Result<(), TraceError> {
        self.writer.switches(batch)
    }

    fn thin(&mut self, entry: &ThinEntry) -> std::result::Result<(), TraceError> {
        self.writer.thin(entry)
    }

    fn off_cpu(&mut self, _: &OffCpuEntry) {}

    fn left_out(&mut self, entries: &[LeftOutEntry]) -> std::result::Result<(), TraceError> {
        Sink::left_out(self.writer, entries)
    }

    fn keep(&mut self) -> std::result::Result<(), TraceError> {
        self.writer.flush()
    }

    fn visited(&mut self, _: Tsc) -> std::result::Result<(), TraceError> {
        self.beside.poll(self.writer)
    }

    fn clock(&mut self, sync: ClockSync) -> std::result::Result<(), TraceError> {
        self.writer.clock(sync)
    }

    fn flush(&mut self) -> std::result::Result<(), TraceError> {
        self.beside.write(self.writer)?;
        self.writer.flush()
    }
}
