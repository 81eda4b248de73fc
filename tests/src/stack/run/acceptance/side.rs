//! Programs on the stack in either mode: what shows that they are not on the kernel's, and that nothing is left of them.
use super::super::pipeline::instance::Instance;
use super::super::running::{cable, frames, left_nothing, on_the_stack, over_the_cable};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::Target;
use hopscope_tests::command::{Output, run};
use nix::sys::signal::Signal;
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

/// Of the cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum End {
    Stack,
    Kernel,
}

impl End {
    pub(in super::super) fn address(self) -> &'static str {
        match self {
            End::Stack => STACK,
            End::Kernel => KERNEL,
        }
    }

    pub(in super::super) fn other(self) -> End {
        match self {
            End::Stack => End::Kernel,
            End::Kernel => End::Stack,
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
        self.command_with(&[], program)
    }

    /// With `--trace` in either mode.
    pub(in super::super) fn traced(&self, program: &[&str]) -> Command {
        self.command_with(&["--trace"], program)
    }

    fn command_with(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = match &self.instance {
            Some(instance) => instance.run(options, program),
            None => on_the_stack(&["--trace"], program),
        };
        command.stdin(Stdio::null());
        command
    }

    /// At the stack's end or on the kernel's stack.
    pub(in super::super) fn command_at(&self, end: End, program: &[&str]) -> Command {
        match end {
            End::Stack => self.command(program),
            End::Kernel => on_the_kernel(program),
        }
    }

    /// A client, to its end.
    pub(in super::super) fn runs(&self, program: &[&str]) -> Result<Output> {
        let out = run(&mut self.command(program))?.expect_code(0)?;
        self.nothing_is_left(&out.stderr)?;
        Ok(out)
    }

    /// A server that makes a file once it listens.
    pub(in super::super) fn starts(&self, program: &[&str], ready: &Path) -> Result<Program> {
        self.starts_at(End::Stack, program, ready)
    }

    pub(in super::super) fn starts_at(
        &self,
        end: End,
        program: &[&str],
        ready: &Path,
    ) -> Result<Program> {
        let mut command = self.command_at(end, program);
        self.spawns_at(end, command.stdout(Stdio::null()), |command| {
            Target::spawn_with_ready_file(command, ready)
        })
    }

    pub(in super::super) fn spawns(
        &self,
        command: &mut Command,
        spawn: impl Fn(&mut Command) -> Result<Target>,
    ) -> Result<Program> {
        self.spawns_at(End::Stack, command, spawn)
    }

    pub(in super::super) fn spawns_at(
        &self,
        end: End,
        command: &mut Command,
        spawn: impl Fn(&mut Command) -> Result<Target>,
    ) -> Result<Program> {
        let said = files().join(format!("program-said-{end:?}"));
        let target = spawn(command.stderr(File::create(&said)?))?;
        Ok(Program { target, said, end })
    }

    /// By itself or by a signal that it handles; nothing of it is left.
    pub(in super::super) fn ended(&self, program: Program, signal: Option<Signal>) -> Result<()> {
        if let Some(signal) = signal {
            program.target.signal(signal)?;
        }
        let status = program.target.wait()?;
        let said = std::fs::read_to_string(&program.said)?;
        ensure!(status.success(), "{status}: {said}");
        match program.end {
            End::Stack => self.nothing_is_left(&said),
            End::Kernel => Ok(()),
        }
    }

    /// In pipeline that is seen when all of them are gone.
    pub(in super::super) fn nothing_is_left(&self, said: &str) -> Result<()> {
        self.instance
            .as_ref()
            .map_or_else(|| left_nothing(said), |_| Ok(()))
    }

    /// More than so many frames came, and the instance has neither sockets nor bytes of anybody.
    pub(in super::super) fn ends(self, least: u64) -> Result<()> {
        match self.instance {
            Some(instance) => instance.ends(least).map(drop),
            None => over_the_cable(self.before, least),
        }
    }

    /// The instance has nothing of programs.
    pub(in super::super) fn stops(self) -> Result<()> {
        let instance = self.instance.map(Instance::has_nothing_left);
        instance.transpose().map(drop)
    }

    /// Where programs attach, in pipeline.
    pub(in super::super) fn socket(&self) -> Option<&Path> {
        self.instance
            .as_ref()
            .map(|instance| Path::new(instance.socket()))
    }
}

pub(in super::super) fn on_the_kernel(program: &[&str]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::null());
    command
}

/// One that goes on, and what it says on standard error.
pub(in super::super) struct Program {
    pub(in super::super) target: Target,
    said: PathBuf,
    end: End,
}

impl Program {
    pub(in super::super) fn says_in(mut self, file: PathBuf) -> Program {
        self.said = file;
        self
    }
}
