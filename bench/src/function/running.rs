//! A network function at work on an endless supply of packets from memory.
use super::counter::Counter;
use super::ready_process::Started;
use crate::error::{Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const STALLED_AFTER: Duration = Duration::from_secs(20);

/// Dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: &'static str,
    program: Started,
    /// The thread that handles the packets, by the name it has.
    worker: String,
    pub(crate) counter: Counter,
    /// Left behind by a program that ends without tidying up.
    leaves: Option<PathBuf>,
}

impl Running {
    pub(crate) fn new(
        name: &'static str,
        program: Started,
        worker: &str,
        counter: Counter,
    ) -> Running {
        Running {
            name,
            program,
            worker: worker.into(),
            counter,
            leaves: None,
        }
    }

    pub(crate) fn with_directory(mut self, directory: PathBuf) -> Running {
        self.leaves = Some(directory);
        self
    }

    pub(crate) fn pid(&self) -> i32 {
        self.program.pid()
    }

    /// Thread id of the worker.
    pub(crate) fn worker(&self) -> Result<u32> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.pid()));
        let listed = fs::read_dir(&tasks).map_err(Error::file("list", &tasks))?;
        for task in listed.flatten() {
            let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let tid = task.file_name().to_str().and_then(|tid| tid.parse().ok());
            if let (true, Some(tid)) = (comm.trim_end() == self.worker, tid) {
                return Ok(tid);
            }
        }
        Err(Error::Answer {
            asked: format!("a thread called {}", self.worker),
            answer: "none: has it ended?".into(),
        })
    }

    /// What its worker has run so far (Documentation/scheduler/sched-stats.rst): what others do on
    /// the same processor is not in it.
    pub(crate) fn worker_ns(&self) -> Result<u64> {
        let path = PathBuf::from(format!("/proc/{}/schedstat", self.worker()?));
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let ran = text.split_whitespace().next().and_then(|n| n.parse().ok());
        ran.ok_or_else(|| Error::Answer {
            asked: path.display().to_string(),
            answer: text,
        })
    }
}

impl Running {
    /// Processor time of the worker for each packet, over a window of so many milliseconds, or
    /// several where no packet came in the first.
    pub(crate) fn ns_per_packet(&mut self, milliseconds: u64) -> Result<f64> {
        let (before, ns_before) = (self.counter.packets()?, self.worker_ns()?);
        let start = Instant::now();
        // On a busy machine the worker may have no processor for a whole window: its time stands still
        // meanwhile too.
        while start.elapsed() < STALLED_AFTER {
            std::thread::sleep(Duration::from_millis(milliseconds));
            let packets = self.counter.packets()? - before;
            if packets > 0 {
                return Ok((self.worker_ns()? - ns_before) as f64 / packets as f64);
            }
        }
        Err(Error::Nothing {
            what: "a network function at work",
        })
    }

    /// The error, and how the program ended if that is behind it.
    pub(crate) fn blamed(&mut self, error: Error) -> Error {
        self.program.blamed(self.name, error)
    }

    /// Stands still, or goes on.
    pub(crate) fn hold(&self, held: bool) -> Result<()> {
        let signal = if held {
            Signal::SIGSTOP
        } else {
            Signal::SIGCONT
        };
        kill(Pid::from_raw(self.pid()), signal).map_err(|source| Error::System {
            doing: "stop a network function for a while",
            source,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.program.end();
        if let Some(directory) = &self.leaves {
            let _ = fs::remove_dir_all(directory);
        }
    }
}
