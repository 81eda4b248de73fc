//! The file, written by a thread of its own: whoever is recorded must not wait for a disk.
use super::{EventBuffer, Events};
use hopscope_event::clock::read::clock_sync;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::value::number;
use hopscope_event::{
    CaptureEntry, CaptureMethod, CapturePlace, FunctionEntry, FunctionId, ProcessEntry, ProcessIx,
    RecordingMeta, Summary, ThreadEntry, ThreadIx,
};
use hopscope_trace::{TraceError, TraceWriter};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// A quarter of a million records, 4 MiB.
const BATCHES_WAITING: usize = 64;

type Cpu = Option<u64>;
type Writer = TraceWriter<BufWriter<File>>;

#[derive(Debug, thiserror::Error)]
pub enum EventFileError {
    #[error("cannot create {path}: {source}")]
    Create {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {path}: {source}; what came before is good")]
    Write { path: PathBuf, source: TraceError },
    #[error("the thread that writes {path} has ended by a panic")]
    Thread { path: PathBuf },
}

/// What was written, and what the disk did not keep up with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Written {
    pub records: u64,
    pub lost: u64,
}

/// The file, made and begun. Who drops privileges does it before [`EventFile::start`]: threads keep their own.
pub struct EventFile {
    path: PathBuf,
    threads: u64,
    note: String,
    writer: Writer,
    batches: Receiver<EventBuffer>,
}

/// What writes it; finished after every [`super::EventLog`].
pub struct EventWriter {
    path: PathBuf,
    threads: u64,
    note: String,
    thread: JoinHandle<Result<(Writer, Written, Cpu), TraceError>>,
}

/// Whose events a file has.
pub struct Origin<'a> {
    /// Its number as a process, and what it is called.
    pub process: u32,
    pub comm: &'a str,
    pub module: &'a str,
    /// Names of events, in the order of their numbers, and of what their value counts.
    pub functions: &'a [(&'static str, &'static str)],
    /// Of its logs: the number of the first one as a thread, and their names.
    pub first_thread: u32,
    pub threads: Vec<String>,
    /// For the summary: who tells it.
    pub note: &'a str,
}

/// Begins a `.hop` file.
///
/// # Errors
/// The file cannot be made or written.
pub fn create(
    path: &Path,
    meta: &RecordingMeta,
    origin: &Origin<'_>,
) -> Result<(Events, EventFile), EventFileError> {
    // What was there keeps its permissions.
    let created = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let file = created.map_err(|source| EventFileError::Create {
        path: path.to_owned(),
        source,
    })?;
    let writer = begun(file, meta, origin).map_err(failed(path))?;
    let (full, batches) = sync_channel(BATCHES_WAITING);
    let file = EventFile {
        path: path.to_owned(),
        threads: origin.threads.len() as u64,
        note: origin.note.into(),
        writer,
        batches,
    };
    let first_thread = origin.first_thread;
    Ok((Events { first_thread, full }, file))
}

fn begun(file: File, meta: &RecordingMeta, origin: &Origin<'_>) -> Result<Writer, TraceError> {
    let mut writer = TraceWriter::new(BufWriter::with_capacity(1 << 20, file), meta)?;
    let process = ProcessIx(origin.process);
    writer.process(&ProcessEntry {
        ix: process,
        pid: std::process::id().cast_signed(),
        comm: origin.comm.into(),
        command_line: meta.command_line.clone(),
    })?;
    writer.modules(&[ModuleEntry {
        ix: ModuleIx(0),
        path: origin.module.into(),
        build_id: String::new(),
    }])?;
    let functions = (0..).zip(origin.functions);
    let functions = functions.map(|(n, (name, _))| FunctionEntry {
        id: FunctionId(n),
        module: ModuleIx(0),
        name: (*name).into(),
        svma: 0x1000 + 64 * u64::from(n),
        size: 64,
        file: None,
        line: None,
    });
    writer.functions(&functions.collect::<Vec<_>>())?;
    let captures = (0..).zip(origin.functions);
    let captures = captures.map(|(n, (_, counts))| CaptureEntry {
        function: FunctionId(n),
        capture: number(CapturePlace::Return, 0),
        name: (*counts).into(),
        bits: 64,
        signed: false,
        at: CapturePlace::Return,
        method: CaptureMethod::Register,
        elements_max: 1,
    });
    writer.captures(&captures.collect::<Vec<_>>())?;
    for (n, name) in (0..).zip(&origin.threads) {
        writer.thread(&ThreadEntry {
            ix: ThreadIx(origin.first_thread + n),
            process,
            // 0 would be one that is not known.
            tid: n as i32 + 1,
            comm: name.clone(),
        })?;
    }
    Ok(writer)
}

fn write_all(writer: &mut Writer, batches: &Receiver<EventBuffer>) -> Result<Written, TraceError> {
    let mut written = Written::default();
    for batch in batches {
        written.lost += batch.lost_before;
        written.records += batch.records.len() as u64;
        writer.records(hopscope_trace::RecordBatch {
            thread: batch.thread,
            first_index: batch.first_index,
            lost_before: batch.lost_before,
            torn_before: 0,
            records: &batch.records,
        })?;
        // What is in the file when the process is killed is whole.
        writer.flush()?;
    }
    Ok(written)
}

impl EventFile {
    pub fn start(self) -> EventWriter {
        let (mut writer, batches) = (self.writer, self.batches);
        let thread = std::thread::spawn(move || {
            let written = write_all(&mut writer, &batches)?;
            // Of this thread, to its end but for the summary.
            let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok();
            let cpu = cpu.map(|time| time.num_nanoseconds().cast_unsigned());
            Ok((writer, written, cpu))
        });
        EventWriter {
            path: self.path,
            threads: self.threads,
            note: self.note,
            thread,
        }
    }
}

impl EventWriter {
    /// # Errors
    /// The file could not be written to its end.
    pub fn finish(self, ended_because: &str) -> Result<Written, EventFileError> {
        let path = self.path;
        let joined = self.thread.join();
        let joined = joined.map_err(|_| EventFileError::Thread { path: path.clone() })?;
        let (writer, written, recorder_cpu_ns) = joined.map_err(failed(&path))?;
        let summary = Summary {
            recorded: written.records,
            lost: written.lost,
            threads_measured: self.threads,
            calls_unmeasured: Some(0),
            recorder_cpu_ns,
            notes: vec![self.note],
            ..Summary::ended(clock_sync(), ended_because)
        };
        writer.finish(&summary).map_err(failed(&path))?;
        Ok(written)
    }
}

fn failed(path: &Path) -> impl Fn(TraceError) -> EventFileError {
    let path = path.to_owned();
    move |source| EventFileError::Write {
        path: path.clone(),
        source,
    }
}
