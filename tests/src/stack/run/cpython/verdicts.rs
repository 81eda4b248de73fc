//! A run of some tests, on either stack, in a folder of its own: what became of each.
use super::super::running::python;
use crate::stack::cable::files;
use anyhow::{Context, Result, ensure};
use hopscope_tests::Target;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Of one run: a test that hangs ends it after two minutes.
const WATCHDOG: Duration = Duration::from_secs(1_200);

pub(super) struct Run {
    target: Target,
    verdicts: PathBuf,
    said: PathBuf,
}

/// What became of each test, of its parts too, and of how many frames the kernel's loopback was part.
pub(super) struct Verdicts {
    pub of: BTreeMap<String, Vec<String>>,
    pub frames: u64,
    /// On both channels.
    pub said: String,
}

/// `on`: the whole command of a program. Names of one length: paths of sockets have an end (unix(7)).
pub(super) fn start(name: &str, tests: &[String], on: impl Fn(&[&str]) -> Command) -> Result<Run> {
    let folder = files().join(name);
    std::fs::create_dir_all(&folder)?;
    let (verdicts, said) = (
        files().join(format!("{name}-verdicts")),
        files().join(format!("{name}-said")),
    );
    let at = verdicts.display().to_string();
    let mut program = python("cpython.py", &[&at]);
    program.extend_from_slice(tests);
    let program: Vec<_> = program.iter().map(String::as_str).collect();
    let out = File::create(&said)?;
    let mut command = on(&program);
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(out.try_clone()?)
        .stdout(out);
    let target = Target::spawn_now(&mut command)?;
    Ok(Run {
        target,
        verdicts,
        said,
    })
}

impl Run {
    pub(super) fn ends(mut self) -> Result<Verdicts> {
        let status = self.target.wait_at_most(WATCHDOG)?;
        // Lines of several processes: one may begin within a character of another's.
        let said = std::fs::read(&self.said)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(status.success(), "{status}: {said}");
        let mut of = BTreeMap::<_, Vec<_>>::new();
        for line in std::fs::read_to_string(&self.verdicts)?.lines() {
            let (test, verdict) = line.split_once('\t').context("no verdict")?;
            of.entry(test.to_owned())
                .or_default()
                .push(verdict.to_owned());
        }
        // The last line.
        let frames = of.remove("all").with_context(|| said.clone())?;
        let frames = frames.concat().parse()?;
        Ok(Verdicts { of, frames, said })
    }
}

/// On the kernel's stack, in a network namespace of its own, where nothing else is on loopback.
pub(super) fn kernels(program: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    let lo = "ip link set lo up && exec \"$@\"";
    command.args(["--net", "sh", "-c", lo, "sh"]).args(program);
    command
}
