//! `hopscope slice` as a user runs it: attached, interrupted, and its recording read.
use crate::error::{Error, Result};
use crate::program::{last_words, run_as};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "hopscope slice";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The binary under test and a folder for its files.
#[derive(Debug, Clone)]
pub(crate) struct Slicer {
    pub(crate) binary: PathBuf,
    pub(crate) files: PathBuf,
}

/// Hooks that are attached, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Hooks {
    child: Option<Child>,
    recording: PathBuf,
    stderr: PathBuf,
    binary: PathBuf,
}

/// The closing statistics of a recording.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Closing(Value);

impl Slicer {
    /// Returns when every hook is attached; calibration, which takes its time, is over then.
    pub(crate) fn attach(
        &self,
        regions: &str,
        options: &[&str],
        expression: &str,
    ) -> Result<Hooks> {
        fs::create_dir_all(&self.files).map_err(Error::file("create", &self.files))?;
        let at = |name: &str| self.files.join(name);
        let (ready, recording, stderr) = (at("ready"), at("slices.hop"), at("slice.stderr"));
        for old in [&ready, &recording] {
            let _ = fs::remove_file(old);
        }
        let said = fs::File::create(&stderr).map_err(Error::file("create", &stderr))?;
        let mut command = Command::new(&self.binary);
        command.args(["slice", "--regions", regions]).args(options);
        command.arg("-o").arg(&recording);
        command.arg("--ready-file").arg(&ready).arg(expression);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(said).spawn().map_err(Error::start(NAME))?;
        let mut hooks = Hooks {
            child: Some(child),
            recording,
            stderr,
            binary: self.binary.clone(),
        };
        let begin = Instant::now();
        while !ready.exists() {
            hooks.expect_running()?;
            if begin.elapsed() > READY_WITHIN {
                return Err(Error::NotReady {
                    program: NAME.into(),
                    seconds: READY_WITHIN.as_secs(),
                    said: hooks.said(),
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(hooks)
    }

    /// A file of regions: those that lie between the points of a chain.
    pub(crate) fn regions(&self, name: &str, text: &str) -> Result<String> {
        fs::create_dir_all(&self.files).map_err(Error::file("create", &self.files))?;
        let path = self.files.join(format!("{name}.conf"));
        fs::write(&path, text).map_err(Error::file("write", &path))?;
        Ok(path.display().to_string())
    }
}

impl Hooks {
    fn said(&self) -> String {
        last_words(&fs::read_to_string(&self.stderr).unwrap_or_default())
    }

    fn expect_running(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        match child.try_wait().map_err(Error::file("wait for", NAME))? {
            None => Ok(()),
            Some(status) => Err(self.failed(status.to_string())),
        }
    }

    fn failed(&self, status: String) -> Error {
        Error::failed(NAME, status, self.said())
    }

    /// As Ctrl-C does; then the recording is read as a user reads it.
    pub(crate) fn detach(mut self) -> Result<Closing> {
        self.expect_running()?;
        if let Some(mut child) = self.child.take() {
            interrupt(&child)?;
            let status = child.wait().map_err(Error::file("wait for", NAME))?;
            if !status.success() {
                return Err(self.failed(status.to_string()));
            }
        }
        read(&self.binary, &self.recording)
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = interrupt(&child);
            let _ = child.wait();
        }
    }
}

fn interrupt(child: &Child) -> Result<()> {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).map_err(|source| Error::System {
        doing: "interrupt hopscope slice",
        source,
    })
}

fn read(binary: &Path, recording: &Path) -> Result<Closing> {
    let program = "hopscope slice -r --json";
    let mut command = Command::new(binary);
    let printed = run_as(
        program,
        command.args(["slice", "--json", "-r"]).arg(recording),
    )?;
    let line = printed.lines().last().unwrap_or_default();
    let closing: Option<Value> = serde_json::from_str(line).ok();
    let summary = closing.filter(|c| c["type"] == "slice_summary");
    summary
        .map(Closing)
        .ok_or_else(|| Error::no_summary(program, line.chars().take(200).collect::<String>()))
}

impl Closing {
    /// At a path as `calibration/tau_o/mode`.
    pub(crate) fn number(&self, path: &str) -> Result<f64> {
        let found = self.0.pointer(&format!("/{path}")).and_then(Value::as_f64);
        found.ok_or_else(|| {
            Error::no_summary(
                format!("hopscope slice -r --json with a field {path}"),
                self.0.to_string().chars().take(400).collect::<String>(),
            )
        })
    }

    pub(crate) fn packets(&self) -> Result<f64> {
        match self.number("packets")? {
            packets if packets > 0.0 => Ok(packets),
            _ => Err(Error::Nothing {
                what: "slices of a packet",
            }),
        }
    }

    pub(crate) fn hits_per_packet(&self) -> Result<f64> {
        Ok(self.number("summary/counters/hits")? / self.packets()?)
    }

    /// Records that were begun and are not there.
    pub(crate) fn lost(&self) -> Result<f64> {
        let counter = |name: &str| self.number(&format!("summary/counters/{name}"));
        Ok(counter("no_slot")? + counter("ring_full")? + counter("queue_full")?)
    }

    /// By how much the sum of the corrected slices is off the corrected whole, in percent.
    pub(crate) fn slices_off_percent(&self) -> Result<f64> {
        let wholes = self.number("sum_of_wholes")?;
        Ok(100.0 * (self.number("sum_of_slices")? - wholes).abs() / wholes)
    }

    /// Corrected median of the region, if a packet had it.
    pub(crate) fn p50_ns(&self, region: &str) -> Option<f64> {
        let regions = self.0["regions"].as_array()?;
        let found = regions.iter().find(|row| row["region"] == region)?;
        found["count"].as_u64().filter(|count| *count > 0)?;
        found["p50_ns"].as_f64()
    }
}
