//! Traffic under `hopscope slice`, and the check of all that was recorded.
use super::network::{CLIENT, Network, SERVER};
use super::{account, calls, check};
use anyhow::{Context, Result, ensure};
use hopscope_event::slice::Sliced;
use hopscope_netio::bridge::LaneCounts;
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile_c, hopscope, hopscope_bin, scratch};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(super) const PORTS: u16 = 16;

/// The server's first: of each process others, so that no test asks for another's packets.
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
    pub(super) mode: &'static str,
    pub(super) writers: u64,
    pub(super) readers: u64,
    /// On the way, by the bridge.
    pub(super) may_lose: bool,
    pub(super) may_reorder: bool,
    pub(super) may_duplicate: bool,
    /// Of `hopscope slice`.
    pub(super) options: &'static [&'static str],
    pub(super) slicer: SlicerIs,
}

/// What is done to the slicer while packets are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlicerIs {
    Always,
    /// Its process does not run, so that the ring becomes full.
    Stopped,
    /// Its hooks see nothing for some of the time: by its options, or by `slice set enable`.
    AtTimes,
    Toggled,
}

impl Traffic {
    pub(super) fn is_stream(&self) -> bool {
        self.protocol == "tcp"
    }
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
            mode: "rounds",
            writers: 1,
            readers: 1,
            may_lose: false,
            may_reorder: false,
            may_duplicate: false,
            // The first bytes have UDP's number of the message.
            options: &["-s", "64"],
            slicer: SlicerIs::Always,
        }
    }
}

/// What lies between client and server.
pub(super) type SetUp = fn() -> Result<Network>;

pub(super) fn checked(name: &str, traffic: &Traffic, set_up: SetUp) -> Result<()> {
    let mut network = set_up()?;
    let directory = scratch().join(name.replace("::", "-"));
    std::fs::create_dir_all(&directory)?;
    let (file, ready) = (directory.join("x.hop"), directory.join("ready"));
    let headers = crate::headers("slice")?;
    let program = compile_c(&["slice/truth.c"], &["-O2", "-Wall", "-lpthread", &headers])?;
    let mut slice = Command::new(hopscope_bin());
    slice
        .args(["slice", "-q", "--no-calibration"])
        .args(traffic.options)
        .arg("-o");
    slice.arg(&file).arg("--ready-file").arg(&ready);
    // Other tests' traffic may have any ports.
    let ours = "net 10.77.0.0/16 or net fd77::/16 or host 127.0.0.1 or host ::1";
    let (first, last) = (port(), port() + PORTS - 1);
    slice.arg(format!("portrange {first}-{last} and ({ours})"));
    slice.stdout(Stdio::null());
    let slicer = Target::spawn_with_ready_file(&mut slice, &ready)?;
    let mut truth = Command::new(program);
    truth.args([
        traffic.protocol,
        &network.path(CLIENT),
        &network.path(SERVER),
    ]);
    truth.arg(network.server_address(traffic.is_six));
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
    truth.arg(traffic.mode);
    truth.args([traffic.writers.to_string(), traffic.readers.to_string()]);
    truth.arg(&directory);
    match traffic.slicer {
        SlicerIs::Stopped => {
            slicer.signal(Signal::SIGSTOP)?;
            let ended = run(&mut truth);
            slicer.signal(Signal::SIGCONT)?;
            ended?.expect_code(0)?;
        }
        SlicerIs::Toggled => toggled(slicer.pid(), &mut truth)?,
        SlicerIs::Always | SlicerIs::AtTimes => {
            run(&mut truth)?.expect_code(0)?;
        }
    }
    account::slots_agree(slicer.pid())?;
    slicer.signal(Signal::SIGINT)?;
    let status = slicer.wait()?;
    ensure!(status.success(), "{status}");
    let reader = TraceReader::open(&file)?;
    let summary = reader.tables().slice_summary.clone().context("a summary")?;
    let batches: Vec<Vec<Sliced>> = reader.slices().collect::<Result<_, _>>()?;
    let records: Vec<Sliced> = batches.into_iter().flatten().collect();
    account::adds_up(&summary, records.len() as u64)?;
    let calls = calls::read(&directory)?;
    let found = check::records(traffic, &records, &calls, &summary)?;
    if matches!(traffic.slicer, SlicerIs::Always | SlicerIs::Stopped) {
        account::covered(traffic, &found, &calls, &summary)?;
    }
    if let Some(lanes) = network.counts()? {
        bridged(traffic, &lanes)?;
    }
    Ok(())
}

/// Until the traffic ends.
fn toggled(slicer: i32, truth: &mut Command) -> Result<()> {
    let mut truth = Target::spawn_now(truth)?;
    while truth.child().try_wait()?.is_none() {
        for setting in ["enable=0", "enable=1"] {
            hopscope(&["slice", "set", "--of", &slicer.to_string(), setting])?.expect_code(0)?;
        }
    }
    let status = truth.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// The bridge did what it was there for.
fn bridged(traffic: &Traffic, lanes: &[LaneCounts; 2]) -> Result<()> {
    let there = &lanes[0];
    ensure!(there.overrun == 0 && there.not_sendable == 0, "{lanes:?}");
    ensure!(traffic.may_lose == (there.dropped > 0), "{lanes:?}");
    ensure!(traffic.may_reorder == (there.reordered > 0), "{lanes:?}");
    ensure!(traffic.may_duplicate == (there.duplicated > 0), "{lanes:?}");
    Ok(())
}
