//! A process to measure: started, awaited by its ready file, always killed at the end.
use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Only a process that hangs waits this long.
const WATCHDOG: Duration = Duration::from_secs(60);
const LOOK_AGAIN_MS: u8 = 20;

pub struct Target {
    child: Option<Child>,
    pid: i32,
}

impl Target {
    /// Starts `command` with `READY_FILE` set to a fresh path and returns when the program has
    /// created that file.
    ///
    /// # Errors
    /// When it cannot be started, ends first, or does not become ready.
    pub fn spawn(command: &mut Command) -> Result<Target> {
        let ready =
            crate::paths::scratch_root().join(format!("ready-{}-{}", std::process::id(), unique()));
        command.env("READY_FILE", &ready);
        let target = Target::spawn_with_ready_file(command, &ready);
        let _ = std::fs::remove_file(&ready);
        target
    }

    /// The same for programs that have a ready file of their own, such as a pid file.
    ///
    /// # Errors
    /// As [`Target::spawn`].
    pub fn spawn_with_ready_file(command: &mut Command, ready: &Path) -> Result<Target> {
        let dir = ready.parent().context("a ready file has a directory")?;
        std::fs::create_dir_all(dir)?;
        let _ = std::fs::remove_file(ready);
        let watch = DirectoryWatch::new(dir)?;
        let mut target = Target::spawn_now(command)?;
        let started = Instant::now();
        while !ready.exists() {
            if let Some(status) = target.child().try_wait()? {
                bail!("{command:?} ended before it was ready: {status}");
            }
            if started.elapsed() > WATCHDOG {
                bail!("{command:?} did not create {} ", ready.display());
            }
            watch.wait()?;
        }
        Ok(target)
    }

    /// For programs whose being started is all that matters.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn_now(command: &mut Command) -> Result<Target> {
        let child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(Target {
            pid: child.id() as i32,
            child: Some(child),
        })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("taken only by value")
    }

    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.pid), signal)
            .with_context(|| format!("{signal} to process {}", self.pid))
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// When it does not within the watchdog's time; it is killed then.
    pub fn wait(mut self) -> Result<ExitStatus> {
        self.wait_at_most(WATCHDOG)
    }

    /// # Errors
    /// As [`Target::wait`].
    pub fn wait_at_most(&mut self, watchdog: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child().try_wait()? {
                return Ok(status);
            }
            if started.elapsed() > watchdog {
                bail!("process {} did not end in {watchdog:?}", self.pid);
            }
            poll(&mut [], LOOK_AGAIN_MS)?;
        }
    }

    /// Waits and gives what the process wrote to its pipes. The case's watchdog guards it.
    ///
    /// # Errors
    /// When reading fails.
    pub fn output(mut self) -> Result<Output> {
        let child = self.child.take().expect("taken only by value");
        Ok(child.wait_with_output()?)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Wakes when something happens in a directory.
struct DirectoryWatch(Inotify);

impl DirectoryWatch {
    fn new(dir: &Path) -> Result<DirectoryWatch> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let events =
            AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_CLOSE_WRITE;
        inotify.add_watch(dir, events)?;
        Ok(DirectoryWatch(inotify))
    }

    /// Returns at the next event, or after a moment to see whether the program still lives.
    fn wait(&self) -> Result<()> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, LOOK_AGAIN_MS)?;
        // What happened is of no interest, only that it did; an empty queue reads as EAGAIN.
        let _ = self.0.read_events();
        Ok(())
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn unique() -> u32 {
    COUNT.fetch_add(1, Ordering::Relaxed)
}
