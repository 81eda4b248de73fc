//! Programs on the stack in either mode: what shows that they are not on the kernel's, and that nothing is left of them.
use super::super::pipeline::instance::{Instance, of_all_engines};
use super::super::running::{cable, frames, kernel_has_none, left_nothing, on_the_stack};
use crate::stack::cable::files;
use anyhow::{Result, ensure};
use hopscope_tests::Target;
use hopscope_tests::command::{Output, run};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Mode {
    Inline,
    Pipeline,
}

impl Mode {
    pub(in super::super) const BOTH: [Mode; 2] = [Mode::Inline, Mode::Pipeline];

    /// Of the names of its cases.
    pub(in super::super) fn prefix(self) -> &'static str {
        match self {
            Mode::Inline => "stack::run",
            Mode::Pipeline => "stack::pipeline",
        }
    }
}

/// The stack's end of the cable.
pub(in super::super) struct Side {
    instance: Option<Instance>,
    before: u64,
}

impl Side {
    pub(in super::super) fn new(mode: Mode) -> Result<Side> {
        let instance = match mode {
            Mode::Inline => cable().map(|()| None)?,
            Mode::Pipeline => Some(Instance::start(&[])?),
        };
        let before = frames()?;
        Ok(Side { instance, before })
    }

    pub(in super::super) fn command(&self, program: &[&str]) -> Command {
        let mut command = match &self.instance {
            Some(instance) => instance.run(&[], program),
            None => on_the_stack(&["--trace"], program),
        };
        command.stdin(Stdio::null());
        command
    }

    /// A client, to its end.
    pub(in super::super) fn runs(&self, program: &[&str]) -> Result<Output> {
        let out = run(&mut self.command(program))?.expect_code(0)?;
        self.nothing_is_left(&out.stderr)?;
        Ok(out)
    }

    /// A server that makes a file once it listens.
    pub(in super::super) fn starts(&self, program: &[&str], ready: &Path) -> Result<Program> {
        self.spawns(&mut self.command(program), |command| {
            Target::spawn_with_ready_file(command, ready)
        })
    }

    pub(in super::super) fn spawns(
        &self,
        command: &mut Command,
        spawn: impl Fn(&mut Command) -> Result<Target>,
    ) -> Result<Program> {
        let said = files().join("program-said");
        let target = spawn(command.stderr(File::create(&said)?))?;
        Ok(Program { target, said })
    }

    /// By itself or by a signal that it handles; nothing of it is left.
    pub(in super::super) fn ended(&self, program: Program, signal: Option<Signal>) -> Result<()> {
        if let Some(signal) = signal {
            program.target.signal(signal)?;
        }
        let status = program.target.wait()?;
        let said = std::fs::read_to_string(&program.said)?;
        ensure!(status.success(), "{status}: {said}");
        self.nothing_is_left(&said)
    }

    /// In pipeline that is seen when all of them are gone.
    pub(in super::super) fn nothing_is_left(&self, said: &str) -> Result<()> {
        self.instance
            .as_ref()
            .map_or_else(|| left_nothing(said), |_| Ok(()))
    }

    /// More than so many frames came, and the instance has neither sockets nor bytes of anybody.
    pub(in super::super) fn ends(self, least: u64) -> Result<()> {
        // Nobody listens at this port: the address is looked for.
        kernel_has_none(1)?;
        let came = frames()? - self.before;
        ensure!(came > least, "{came} frames over the cable");
        let Some(summary) = self.stops()? else {
            return Ok(());
        };
        let segments = of_all_engines(&summary, "/counters/Tcp/InSegs")?;
        ensure!(segments > least / 2, "{segments} segments in {summary}");
        Ok(())
    }

    /// The instance has nothing of programs: its summary.
    pub(in super::super) fn stops(self) -> Result<Option<Value>> {
        self.instance.map(Instance::has_nothing_left).transpose()
    }
}

/// One that goes on, and what it says on standard error.
pub(in super::super) struct Program {
    pub(in super::super) target: Target,
    said: PathBuf,
}

impl Program {
    pub(in super::super) fn says_in(mut self, file: PathBuf) -> Program {
        self.said = file;
        self
    }

    /// Beside the library of the stack.
    pub(in super::super) fn has_loaded(&self, library: &str) -> Result<()> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.target.pid()))?;
        for library in [library, "libhopscope_preload.so"] {
            ensure!(maps.contains(library), "no {library}");
        }
        Ok(())
    }
}
