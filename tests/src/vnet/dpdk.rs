//! `vnet serve` with a front end by others: DPDK's. Frames go out to a cable, come back, and are compared.
use super::network;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{PacketIo, PacketOptions, PacketPort};
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile, counts, hopscope_bin};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The driver never has more under way: no ring between here and there overflows.
const WINDOW: u64 = 64;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) device: &'static str,
    /// A TAP device in place of a cable: the frames go through the kernel's end of it.
    pub(super) tap: bool,
    pub(super) serve: &'static [&'static str],
    /// Calls for each packet, to the call; the driver asks for none.
    pub(super) calls: u64,
}

pub(super) const CASES: [Case; 5] = [
    Case {
        name: "through_tap",
        device: "",
        tap: true,
        serve: &[],
        calls: 0,
    },
    Case {
        name: "split",
        device: "",
        tap: false,
        serve: &[],
        calls: 0,
    },
    Case {
        name: "packed",
        device: ",packed_vq=1",
        tap: false,
        serve: &[],
        calls: 0,
    },
    Case {
        name: "split_by_flags_called_for_each",
        device: "",
        tap: false,
        serve: &[
            "--kick-policy=flags",
            "--tx-call-policy=plain",
            "--rx-call-policy=plain",
        ],
        calls: 1,
    },
    Case {
        name: "packed_called_for_each",
        device: ",packed_vq=1",
        tap: false,
        serve: &["--tx-call-policy=plain", "--rx-call-policy=plain"],
        calls: 1,
    },
];

pub(super) fn every_byte(case: &Case) -> Result<()> {
    network::namespace()?;
    let (port, far) = match case.tap {
        true => ("--tap=near", "near"),
        false => {
            network::cable("near", "far")?;
            ("--veth=near", "far")
        }
    };
    let peer = build("dpdk/virtio_peer.c", &["-O2"])?;
    let place = network::Place::new()?;
    let socket = place.join("vnet.sock");
    let back_end = BackEnd::start(&socket, &[&[port], case.serve].concat())?;
    let mut far = PacketPort::open(far, PacketOptions::default())?;
    let count = counts().pick(5_000, 200_000);
    let rounds = 2;
    let mut bytes = 0;
    for _ in 0..rounds {
        let driver = drive(&peer, &socket, case.device, count, &mut far, &mut || Ok(()))?;
        for (what, expected) in [
            ("sent", count),
            ("received", count),
            ("wrong", 0),
            ("disorder", 0),
            ("others", 0),
        ] {
            ensure!(driver[what] == expected, "{what}: {driver}");
        }
        // Of 512 bytes each: frames of up to 1514 take up to three.
        let segments = driver["segments"].as_u64().context("segments")?;
        ensure!(segments > count * 3 / 2, "few chains a packet: {driver}");
        bytes += driver["bytes"].as_u64().context("bytes")?;
    }
    let summary = back_end.stop()?;
    let packets = rounds * count;
    ensure!(summary["connections"] == rounds, "{summary}");
    ensure!(summary["broken_off"] == 0, "{summary}");
    let pair = &summary["pairs"][0];
    for queue in ["rx", "tx"] {
        let queue = &pair[queue];
        ensure!(
            queue["packets"] == packets && queue["bytes"] == bytes,
            "{summary}"
        );
        ensure!(queue["calls"] == case.calls * packets, "calls: {summary}");
        ensure!(
            queue["broken"] == 0 && queue["starts"] == rounds,
            "{summary}"
        );
        let drops = queue["drops"].as_object().context("drops")?;
        ensure!(drops.values().all(|count| count == 0), "{summary}");
    }
    let port = &pair["port"];
    ensure!(
        port["sent"] == packets && port["sent_bytes"] == bytes,
        "{summary}"
    );
    ensure!(
        port["received"] == packets && port["received_bytes"] == bytes,
        "{summary}"
    );
    let kicks = pair["tx"]["kicks"].as_u64().context("kicks")?;
    let seen = pair["tx"]["kicks_seen"].as_u64().context("kicks_seen")?;
    // The driver kicks for what it adds; one more when it starts the queue.
    ensure!(
        (1..=packets + rounds).contains(&kicks) && seen <= kicks,
        "{summary}"
    );
    Ok(())
}

