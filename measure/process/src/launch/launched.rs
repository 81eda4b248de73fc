//! A command that runs. It is this process's child and, while it is stopped, its tracee: a look at its threads may be what
//! learns of its end, and the kernel tells of an end once.
use crate::ended;
use nix::libc;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// A started command.
#[derive(Debug)]
pub struct Launched(Child);

impl Launched {
    pub(super) fn new(child: Child) -> Launched {
        ended::expect(child.id() as i32);
        Launched(child)
    }

    /// # Errors
    /// As of `waitpid`.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().or_else(|e| self.seen_before(e))
    }

    /// `None` while it runs.
    ///
    /// # Errors
    /// As of `waitpid`.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait().or_else(|e| self.seen_before(e).map(Some))
    }

    fn seen_before(&self, e: io::Error) -> io::Result<ExitStatus> {
        let status = ended::status_of(self.0.id() as i32);
        match (e.raw_os_error(), status) {
            (Some(libc::ECHILD), Some(status)) => Ok(ExitStatus::from_raw(status)),
            _ => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ptrace::{self, Waited};
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::process::Command;

    #[test]
    fn an_end_that_a_look_at_its_thread_saw_is_told() {
        let child = Command::new("sleep").arg("1000").spawn().expect("started");
        let pid = child.id() as i32;
        let mut launched = Launched::new(child);
        ptrace::seize(pid).expect("a child of ours");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
        loop {
            match ptrace::poll(pid).expect("traced") {
                Waited::Gone => break,
                Waited::Signal(signal) => ptrace::cont(pid, signal).expect("stopped"),
                _ => std::thread::yield_now(),
            }
        }
        let seen = launched.try_wait().expect("its end was seen");
        assert_eq!(seen.and_then(|s| s.signal()), Some(libc::SIGTERM));
        let status = launched.wait().expect("its end was seen");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }
}
