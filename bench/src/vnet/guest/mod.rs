//! `bench vnet-guest`: policies of notification with an unmodified driver, that of Debian's kernel in a virtual
//! machine: eight network devices, each with a `vnet serve` of its own under another policy, in turn.
mod accelerator;
mod compared;
mod console;
mod device;
mod headline;
mod recovery;
mod report;
mod table;
mod traffic;
mod window;

use super::Bench;
use super::cpu_usage::Thread;
use super::load::{self, Servers};
use crate::Settings;
use crate::error::{Error, Result};
use crate::load::network::{Namespace, Server, processors};
use crate::not_measured::NotMeasured;
use console::Talk;
use device::{Device, POLICIES};
use headline::Figures;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use hopscope_guest::{Guest, Kernel, Nic};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use traffic::{ECHO, SINK, Traffic};
use window::{Both, Look, Run};

/// Of a guest with all its rounds: against hanging only.
const WATCHDOG: Duration = Duration::from_secs(1800);
const GRACE: Duration = Duration::from_secs(1);

/// Who is on this side of the guest's devices.
struct Place {
    namespace: Namespace,
    servers: Servers,
    /// Of datagrams.
    echo: Server,
    devices: Vec<Device>,
    offload: bool,
}

/// `kernel` is the folder that `scripts/install-vm` fills.
pub fn run(settings: &Settings, kernel: &Path, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let settings = &settings.seen_from_the_root()?;
    let name = format!("hopscope-bench-vnet-guest-{}", std::process::id());
    let mut figures = Figures {
        quick: settings.quick,
        ..Figures::default()
    };
    {
        let files = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&files).map_err(Error::file("create", &files))?;
        let mut bench = Bench {
            settings,
            files,
            output: &mut output,
            rounds: settings.pick(1, 2, 7),
            milliseconds: settings.pick(40, 120, 250),
        };
        let missing = |what: String, error: Error| NotMeasured::new(what, error);
        match Kernel::find(kernel) {
            Err(error) => {
                let missing = missing("the guest".into(), error.into());
                figures.not_measured.push(missing);
            }
            Ok(kernel) => {
                figures.accelerator = accelerator::found(&bench, &kernel);
                for offload in [false, true] {
                    if let Err(error) = booted(&mut bench, &kernel, offload, &mut figures) {
                        let what = format!("the guest {} offloads", with(offload));
                        figures.not_measured.push(missing(what, error));
                    }
                }
            }
        }
    }
    Ok(output.summary(&host, report::summary(figures))?)
}

fn with(offload: bool) -> &'static str {
    if offload { "with" } else { "without" }
}

/// One machine with all devices, from its start to its end.
fn booted(
    bench: &mut Bench<'_, '_>,
    kernel: &Kernel,
    offload: bool,
    figures: &mut Figures,
) -> Result<()> {
    let mut place = Place::make(bench, offload)?;
    let files = bench.files.join("guest");
    let mut guest = Guest::new(kernel, &bench.settings.hopscope, &files)?;
    for n in 0..POLICIES.len() {
        guest.nic(Nic::new(device::socket(&bench.files, n)))?;
    }
    guest.accelerator(figures.accelerator.clone());
    guest.step_seconds(u32::try_from(WATCHDOG.as_secs()).unwrap_or(u32::MAX));
    let line = bench.files.join("line");
    guest.line(&line);
    guest.step("agent", include_str!("agent.sh"));
    bench.settings.say(&format!(
        "a guest with Linux {}, {} rounds, {} offloads",
        kernel.release,
        bench.rounds,
        with(offload)
    ));
    figures.guest_kernel = Some(kernel.release.clone());
    let bench_files = bench.files.clone();
    let given_up = AtomicBool::new(false);
    let (gone, is_gone) = mpsc::channel();
    std::thread::scope(|scope| {
        let machine = scope.spawn(|| {
            let ran = accelerator::run(guest, &bench_files, WATCHDOG, &given_up);
            let _ = gone.send(());
            ran
        });
        let measured = Talk::begin(&line, &|| machine.is_finished())
            .and_then(|talk| measure(bench, &mut place, talk, figures));
        // A machine that goes takes its line with it a little sooner than it is gone.
        let had_ended = measured.is_err() && is_gone.recv_timeout(GRACE).is_ok();
        given_up.store(measured.is_err(), Ordering::Relaxed);
        let ran = machine.join();
        let ran = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (measured, ran) {
            // It was ended because of the first.
            (Err(error), Err(_)) if !had_ended => Err(error),
            (_, Err(error)) => Err(error.into()),
            (measured, Ok(_)) => measured,
        }
    })?;
    for device in place.devices {
        // That all packets are accounted for is in its exit code.
        device.end.finish()?;
    }
    Ok(())
}

