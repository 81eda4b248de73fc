//! Traffic under `hopscope slice`, and the check of all that was recorded.
use super::network::{CLIENT, Network, SERVER};
use super::traffic::{PORTS, SlicerIs, Traffic, port};
use super::{account, calls, check};
use anyhow::{Context, Result, ensure};
use hopscope_event::slice::Sliced;
use hopscope_netio::bridge::LaneCounts;
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile_c, hopscope, hopscope_bin, scratch};
use hopscope_trace::TraceReader;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

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
