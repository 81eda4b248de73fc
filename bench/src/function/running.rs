//! A network function at work on an endless supply of packets from memory.
use super::counter::Counter;
use crate::error::{Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: &'static str,
    child: Child,
    /// The thread that handles the packets, by the name it has.
    worker: String,
    pub(crate) counter: Counter,
    /// Left behind by a program that ends without tidying up.
    leaves: Option<PathBuf>,
}

impl Running {
    pub(crate) fn new(name: &'static str, child: Child, worker: &str, counter: Counter) -> Running {
        Running {
            name,
            child,
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
        self.child.id() as i32
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
    /// Processor time of the worker for each packet, over a window of so many milliseconds.
    pub(crate) fn ns_per_packet(&mut self, milliseconds: u64) -> Result<f64> {
        let (packets, ns) = (self.counter.packets()?, self.worker_ns()?);
        std::thread::sleep(Duration::from_millis(milliseconds));
        let (packets, ns) = (self.counter.packets()? - packets, self.worker_ns()? - ns);
        match packets {
            0 => Err(Error::Nothing {
                what: "a network function at work",
            }),
            _ => Ok(ns as f64 / packets as f64),
        }
    }

    /// The error, and how the program ended if that is behind it.
    pub(crate) fn blamed(&mut self, error: Error) -> Error {
        blamed(self.name, &mut self.child, error)
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
        // One of them has no handler for any signal, another ignores SIGINT.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(directory) = &self.leaves {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

pub(crate) fn blamed(program: &str, child: &mut Child, error: Error) -> Error {
    match child.try_wait() {
        Ok(Some(status)) => Error::Ended {
            program: program.into(),
            status: status.to_string(),
            source: Box::new(error),
        },
        _ => error,
    }
}

/// Starts `command` and waits until `is_ready` says so. The program's words go to a file.
pub(crate) fn start(
    command: &mut Command,
    log: &Path,
    mut is_ready: impl FnMut() -> bool,
) -> Result<Child> {
    let create = || fs::File::create(log).map_err(Error::file("create", log));
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(create()?);
    let mut child = command.spawn().map_err(Error::start(&program))?;
    let start = Instant::now();
    let said = || crate::program::last_words(&fs::read_to_string(log).unwrap_or_default());
    while !is_ready() {
        let status = child
            .try_wait()
            .map_err(Error::file("wait for", &program))?;
        if let Some(status) = status {
            return Err(Error::Failed {
                program,
                status: status.to_string(),
                said: said(),
            });
        }
        if start.elapsed() > READY_WITHIN {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::NotReady {
                program,
                seconds: READY_WITHIN.as_secs(),
                said: said(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(child)
}
