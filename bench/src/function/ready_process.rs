//! A program that says when it is ready, and whose words go to a file.
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    log: PathBuf,
}

impl Started {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Where it was asked for as a pipe.
    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The error, and how the program ended if that is behind it.
    pub(crate) fn blamed(&mut self, program: &str, error: Error) -> Error {
        match self.child.try_wait() {
            Ok(Some(status)) => Error::Ended {
                program: program.into(),
                status: status.to_string(),
                said: last_words(&self.log),
                source: Box::new(error),
            },
            _ => error,
        }
    }

    pub(crate) fn end(&mut self) {
        // One of them has no handler for any signal, another ignores SIGINT.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

fn last_words(log: &Path) -> String {
    crate::program::last_words(&fs::read_to_string(log).unwrap_or_default())
}

/// Starts `command` and waits until `is_ready` says so. The program's words go to a file.
pub(crate) fn start(
    command: &mut Command,
    log: &Path,
    mut is_ready: impl FnMut() -> bool,
) -> Result<Started> {
    let create = || fs::File::create(log).map_err(Error::file("create", log));
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(create()?);
    let mut child = command.spawn().map_err(Error::start(&program))?;
    let start = Instant::now();
    let said = || last_words(log);
    while !is_ready() {
        let status = child
            .try_wait()
            .map_err(Error::file("wait for", &program))?;
        if let Some(status) = status {
            return Err(Error::failed(program, status, said()));
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
    Ok(Started {
        child,
        log: log.into(),
    })
}
