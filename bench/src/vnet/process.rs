//! `hopscope vnet serve` and `drive`, as processes: started, waited for, ended, and what they say at their end.
use crate::error::{Error, Result};
use crate::program::last_words;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ten times what was ever seen, and more.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// One end of a queue at work.
pub(super) struct End {
    name: &'static str,
    child: Option<Child>,
    stderr: PathBuf,
}

impl End {
    /// Ready when this returns. `command` has every word but where to say so.
    pub(super) fn start(name: &'static str, files: &Path, mut command: Command) -> Result<End> {
        std::fs::create_dir_all(files).map_err(Error::file("create", files))?;
        let ready = files.join(format!("{name}.ready"));
        let stderr = files.join(format!("{name}.stderr"));
        let _ = std::fs::remove_file(&ready);
        let said = std::fs::File::create(&stderr).map_err(Error::file("create", &stderr))?;
        command.arg("--json").arg("--ready-file").arg(&ready);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(said).spawn().map_err(Error::start(name))?;
        let mut end = End {
            name,
            child: Some(child),
            stderr,
        };
        let began = Instant::now();
        while !ready.exists() {
            if end.has_ended() {
                return Err(end.failed());
            }
            if began.elapsed() > READY_WITHIN {
                return Err(Error::NotReady {
                    program: name.into(),
                    seconds: READY_WITHIN.as_secs(),
                    said: end.said(),
                });
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(end)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// As Ctrl-C; its summary.
    pub(super) fn finish(mut self) -> Result<Value> {
        if !self.has_ended() {
            let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGINT);
        }
        self.summary()
    }

    /// Waits until it ends by itself; its summary.
    pub(super) fn wait(mut self) -> Result<Value> {
        self.summary()
    }

    fn summary(&mut self) -> Result<Value> {
        let mut text = String::new();
        if let Some(stdout) = self.child.as_mut().and_then(|child| child.stdout.as_mut()) {
            stdout
                .read_to_string(&mut text)
                .map_err(Error::file("read from", self.name))?;
        }
        let status = self.child.as_mut().map(Child::wait).transpose();
        let status = status.map_err(Error::file("wait for", self.name))?;
        if !status.is_some_and(|status| status.success()) {
            return Err(self.failed());
        }
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).map_err(|_| Error::NoSummary {
            program: self.name.into(),
            line: line.into(),
        })
    }

    fn said(&self) -> String {
        last_words(&std::fs::read_to_string(&self.stderr).unwrap_or_default())
    }

    fn failed(&mut self) -> Error {
        let status = self.child.as_mut().and_then(|child| child.wait().ok());
        Error::Failed {
            program: format!("hopscope vnet {}", self.name),
            status: status.map_or(String::new(), |status| status.to_string()),
            said: self.said(),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A number at a path of a summary.
pub(super) fn number(said: &Value, path: &str) -> Result<f64> {
    let at = |object, name: &str| Value::get(object, name);
    let found = path.split('.').try_fold(said, |object, name| {
        name.parse::<usize>()
            .map_or_else(|_| at(object, name), |n| object.get(n))
    });
    found.and_then(Value::as_f64).ok_or_else(|| Error::NoField {
        program: "hopscope vnet".into(),
        field: path.into(),
        line: said.to_string(),
    })
}