/// One driver, from its start to its end, while what comes out of the cable goes back into it.
pub(super) fn drive(
    peer: &Path,
    socket: &Path,
    device: &str,
    count: u64,
    far: &mut PacketPort,
    meanwhile: &mut dyn FnMut() -> Result<()>,
) -> Result<Value> {
    let device = format!(
        "--vdev=net_virtio_user0,path={},server=0,queues=1{device}",
        socket.display()
    );
    let mut command = Command::new(peer);
    command
        .args([
            "-l",
            "0",
            "--no-shconf",
            "--no-telemetry",
            "--no-pci",
            "--no-huge",
            "-m",
            "128",
            &device,
            "--",
        ])
        .args([count.to_string(), WINDOW.to_string()])
        .arg(if device.contains("packed") { "0" } else { "1" })
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut driver = Target::spawn_now(&mut command)?;
    while driver.child().try_wait()?.is_none() {
        echo(far)?;
        meanwhile()?;
    }
    let out = driver.output()?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{}: {said}{log}", out.status))
}

pub(super) fn echo(far: &mut PacketPort) -> Result<()> {
    let mut frames = Vec::new();
    far.receive(WINDOW as usize, &mut |frame| {
        frames.push(frame.bytes.to_vec())
    })?;
    let mut next = frames.iter();
    far.send(frames.len(), &mut |slot| {
        let frame = next.next().map_or(&[][..], Vec::as_slice);
        slot[..frame.len()].copy_from_slice(frame);
        hopscope_netio::Outgoing {
            len: frame.len(),
            ..Default::default()
        }
    })?;
    far.flush()?;
    if frames.is_empty()
        && let Some(fd) = far.wait_fd()
    {
        poll(
            &mut [PollFd::new(fd, PollFlags::POLLIN)],
            PollTimeout::from(20u8),
        )?;
    }
    Ok(())
}

/// `hopscope vnet serve --json`, from ready to its summary.
/// With the file that its messages go to.
pub(super) struct BackEnd(Target, PathBuf);

impl BackEnd {
    pub(super) fn start(socket: &Path, arguments: &[&str]) -> Result<BackEnd> {
        let ready = socket.with_extension("ready");
        let _ = std::fs::remove_file(&ready);
        let said = socket.with_extension("stderr");
        let mut command = Command::new(hopscope_bin());
        command
            .args(["vnet", "serve", "--json", "--socket"])
            .arg(socket)
            .arg("--ready-file")
            .arg(&ready)
            .args(arguments)
            .stdin(Stdio::null())
            // A pipe that nobody reads is full after some hundred connections, and the back end waits.
            .stdout(std::fs::File::create(said.with_extension("stdout"))?)
            .stderr(std::fs::File::create(&said)?);
        let target = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(BackEnd(target, said))
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        self.0.signal(signal)
    }

    pub(super) fn stop(self) -> Result<Value> {
        self.0.signal(Signal::SIGTERM)?;
        let out = self.0.output()?;
        let said = std::fs::read_to_string(self.1.with_extension("stdout"))?;
        let status = std::fs::read_to_string(self.1)?;
        ensure!(out.status.success(), "{}: {status}{said}", out.status);
        let summary: Value = serde_json::from_str(said.lines().last().context("no line")?)?;
        ensure!(
            summary["type"] == "summary" && summary["schema"] == 1,
            "{said}"
        );
        Ok(summary)
    }
}

pub(crate) fn build(source: &str, options: &[&str]) -> Result<PathBuf> {
    let flags = |what| -> Result<Vec<String>> {
        let out = run(Command::new("pkg-config").args([what, "libdpdk"]))?.expect_code(0)?;
        Ok(out.stdout.split_whitespace().map(str::to_owned).collect())
    };
    let found = [flags("--cflags")?, flags("--libs")?].concat();
    let found = found.iter().map(String::as_str);
    let all: Vec<&str> = options.iter().copied().chain(found).collect();
    compile("gcc", &[source], &all)
}
