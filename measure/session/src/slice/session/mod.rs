//! A session from its first packet to its last: until something ends it.
mod finish;

pub use finish::Finished;

use super::choice::PacketChoice;
use super::device::Device;
use super::ended::Ended;
use super::file::{FilePlan, Files};
use super::kernel::{Kernel, Taken};
use super::loaded::Loaded;
use super::pass::{Pass, To};
use crate::error::{Result, in_one_line};
use hopscope_analyze::slice::RealTime;
use hopscope_event::clock::read::clock_sync;
use hopscope_event::slice::SliceEntry;
use hopscope_event::{ClockSync, RecordingMeta};
use hopscope_process::{Held, Launched};
use hopscope_report::slice::SliceSource;
use std::io::Write;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The programs wake nobody: the ring is looked at this often.
const POLL: Duration = Duration::from_millis(5);
/// Between two readings of all clocks: times between them are interpolated.
const SYNC: Duration = Duration::from_millis(200);
/// With a duty cycle: how long hooks are attached at a time.
const WINDOW: Duration = Duration::from_millis(50);

/// What ends it, and how it goes until then.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Packets.
    pub count: Option<u64>,
    pub duration: Option<Duration>,
    /// Hooks are attached for one in so many windows.
    pub duty_of: Option<u32>,
    /// Each packet is in the file at once.
    pub packet_buffered: bool,
}

/// Packets go to `out`, or to a file.
pub struct Session<W: Write> {
    kernel: Kernel,
    pass: Pass,
    out: W,
    meta: RecordingMeta,
    entry: SliceEntry,
    clocks: Vec<ClockSync>,
    time: RealTime,
    limits: Limits,
    child: Option<Launched>,
    /// Until nothing is known of it any more.
    device: Option<Device>,
    files: Option<Files>,
}

impl<W: Write> Session<W> {
    /// `shown`: where packets go, unless to a file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(
        loaded: Loaded,
        file: Option<FilePlan>,
        shown: To,
        out: W,
        device: Option<Device>,
        limits: Limits,
    ) -> Result<Session<W>> {
        let Loaded {
            kernel,
            entry,
            meta,
        } = loaded;
        let begun = file.map(|plan| Files::begin(plan, &meta, &entry));
        let (files, to) = match begun.transpose()? {
            Some((files, file)) => (Some(files), To::File(file)),
            None => (None, shown),
        };
        Ok(Session {
            kernel,
            // The kernel programs have chosen already.
            pass: Pass::new(&entry, PacketChoice::default(), to),
            out,
            clocks: Vec::new(),
            time: RealTime::new(meta.start, &[]),
            meta,
            entry,
            limits,
            child: None,
            device,
            files,
        })
    }

    pub fn writes_file(&self) -> bool {
        self.files.is_some()
    }

    /// Lets the command begin whose packets are followed.
    ///
    /// # Errors
    /// It cannot be started, or the file cannot be written.
    pub fn start(&mut self, held: Option<Held>) -> Result<()> {
        self.sync()?;
        self.child = held.map(Held::start).transpose()?;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let sync = clock_sync();
        // Two are enough to interpolate; a run may last for days.
        if self.clocks.len() > 1 {
            self.clocks.remove(0);
        }
        self.clocks.push(sync);
        self.time = RealTime::new(self.meta.start, &self.clocks);
        if let Some(file) = self.pass.file() {
            file.clock(sync)?;
        }
        Ok(())
    }

    /// Until something ends it; says what. `progress` is told how many packets there are, look after look.
    ///
    /// # Errors
    /// Those of the ring and of the output.
    pub fn follow(&mut self, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<Ended> {
        let mut synced = Instant::now();
        let (mut phase, mut length) = (Instant::now(), WINDOW);
        loop {
            let taken = self.take(self.limits.count)?;
            if taken == Taken::Enough {
                return Ok(Ended::Enough);
            }
            self.rotate()?;
            if self.limits.packet_buffered
                && let Some(file) = self.pass.file()
            {
                file.flush()?;
            }
            progress(self.pass.taken());
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Signal);
            }
            let limit = self.limits.duration;
            if limit.is_some_and(|limit| self.kernel.begun().elapsed() >= limit) {
                return Ok(Ended::Duration);
            }
            if let Some(child) = &mut self.child
                && child.try_wait()?.is_some()
            {
                return Ok(Ended::Command);
            }
            if let Some(of) = self.limits.duty_of
                && phase.elapsed() >= length
            {
                // Detaching takes some milliseconds more than the window: the pause is of the same length.
                length = if self.kernel.is_attached() {
                    self.kernel.detach() * (of - 1)
                } else {
                    self.kernel.resume()?;
                    WINDOW
                };
                phase = Instant::now();
            }
            if synced.elapsed() >= SYNC {
                synced = Instant::now();
                self.sync()?;
                if self.has_lost_device() {
                    return Ok(Ended::Disappeared);
                }
            }
            if taken == Taken::All {
                std::thread::sleep(POLL);
            }
        }
    }

    fn has_lost_device(&mut self) -> bool {
        let Some(device) = &self.device else {
            return false;
        };
        match device.is_there() {
            Ok(is_there) => !is_there,
            Err(error) => {
                let (name, why) = (device.name(), in_one_line(&error));
                log::warn!("cannot tell whether {name} still exists: {why}");
                self.device = None;
                false
            }
        }
    }

    fn rotate(&mut self) -> Result<()> {
        match (&mut self.files, self.pass.file()) {
            (Some(files), Some(file)) => {
                files.rotate(file, &self.meta, &self.entry, self.clocks.last())
            }
            _ => Ok(()),
        }
    }

    /// Part of what lies in the ring.
    fn take(&mut self, enough: Option<u64>) -> Result<Taken> {
        let source = SliceSource {
            entry: &self.entry,
            time: &self.time,
        };
        let (pass, out) = (&mut self.pass, &mut self.out);
        let taken = self.kernel.take(|packet| {
            pass.packet(out, &source, &packet)?;
            Ok(enough == Some(pass.taken()))
        })?;
        if taken != Taken::Enough {
            self.out.flush()?;
        }
        Ok(taken)
    }
}
