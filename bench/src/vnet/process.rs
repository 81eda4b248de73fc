//! `hopscope vnet serve` and `drive`, as processes: started, waited for, ended, and what they say at their end.
use crate::error::{Error, Result};
use crate::program::last_words;
use crate::said::last_line;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// One end of a queue at work.
pub(super) struct End {
    name: &'static str,
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
}

impl End {
    /// Ready when this returns: it says so on its first line. `command` has every other word.
    pub(super) fn start(name: &'static str, files: &Path, mut command: Command) -> Result<End> {
        std::fs::create_dir_all(files).map_err(Error::file("create", files))?;
        let stderr = files.join(format!("{name}.stderr"));
        let said = std::fs::File::create(&stderr).map_err(Error::file("create", &stderr))?;
        let command = command.arg("--json").stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(said);
        let mut child = command.spawn().map_err(Error::start(name))?;
        let Some(stdout) = child.stdout.take() else {
            unreachable!("it was asked for as a pipe")
        };
        let mut end = End {
            name,
            child,
            stdout: BufReader::new(stdout),
            stderr,
        };
        let mut line = String::new();
        let read = end.stdout.read_line(&mut line);
        read.map_err(Error::file("read from", name))?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        if said["type"] == "ready" {
            return Ok(end);
        }
        if !line.is_empty() {
            // It said something else, and may go on for ever.
            let _ = end.child.kill();
        }
        Err(end.failed())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// As Ctrl-C; its summary.
    pub(super) fn finish(mut self) -> Result<Value> {
        if !self.has_ended() {
            let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGINT);
        }
        self.summary()
    }

    /// By this signal, and waited for.
    pub(super) fn stop(mut self, signal: Signal) -> Result<()> {
        let sent = kill(Pid::from_raw(self.pid().cast_signed()), signal);
        sent.map_err(|source| Error::System {
            doing: "end a back end",
            source,
        })?;
        let status = self.child.wait();
        status.map_err(Error::file("wait for", self.name))?;
        Ok(())
    }

    /// Waits until it ends by itself; its summary.
    pub(super) fn wait(mut self) -> Result<Value> {
        self.summary()
    }

    fn summary(&mut self) -> Result<Value> {
        let mut text = String::new();
        self.stdout
            .read_to_string(&mut text)
            .map_err(Error::file("read from", self.name))?;
        let status = self.child.wait();
        let status = status.map_err(Error::file("wait for", self.name))?;
        if !status.success() {
            return Err(self.failed());
        }
        last_line(self.name, &text)
    }

    fn said(&self) -> String {
        last_words(&std::fs::read_to_string(&self.stderr).unwrap_or_default())
    }

    fn failed(&mut self) -> Error {
        let status = self.child.wait().ok();
        Error::failed(
            format!("hopscope vnet {}", self.name),
            status.map_or(String::new(), |status| status.to_string()),
            self.said(),
        )
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number at a path of a summary.
pub(super) fn number(said: &Value, path: &str) -> Result<f64> {
    let at = |object, name: &str| Value::get(object, name);
    let found = path.split('.').try_fold(said, |object, name| {
        name.parse::<usize>()
            .map_or_else(|_| at(object, name), |n| object.get(n))
    });
    found
        .and_then(Value::as_f64)
        .ok_or_else(|| Error::no_field("hopscope vnet", path, said))
}
