//! Ways to run one and the same program: on the kernel's stack, and on ours.
use crate::Settings;
use crate::error::Result;
use crate::load::network::{Namespace, Server};
use crate::stack::network::{Cables, KERNEL, Running, STACK, server_in, stack_serves};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Kernel,
    /// The program never sleeps.
    KernelSpins,
    /// `stack run`: the stack is in the program.
    Inline,
    InlineSpins,
    /// `stack run --mode pipeline`: the stack is in a process beside it, on the same processor.
    Pipeline,
    /// The same over a TAP device, to the kernel that the client has.
    PipelineTap,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Kernel => "kernel",
            Way::KernelSpins => "kernel_spins",
            Way::Inline => "inline",
            Way::InlineSpins => "inline_spins",
            Way::Pipeline => "pipeline",
            Way::PipelineTap => "pipeline_tap",
        }
    }

    pub(super) fn spins(self) -> bool {
        matches!(self, Way::KernelSpins | Way::InlineSpins)
    }

    fn is_kernels(self) -> bool {
        matches!(self, Way::Kernel | Way::KernelSpins)
    }
}

/// Where a server runs: its port, the address of the kernel there, and that of the stack.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) port: &'a str,
    pub(super) kernel: &'a str,
    pub(super) stack: &'a str,
    /// What the stack is told beside.
    pub(super) words: &'a [&'a str],
}

impl<'a> Place<'a> {
    /// At the servers' end of two cables.
    pub(super) fn of(cables: &'a Cables) -> Place<'a> {
        Place {
            namespace: &cables.server,
            port: "s1",
            kernel: KERNEL,
            stack: STACK,
            words: &[],
        }
    }

    pub(super) fn host(&self, way: Way) -> &'a str {
        if way.is_kernels() {
            self.kernel
        } else {
            self.stack
        }
    }
}

/// What is run.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) words: Vec<OsString>,
    /// It is ready once this is there. None: it says so itself, and ends with its stdin.
    pub(super) pid_file: Option<PathBuf>,
    pub(super) port: &'static str,
}

/// A program that serves, and the instance that has its stack.
pub(super) struct Serving {
    program: Option<Started>,
    instance: Option<Server>,
    pub(super) port: &'static str,
}

enum Started {
    Server(Server),
    Running(Running),
}

impl Serving {
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        let program = self.program.as_ref().map(|program| match program {
            Started::Server(server) => server.pid(),
            Started::Running(running) => running.pid(),
        });
        program
            .into_iter()
            .chain(self.instance.as_ref().map(Server::pid))
    }
}

impl Drop for Serving {
    /// The program first: it ends in order while it has its stack.
    fn drop(&mut self) {
        match self.program.take() {
            Some(Started::Server(server)) => drop(server.finish()),
            Some(Started::Running(running)) => running.end(),
            None => {}
        }
    }
}

impl Way {
    /// Returns once it serves.
    pub(super) fn start(
        self,
        settings: &Settings,
        place: Place<'_>,
        program: &Program,
    ) -> Result<Serving> {
        let socket = std::env::temp_dir().join(format!("hopscope-bench-{}", std::process::id()));
        let address = format!("--addr={}/24", place.stack);
        let instance = match self {
            Way::Pipeline | Way::PipelineTap => {
                let mut words = vec!["--socket", socket.to_str().unwrap_or_default(), &address];
                words.extend(place.words);
                let namespace = place.namespace;
                Some(stack_serves(settings, namespace, place.port, &words)?)
            }
            _ => None,
        };
        let mut words: Vec<OsString> = Vec::new();
        if !self.is_kernels() {
            words.push(settings.hopscope.clone().into());
            words.extend(["stack", "run", "-q", "--if", place.port].map(OsString::from));
            if instance.is_some() {
                words.extend(["--mode=pipeline", "--socket"].map(OsString::from));
                words.push(socket.into());
            } else {
                words.push(address.into());
                words.extend(place.words.iter().map(OsString::from));
            }
            words.push("--".into());
        }
        words.extend(program.words.iter().cloned());
        let mut words = words.into_iter();
        let first = words.next().unwrap_or_default();
        let mut command = server_in(place.namespace, first.as_ref());
        command.args(words);
        let name = program.name;
        let started = match &program.pid_file {
            None => Started::Server(Server::start(name, command)?),
            Some(file) => {
                let _ = std::fs::remove_file(file);
                Started::Running(Running::start(name, command, file)?)
            }
        };
        Ok(Serving {
            program: Some(started),
            instance,
            port: program.port,
        })
    }
}
