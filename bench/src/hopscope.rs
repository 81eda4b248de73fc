//! Drives the `hopscope` binary as a user would: attach, wait for the ready file, interrupt.
use crate::Settings;
use crate::error::{Error, Result};
use crate::program::{Compiler, Program, ProgramPlan, Variant, build, last_words};
use crate::said::last_line;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(120);

/// The binary under test and a folder for its files.
#[derive(Debug, Clone)]
pub struct Hopscope {
    pub binary: PathBuf,
    pub files: PathBuf,
}

/// The program with functions of a few instructions, built, and the hopscope that records it.
pub fn beside_short_functions(settings: &Settings) -> Result<(Hopscope, Program)> {
    let compiler = Compiler::of_the_system();
    let (plan, plain) = (ProgramPlan::short(), Variant::Plain);
    let program = build(&settings.build_dir, &plan, &compiler, plain)?;
    let hopscope = Hopscope::of(settings);
    Ok((hopscope, program))
}

/// A running `hopscope record`. Dropping it kills the recorder; [`Recording::stop`] is the way.
#[derive(Debug)]
pub struct Recording {
    child: Option<Child>,
    stderr: PathBuf,
    stdout: PathBuf,
    pub file: PathBuf,
    /// From starting the process to its ready file.
    pub ready_after: Duration,
}

/// What a finished recording said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Last JSON object on stdout.
    pub summary: Value,
    pub file: PathBuf,
    /// From the interrupt to the end of the process.
    pub stopped_after: Duration,
}

impl Hopscope {
    /// The binary under test.
    pub fn of(settings: &Settings) -> Hopscope {
        Hopscope {
            binary: settings.hopscope.clone(),
            files: settings.build_dir.join("recordings"),
        }
    }

    /// Attaches to `pid` and returns when everything is measured.
    pub fn record(&self, pid: i32, patterns: &[&str], options: &[&str]) -> Result<Recording> {
        fs::create_dir_all(&self.files).map_err(Error::file("create", &self.files))?;
        let at = |name: &str| self.files.join(format!("{name}-{pid}"));
        let (ready, file) = (at("ready"), at("recording.hop"));
        let (stdout, stderr) = (at("record.stdout"), at("record.stderr"));
        for old in [&ready, &file] {
            remove(old)?;
        }
        let create = |path: &Path| fs::File::create(path).map_err(Error::file("create", path));
        let mut command = Command::new(&self.binary);
        command.args(["record", "-p", &pid.to_string()]);
        for pattern in patterns {
            command.args(["-f", pattern]);
        }
        command.arg("-o").arg(&file);
        command.arg("--ready-file").arg(&ready);
        command
            .args(["--max-overhead", "100000", "--json"])
            .args(options);
        command.stdin(Stdio::null());
        command.stdout(create(&stdout)?).stderr(create(&stderr)?);
        let start = Instant::now();
        let child = command
            .spawn()
            .map_err(Error::start(self.binary.to_string_lossy()))?;
        let mut recording = Recording {
            child: Some(child),
            stderr,
            stdout,
            file,
            ready_after: Duration::ZERO,
        };
        while !ready.exists() {
            if let Some(status) = recording.finished()? {
                return Err(recording.failed(status));
            }
            if start.elapsed() > READY_WITHIN {
                return Err(Error::NotReady {
                    program: "hopscope record".into(),
                    seconds: READY_WITHIN.as_secs(),
                    said: recording.said(),
                });
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        recording.ready_after = start.elapsed();
        remove(&ready)?;
        Ok(recording)
    }

    /// Runs `hopscope ARGUMENTS` to its end; returns its stdout.
    pub fn ask(&self, arguments: &[&str]) -> Result<String> {
        crate::program::run(Command::new(&self.binary).args(arguments))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", path)(e)),
        _ => Ok(()),
    }
}

impl Recording {
    fn finished(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => child
                .try_wait()
                .map_err(Error::file("wait for", "hopscope record")),
            None => Ok(None),
        }
    }

    fn said(&self) -> String {
        last_words(&fs::read_to_string(&self.stderr).unwrap_or_default())
    }

    fn failed(&self, status: ExitStatus) -> Error {
        Error::failed("hopscope record", status, self.said())
    }

    /// As Ctrl-C does: detach, write the file, print the summary.
    pub fn stop(mut self) -> Result<Recorded> {
        let Some(mut child) = self.child.take() else {
            unreachable!("taken only here and in drop")
        };
        let start = Instant::now();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).map_err(|source| Error::System {
            doing: "interrupt hopscope record",
            source,
        })?;
        let status = child
            .wait()
            .map_err(Error::file("wait for", "hopscope record"))?;
        let stopped_after = start.elapsed();
        if !status.success() {
            return Err(self.failed(status));
        }
        let mut printed = String::new();
        fs::File::open(&self.stdout)
            .and_then(|mut f| f.read_to_string(&mut printed))
            .map_err(Error::file("read", &self.stdout))?;
        let summary = last_line("hopscope record --json", &printed)?;
        Ok(Recorded {
            summary,
            file: self.file.clone(),
            stopped_after,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Interrupted, not killed: the target may live on and should not stay patched.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
            let _ = child.wait();
        }
    }
}

impl Recorded {
    /// Recordings are large, and of interest only to benches of the file.
    pub fn discard(&self) -> Result<()> {
        remove(&self.file)
    }

    /// An error unless exactly so many functions were measured and none was refused: figures of
    /// a program that is measured only in part would be too good.
    pub fn expect_functions(&self, wanted: usize) -> Result<()> {
        let (functions, refused) = (self.number("functions")?, self.number("refused")?);
        if functions == wanted as f64 && refused == 0.0 {
            Ok(())
        } else {
            Err(Error::Functions {
                wanted,
                functions,
                refused,
            })
        }
    }

    /// A number of the summary, on its top level or in its `summary` object.
    pub fn number(&self, key: &str) -> Result<f64> {
        self.field(key)
            .and_then(Value::as_f64)
            .ok_or_else(|| self.lacks(key))
    }

    /// The largest of a list of numbers (one a target).
    pub fn largest(&self, key: &str) -> Result<f64> {
        self.field(key)
            .and_then(Value::as_array)
            .and_then(|list| {
                let numbers = list.iter().filter_map(Value::as_f64);
                numbers.max_by(f64::total_cmp)
            })
            .ok_or_else(|| self.lacks(key))
    }

    /// Everything it found worth a note, as one text.
    pub fn notes(&self) -> String {
        self.field("notes")
            .map(Value::to_string)
            .unwrap_or_default()
    }

    pub fn text(&self, key: &str) -> Option<String> {
        Some(self.field(key)?.as_str()?.to_string())
    }

    fn field(&self, key: &str) -> Option<&Value> {
        self.summary
            .get(key)
            .or_else(|| self.summary.get("summary")?.get(key))
    }

    fn lacks(&self, key: &str) -> Error {
        Error::no_summary(
            format!("hopscope record --json with a field {key}"),
            &self.summary,
        )
    }
}
