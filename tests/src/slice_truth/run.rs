//! Traffic under `hopscope slice`, and the check of all that was recorded.
use super::network::{CLIENT, Network, SERVER};
use super::{SetUp, account, calls, check};
use anyhow::{Context, Result, ensure};
use hopscope_event::slice::Sliced;
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile_c, hopscope_bin, scratch};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(super) const PORTS: u16 = 16;

/// The server's first: of each process others, so that no proof asks for another's packets.
pub(super) fn port() -> u16 {
    // Below those that the kernel gives to clients.
    10_000 + (std::process::id() % 1400) as u16 * PORTS
}

/// The arguments of `truth.c`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) protocol: &'static str,
    pub(super) is_six: bool,
    pub(super) rounds: u64,
    pub(super) burst: u64,
    pub(super) size: u64,
    pub(super) read: u64,
    pub(super) writer: &'static str,
    pub(super) reader: &'static str,
    pub(super) flows: u64,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            protocol: "tcp",
            is_six: false,
            rounds: 1,
            burst: 1,
            size: 64,
            read: 65_536,
            writer: "send",
            reader: "recv",
            flows: 1,
        }
    }
}

pub(super) fn checked(name: &str, traffic: &Traffic, set_up: SetUp) -> Result<()> {
    let network = Network::new()?;
    set_up(&network)?;
    let directory = scratch().join(name.replace("::", "-"));
    std::fs::create_dir_all(&directory)?;
    let (file, ready) = (directory.join("x.hop"), directory.join("ready"));
    let program = compile_c(&["slice/truth.c"], &["-O2", "-Wall", "-lpthread"])?;
    let mut slice = Command::new(hopscope_bin());
    // The first bytes have UDP's number of the message.
    slice.args(["slice", "-q", "-s", "64", "-o"]);
    slice.arg(&file).arg("--ready-file").arg(&ready);
    slice.args(["portrange", &format!("{}-{}", port(), port() + PORTS - 1)]);
    slice.stdout(Stdio::piped()).stderr(Stdio::piped());
    let slicer = Target::spawn_with_ready_file(&mut slice, &ready)?;
    let mut truth = Command::new(program);
    truth.args([
        traffic.protocol,
        &network.path(CLIENT),
        &network.path(SERVER),
    ]);
    truth.arg(if traffic.is_six {
        "fd77::2"
    } else {
        "10.77.0.2"
    });
    for number in [
        u64::from(port()),
        traffic.rounds,
        traffic.burst,
        traffic.size,
        traffic.read,
    ] {
        truth.arg(number.to_string());
    }
    truth.args([traffic.writer, traffic.reader, &traffic.flows.to_string()]);
    run(truth.arg(&directory))?.expect_code(0)?;
    slicer.signal(Signal::SIGINT)?;
    let out = slicer.output()?;
    ensure!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let reader = TraceReader::open(&file)?;
    let summary = reader.tables().slice_summary.clone().context("a summary")?;
    let batches: Vec<Vec<Sliced>> = reader.slices().collect::<Result<_, _>>()?;
    let records: Vec<Sliced> = batches.into_iter().flatten().collect();
    account::adds_up(&summary, records.len() as u64)?;
    let calls = calls::read(&directory)?;
    let found = check::records(traffic, &records, &calls)?;
    account::covered(traffic, &found, &calls, &summary)
}
