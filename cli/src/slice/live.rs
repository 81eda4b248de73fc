//! `hopscope slice`: hooks attached, packets shown or written as they end, until asked to stop.
use super::args::SliceArgs;
use super::constants;
use super::device::{DISAPPEARED, Device};
use super::drop_privileges::become_user;
use super::kernel::{Kernel, Taken, say_what_is_missing};
use super::pass::{Pass, To};
use super::progress::Progress;
use super::rotate::Rotation;
use super::save;
use super::selection::Choice;
use super::target;
use crate::logger::Verbosity;
use crate::status::is_broken_pipe;
use anyhow::{Context, ensure};
use hopscope_analyze::slice::RealTime;
use hopscope_event::clock::read::clock_sync;
use hopscope_event::slice::{SliceCalibration, SliceEntry, SliceSummary};
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_process::{Held, launch};
use hopscope_read::slice_file::Format;
use hopscope_report::slice::SliceSource;
use hopscope_slice::interfaces;
use hopscope_slice::programs::Slicer;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The programs wake nobody: the ring is looked at this often.
const POLL: Duration = Duration::from_millis(5);
/// Between two readings of all clocks: times between them are interpolated.
const SYNC: Duration = Duration::from_millis(200);
const ENOUGH: &str = "enough packets";
/// With `--duty`: how long hooks are attached at a time.
const WINDOW: Duration = Duration::from_millis(50);

pub(super) fn run(args: &SliceArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let ignored = hopscope_process::signals::ignored();
    crate::command::take_signals(&stop)?;
    refuse(args)?;
    let regions = target::regions(args)?;
    let held = command(args, &ignored)?;
    let tgid = held
        .as_ref()
        .and_then(|held| u32::try_from(held.pid()).ok());
    let device = target::device(args)?;
    let options = target::options(args, &regions, device.as_ref(), tgid)?;
    // Meanwhile the kernel verifies programs.
    let looking = std::thread::spawn(|| (interfaces::names(), crate::host::meta()));
    let mut slicer = Slicer::load(&options)?;
    let looked = looking.join().ok();
    let (interfaces, meta) = looked.context("looking at this machine")?;
    let calibration = if args.live.no_calibration {
        SliceCalibration::default()
    } else {
        constants::measured(&mut slicer, args.live.recalibrate)?
    };
    let mut kernel = Kernel::new(slicer)?;
    let filter = args.expression.join(" ");
    let duty_of = args.live.duty.unwrap_or(1);
    let entry = kernel.entry(regions, filter, calibration, duty_of, interfaces);
    say_what_is_missing(&entry);
    kernel.begin()?;
    if !verbosity.is_quiet() {
        eprintln!(
            "hopscope: {} points of a packet's way are watched",
            entry.points.len()
        );
    }
    if let Some(path) = &args.live.ready_file {
        std::fs::write(path, "").with_context(|| path.display().to_string())?;
    }
    if let Some(user) = &args.live.relinquish_privileges {
        become_user(user)?;
    }
    let mut session = Session::new(args, verbosity, kernel, &meta, &entry)?;
    session.device = device;
    session.start(held)?;
    let why = session.follow(args, &stop);
    session.finish(why)
}

fn refuse(args: &SliceArgs) -> anyhow::Result<()> {
    let writes = [&args.files.write, &args.files.output];
    let is_file = |path: &&PathBuf| path.as_os_str() != "-";
    ensure!(
        args.files.file_size.is_none() || writes.into_iter().flatten().any(|p| is_file(&p)),
        "-C cuts files: give one with -w or -o"
    );
    ensure!(
        args.live.relinquish_privileges.is_none() || args.live.duty.is_none(),
        "-Z and --duty: attaching hooks again takes the privileges that are given up"
    );
    Ok(())
}

fn command(args: &SliceArgs, ignored: &[i32]) -> anyhow::Result<Option<Held>> {
    if args.command.is_empty() {
        return Ok(None);
    }
    let words = args.command.iter().map(|word| {
        let word = word.to_str();
        word.map(str::to_owned).context("-- COMMAND: not UTF-8")
    });
    let words: Vec<String> = words.collect::<anyhow::Result<_>>()?;
    Ok(Some(launch(&words, crate::command::MARK, ignored)?))
}

