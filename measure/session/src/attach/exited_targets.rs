//! Targets that exit before they are recorded.
use crate::error::Error;
use hopscope_process::procfs;

/// A process as it was found; exits show as many kinds of errors.
pub(crate) struct Running {
    pid: i32,
    started: Option<u64>,
}

impl Running {
    pub(crate) fn now(pid: i32) -> Running {
        Running {
            pid,
            started: procfs::start_time(pid),
        }
    }

    /// The error, or that the process exited meanwhile.
    pub(crate) fn or_exited(&self, error: Error, meanwhile: &str) -> Error {
        let pid = self.pid;
        match self.started {
            Some(then) if procfs::start_time(pid) != Some(then) => Error::refused(format!(
                "process {pid} exited while it was being {meanwhile}"
            )),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn whatever_failed_the_exit_is_told() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("started");
        let running = Running::now(child.id() as i32);
        let told = || {
            let error = Error::refused("ptrace failed");
            running.or_exited(error, "attached to").to_string()
        };
        assert_eq!(told(), "ptrace failed");
        child.kill().expect("killed");
        // Not waited for yet: a zombie has exited too.
        let exited = format!(
            "process {} exited while it was being attached to",
            child.id()
        );
        while procfs::start_time(child.id() as i32).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(told(), exited);
        child.wait().expect("waited for");
        assert_eq!(told(), exited);

        let gone = Running {
            pid: running.pid,
            started: None,
        };
        let unknown = gone.or_exited(Error::refused("no process"), "looked into");
        assert_eq!(unknown.to_string(), "no process");
    }
}