impl Place {
    fn make(bench: &Bench<'_, '_>, offload: bool) -> Result<Place> {
        let namespace = Namespace::new()?;
        let hopscope = &bench.settings.hopscope;
        let servers = Servers::start(hopscope, &namespace)?;
        let mut echo = namespace.in_its_network_on_one_processor(hopscope);
        echo.args(["load", "udp", "serve", "--service", "echo", "--json"]);
        echo.args(["--listen", "0.0.0.0:0", "--until-stdin-ends"]);
        let echo = Server::start("hopscope load udp serve", echo)?;
        let mut devices = Vec::new();
        for n in 0..POLICIES.len() {
            device::make_tap(&namespace, n)?;
            devices.push(Device::start(bench, &namespace, n, offload)?);
        }
        Ok(Place {
            namespace,
            servers,
            echo,
            devices,
            offload,
        })
    }
}

/// Every policy under every load in each round, in an order that changes.
fn measure(
    bench: &mut Bench<'_, '_>,
    place: &mut Place,
    mut talk: Talk,
    figures: &mut Figures,
) -> Result<()> {
    let up = talk.ask(&format!("up {} {SINK} {ECHO}", POLICIES.len()))?;
    figures.guest_clock = up
        .iter()
        .find_map(|line| line.strip_prefix("clock ").map(String::from));
    let policies = device::chosen(bench.settings.quick);
    for n in policies.iter().copied() {
        // Not counted: all that is the first of its kind.
        window(bench, place, &mut talk, n, traffic::RR)?;
    }
    for round in 0..bench.rounds {
        bench.say("a guest's networks", round);
        for traffic in traffic::all(bench.settings.quick, place.offload) {
            for n in traffic::order(&policies, round) {
                let run = window(bench, place, &mut talk, n, traffic)?;
                bench.sample(json!({
                    "what": "guest", "round": round, "load": traffic.name(), "unit": traffic.load.unit(),
                    "offload": place.offload, "policy": POLICIES[n].name, "run": run,
                }))?;
                figures.runs.add(place.offload, traffic, n, run);
            }
        }
    }
    if !place.offload {
        let times = bench.settings.pick(1, 1, 5);
        figures.recovery = Some(recovery::measure(bench, place, &mut talk, times)?);
    }
    talk.leave()
}

fn window(
    bench: &Bench<'_, '_>,
    place: &Place,
    talk: &mut Talk,
    n: usize,
    traffic: Traffic,
) -> Result<Run> {
    let device = &place.devices[n];
    let words = traffic.client(&place.servers, n, bench.milliseconds);
    let look = |talk: &mut Talk| Look::of(&talk.ask(&format!("look {n}"))?);
    let counts = device.counts()?;
    let thread = Thread::of(device.end.pid())?;
    let (before, said) = if traffic.into {
        let before = look(talk)?;
        let (first, _) = processors();
        let mut client = place.namespace.in_its_network("taskset");
        client.args(["-c", &first]).arg(&bench.settings.hopscope);
        client.arg("load").args(words);
        (before, load::run(client)?)
    } else {
        window::of_the_guest(&talk.ask(&format!("load {n} {}", words.join(" ")))?)?
    };
    let used = Thread::of(device.end.pid())?.since(thread);
    let before = Both {
        guest: before,
        counts,
    };
    let (after, agreed) = window::settled(device, || look(talk))?;
    window::run(traffic, &said, (&before, &after), used, agreed)
}
