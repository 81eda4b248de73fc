//! `bench splice-guest`: the echo server that is a kernel module, beside the others, in a virtual machine with
//! another kernel; this machine's is given no modules. The machine is emulated (no KVM) and has one
//! processor: what compares is what runs there in turn, and only as far as an emulator's costs are like
//! a processor's.
mod report;
mod script;
mod shell_output;

use super::released::{self, SIZE, Shape};
use super::request_rates::{Load, rows};
use super::servers::{BACKLOG, ServerKind};
use crate::Settings;
use crate::error::{Error, Result};
use crate::load::programs::compiled;
use crate::not_measured::NotMeasured;
use crate::program::Compiler;
use crate::virtual_machine;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use hopscope_guest::{ECHO, Guest, Kernel, Run};
use report::Figures;
use shell_output::Said;
use std::path::Path;
use std::time::{Duration, Instant};

const KINDS: [ServerKind; 6] = [
    ServerKind::User,
    ServerKind::Module,
    ServerKind::UserMt,
    ServerKind::Uring,
    ServerKind::Kernel,
    ServerKind::Splice,
];

const CLIENTS: u32 = 1000;
const LOADS: [Load; 3] = [load(1), load(16), load(64)];

const fn load(connections: u32) -> Load {
    Load {
        connections,
        size: 64,
    }
}

struct GuestPlan {
    rounds: usize,
    /// In so many of them, the first ones, clients are released together.
    releases: usize,
    /// Of one window.
    milliseconds: u64,
}

/// `kernel` is the folder that `scripts/install-vm` fills.
pub fn run(settings: &Settings, kernel: &Path, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let plan = GuestPlan {
        rounds: settings.pick(1, 2, 9),
        releases: settings.pick(1, 1, 9),
        milliseconds: settings.pick(25, 100, 300),
    };
    let mut figures = Figures::default();
    match booted(settings, kernel, &plan) {
        Ok(run) => read(&run, &plan, &mut figures, &mut output)?,
        Err(error) => figures
            .not_measured
            .push(NotMeasured::new("the guest", error)),
    }
    Ok(output.summary(&host, figures.summary())?)
}

fn booted(settings: &Settings, kernel: &Path, plan: &GuestPlan) -> Result<Run> {
    let kernel = Kernel::find(kernel)?;
    let dir = settings.build_dir.join("splice");
    let compiler = Compiler::of_the_system();
    let ask = compiled(&dir, &compiler, "ask", include_str!("../ask.c"))?;
    let module = ECHO.build(&kernel, &dir)?;
    let files = dir.join(format!("guest-{}", std::process::id()));
    let mut guest = Guest::new(&kernel, &settings.hopscope, &files)?;
    guest.program(&ask, "/bin/ask")?;
    guest.copy(&module, "/hop_echo.ko")?;
    guest.file("/servers.sh", include_bytes!("servers.sh"));
    guest.step("servers", &script::servers());
    for round in 0..plan.rounds {
        guest.step(&name(round), &script::round(round, plan));
    }
    guest.step("end", script::END);
    settings.say(&format!(
        "a guest with Linux {}: {} rounds; it says nothing before its end",
        kernel.release, plan.rounds
    ));
    let started = Instant::now();
    let run =
        guest.run(|qemu| virtual_machine::wait(&qemu, None, &|| started.elapsed() > WATCHDOG));
    let _ = std::fs::remove_dir_all(&files);
    Ok(run?)
}

fn name(round: usize) -> String {
    format!("round-{round}")
}

/// A whole run took two minutes: against hanging only.
const WATCHDOG: Duration = Duration::from_secs(1800);

fn read(run: &Run, plan: &GuestPlan, figures: &mut Figures, output: &mut Output<'_>) -> Result<()> {
    let mut said = Said::default();
    said.servers(&step(run, "servers")?, &mut figures.not_measured);
    for round in 0..plan.rounds {
        said.round(round, &step(run, &name(round))?, output)?;
    }
    figures.guest_kernel = Some(run.release.clone());
    figures.module = shell_output::module(&step(run, "end")?)?;
    figures.headline = report::Headline::of(&said.standing);
    figures.standing = rows(PATH, &said.standing);
    let shape = Shape {
        clients: CLIENTS,
        backlog: BACKLOG,
        // The guest has no other.
        one_processor: true,
        rounds: plan.releases,
    };
    let released = said.released.iter();
    figures.released = released
        .filter_map(|(kind, found)| released::row(PATH, *kind, &shape, found))
        .collect();
    Ok(())
}

const PATH: &str = "guest";

/// What a step said that went well.
fn step(run: &Run, name: &str) -> Result<String> {
    let step = run.step(name)?;
    match step.code {
        0 => Ok(String::from_utf8_lossy(&step.stdout).into_owned()),
        code => Err(Error::failed(
            format!("{name} in the guest"),
            code,
            crate::program::last_words(&String::from_utf8_lossy(&step.stderr)),
        )),
    }
}
