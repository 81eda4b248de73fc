//! The highest rate that this machine gives, for as long as is asked: memory stays as it is, files are cut,
//! and every packet is in the account.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, counts, hopscope, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Beyond what it had after a fifth of the time.
const GROWTH_KIB: u64 = 2_048;

pub(super) fn run() -> Result<()> {
    let seconds = counts().pick(2, 600);
    let dir = scratch();
    let ready = dir.join("ready");
    let mut command = Command::new(hopscope_bin());
    command.args([
        "slice",
        "--json",
        "--no-calibration",
        "-C",
        "64",
        "-W",
        "2",
        "-o",
    ]);
    command
        .arg(dir.join("x.hop"))
        .arg("--ready-file")
        .arg(&ready);
    command
        .args(["tcp or udp", "-s", "64"])
        .stderr(Stdio::piped());
    let slicer = Target::spawn_with_ready_file(&mut command, &ready)?;
    let stop = Arc::new(AtomicBool::new(false));
    let traffic = [
        bulk(Arc::clone(&stop))?,
        round_trips(Arc::clone(&stop))?,
        datagrams(Arc::clone(&stop))?,
    ];
    let begin = Instant::now();
    let wait = |until: Duration| {
        while begin.elapsed() < until {
            std::thread::park_timeout(until - begin.elapsed());
        }
    };
    wait(Duration::from_secs(seconds) / 5);
    let early = resident_kib(slicer.pid())?;
    wait(Duration::from_secs(seconds));
    let late = resident_kib(slicer.pid())?;
    stop.store(true, Ordering::Relaxed);
    for thread in traffic {
        let sent = thread
            .join()
            .map_err(|_| anyhow::anyhow!("traffic ended badly"))??;
        ensure!(sent > 1_000, "{sent} packets of one kind");
    }
    slicer.signal(Signal::SIGINT)?;
    let out = slicer.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {said}", out.status);
    ensure!(late <= early + GROWTH_KIB, "{early} KiB, later {late} KiB");
    account(&last_summary(&dir)?)
}

/// Of the file that was written last: only this one has an end.
fn last_summary(dir: &Path) -> Result<Value> {
    for file in std::fs::read_dir(dir)? {
        let file = file?.path();
        if !file.to_string_lossy().contains("x.hop") {
            continue;
        }
        let path = file.to_str().context("path")?;
        let words = ["slice", "-q", "--json", "-r", path, "less 1"];
        let out = hopscope(&words)?.expect_code(0)?;
        let closing: Value = serde_json::from_str(out.stdout.lines().last().context("nothing")?)?;
        if !closing["summary"].is_null() {
            return Ok(closing["summary"].clone());
        }
    }
    anyhow::bail!("no file has an end")
}

/// Created is what ended and what is under way.
fn account(summary: &Value) -> Result<()> {
    let counter = |name: &str| {
        let value = summary["counters"][name].as_u64();
        value.with_context(|| format!("{name}: {summary}"))
    };
    let ended = [
        "written",
        "ring_full",
        "too_fast",
        "other_process",
        "aged",
        "stale_ended",
        "split_parents",
        "queue_full",
    ];
    let ended: u64 = ended.iter().map(|name| counter(name)).sum::<Result<_>>()?;
    let in_flight = summary["in_flight"].as_u64().context("in_flight")?;
    ensure!(counter("created")? == ended + in_flight, "{summary}");
    ensure!(counter("written")? > 10_000, "{summary}");
    Ok(())
}

/// Without the ring, which is the kernel's and is touched bit by bit.
fn resident_kib(pid: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("RssAnon")?.parse()?)
}

type Traffic = JoinHandle<Result<u64>>;

fn connection() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    Ok((here, listener.accept()?.0))
}

/// Segments as long as may be, coalesced and merged.
fn bulk(stop: Arc<AtomicBool>) -> Result<Traffic> {
    let (mut from, mut to) = connection()?;
    let reader = std::thread::spawn(move || -> std::io::Result<()> {
        let mut room = vec![0; 1 << 16];
        while to.read(&mut room)? > 0 {}
        Ok(())
    });
    Ok(std::thread::spawn(move || {
        let bytes = vec![7; 1 << 16];
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            from.write_all(&bytes)?;
            sent += 1;
        }
        drop(from);
        reader.join().map_err(|_| anyhow::anyhow!("the reader"))??;
        Ok(sent)
    }))
}

fn round_trips(stop: Arc<AtomicBool>) -> Result<Traffic> {
    let (mut here, mut there) = connection()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok(std::thread::spawn(move || {
        let mut room = [0; 64];
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            here.write_all(&room)?;
            there.read_exact(&mut room)?;
            there.write_all(&room)?;
            here.read_exact(&mut room)?;
            sent += 2;
        }
        Ok(sent)
    }))
}

fn datagrams(stop: Arc<AtomicBool>) -> Result<Traffic> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    Ok(std::thread::spawn(move || {
        let mut room = [0; 64];
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            socket.send(&room)?;
            socket.recv(&mut room)?;
            sent += 1;
        }
        Ok(sent)
    }))
}