/// What a trace says at its end; of functions there are none in it.
fn ended_because(why: &str, recorded: u64) -> Summary {
    Summary {
        end: clock_sync(),
        ended_because: why.to_owned(),
        recorded,
        lost: 0,
        torn: 0,
        threads_measured: 0,
        calls_unmeasured: None,
        attach_pause_ns: Vec::new(),
        detach_pause_ns: Vec::new(),
        stops: Default::default(),
        recorder_cpu_ns: None,
        notes: Vec::new(),
    }
}

struct Session<'a> {
    kernel: Kernel,
    pass: Pass,
    out: BufWriter<std::io::StdoutLock<'static>>,
    meta: &'a RecordingMeta,
    entry: &'a SliceEntry,
    clocks: Vec<ClockSync>,
    time: RealTime,
    child: Option<Child>,
    /// That of `-i`, until nothing is known of it any more.
    device: Option<Device>,
    rotation: Option<(Rotation, Format)>,
    /// Of the file that is written.
    path: Option<PathBuf>,
    /// Permissions of new files.
    mode: u32,
    writes_stdout: bool,
    is_json: bool,
}

impl<'a> Session<'a> {
    fn new(
        args: &SliceArgs,
        verbosity: &Verbosity,
        kernel: Kernel,
        meta: &'a RecordingMeta,
        entry: &'a SliceEntry,
    ) -> anyhow::Result<Session<'a>> {
        let file = match (&args.files.write, &args.files.output) {
            (Some(path), _) => Some((path, Format::Pcapng)),
            (None, Some(path)) => Some((path, Format::Hop)),
            (None, None) => None,
        };
        let rotation = args
            .files
            .file_size
            .zip(file)
            .map(|(millions, (path, format))| {
                (Rotation::new(path, millions, args.files.file_count), format)
            });
        let first = rotation.as_ref().map(|(rotation, _)| rotation.path());
        let path = first.or(file.map(|(path, _)| path.clone()));
        let to = match (&path, file) {
            (Some(path), Some((_, format))) => {
                To::File(save::create(path, format, args.files.mode, meta, entry)?)
            }
            _ => To::people_or_programs(&args.shown, verbosity.is_verbose(), verbosity.is_quiet()),
        };
        Ok(Session {
            kernel,
            // The kernel programs have chosen already.
            pass: Pass::new(entry, Choice::default(), to),
            out: BufWriter::with_capacity(1 << 16, std::io::stdout().lock()),
            meta,
            entry,
            clocks: Vec::new(),
            time: RealTime::new(meta.start, &[]),
            child: None,
            device: None,
            rotation,
            path: path.filter(|path| path.as_os_str() != "-"),
            mode: args.files.mode,
            writes_stdout: file.is_some_and(|(path, _)| path.as_os_str() == "-"),
            is_json: args.shown.json,
        })
    }

    fn start(&mut self, held: Option<Held>) -> anyhow::Result<()> {
        self.sync()?;
        self.child = held.map(Held::start).transpose()?;
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<()> {
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

    /// Until something ends it; says what.
    fn follow(&mut self, args: &SliceArgs, stop: &AtomicBool) -> anyhow::Result<&'static str> {
        let mut synced = Instant::now();
        let packet_buffered = args.shown.packet_buffered;
        let mut progress = Progress::new(self.pass.file().is_some());
        let (mut phase, mut length) = (Instant::now(), WINDOW);
        loop {
            let taken = self.take(args.choice.count)?;
            if taken == Taken::Enough {
                return Ok(ENOUGH);
            }
            self.rotate()?;
            if packet_buffered && let Some(file) = self.pass.file() {
                file.flush()?;
            }
            progress.show(self.pass.taken());
            if stop.load(Ordering::Relaxed) {
                return Ok("a signal");
            }
            if args
                .live
                .duration
                .is_some_and(|limit| self.kernel.begun().elapsed() >= limit)
            {
                return Ok("the time is over");
            }
            if let Some(child) = &mut self.child
                && child.try_wait()?.is_some()
            {
                return Ok("the command ended");
            }
            if let Some(of) = args.live.duty
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
                    return Ok(DISAPPEARED);
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
                let name = device.name();
                log::warn!("cannot tell whether {name} still exists: {error:#}");
                self.device = None;
                false
            }
        }
    }

    /// Ends a full file and begins the next, which is a recording of its own.
    fn rotate(&mut self) -> anyhow::Result<()> {
        let (Some((rotation, format)), Some(file)) = (&mut self.rotation, self.pass.file()) else {
            return Ok(());
        };
        file.flush()?;
        if !rotation.is_full(file.bytes()) {
            return Ok(());
        }
        rotation.step();
        let path = rotation.path();
        let mut next = save::create(&path, *format, self.mode, self.meta, self.entry)?;
        self.path = Some(path);
        for sync in self.clocks.iter().rev().take(1) {
            next.clock(*sync)?;
        }
        let full = std::mem::replace(file, next);
        let whole = ended_because("the file was full and continues in the next one", 0);
        Ok(full.finish(None, Some(&whole))?)
    }

    /// Part of what lies in the ring.
    fn take(&mut self, enough: Option<u64>) -> anyhow::Result<Taken> {
        let source = SliceSource {
            entry: self.entry,
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

    /// `why` it ended, or what failed: then what was captured and lost is said all the same.
    fn finish(mut self, why: anyhow::Result<&'static str>) -> anyhow::Result<ExitCode> {
        self.kernel.detach();
        let duration = self.kernel.begun().elapsed();
        let writes_file = self.pass.file().is_some();
        let ended = why.and_then(|why| self.last(why).map(|()| why));
        // Nobody is left to be told.
        let ended = match ended {
            Err(error) if is_broken_pipe(&error) => return Err(error),
            Err(error) => Err(self.give_up(error)?),
            Ok(why) => Ok(why),
        };
        let summary = self.kernel.summary(duration)?;
        let closed = self.close(writes_file, &summary);
        let why = ended?;
        closed?;
        let recorded = self.pass.taken();
        if let Some(file) = self.pass.into_file() {
            let whole = ended_because(why, recorded);
            file.finish(Some(&summary), Some(&whole))?;
        }
        let status = match &mut self.child {
            Some(child) => crate::command::exit_code_of(child)?,
            None if why == DISAPPEARED => ExitCode::from(1),
            None => ExitCode::SUCCESS,
        };
        Ok(status)
    }

    /// What ended before the hooks were gone.
    fn last(&mut self, why: &str) -> anyhow::Result<()> {
        if let Some(device) = self.device.as_ref().filter(|_| why == DISAPPEARED) {
            crate::status::say!("-i {}: {DISAPPEARED}", device.name());
        }
        self.sync()?;
        while why != ENOUGH && self.take(None)? == Taken::Part {}
        Ok(())
    }

    /// The same, counted only. The error says how much of the file is there.
    fn give_up(&mut self, error: anyhow::Error) -> anyhow::Result<anyhow::Error> {
        let given = self.pass.give_up().map(|file| file.packets());
        while self.take(None)? == Taken::Part {}
        Ok(match (given, &self.path) {
            (Some(given), Some(path)) => error.context(incomplete(path, given)),
            _ => error,
        })
    }

    fn close(&mut self, writes_file: bool, summary: &SliceSummary) -> std::io::Result<()> {
        let source = SliceSource {
            entry: self.entry,
            time: &self.time,
        };
        match writes_file || self.writes_stdout {
            // Packets are in the file; a program reads the summary.
            true if self.is_json && !self.writes_stdout => {
                self.pass
                    .close_json(&mut self.out, source, None, Some(summary))?;
            }
            true => {
                let mut err = std::io::stderr().lock();
                self.pass.close(&mut err, source, None, Some(summary))?;
            }
            false => self
                .pass
                .close(&mut self.out, source, None, Some(summary))?,
        }
        self.out.flush()
    }
}

/// Of a file that could not be written on: how many packets are in it.
fn incomplete(path: &Path, given: u64) -> String {
    let shown = path.display();
    let there = hopscope_read::open(path).map(|opened| {
        let heads = opened.reader.slice_heads();
        heads.map(|head| u64::from(head.rows)).sum::<u64>()
    });
    match there {
        Ok(there) => format!("{shown} is incomplete, {there} of {given} packets are in it"),
        Err(_) => format!("{shown} is incomplete"),
    }
}
