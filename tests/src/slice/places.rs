//! Where it is started: without a mount of cgroup2, outside the namespace of the device, and a second time.
use super::live::Live;
use super::losses::namespace;
use anyhow::{Context, Result, ensure};
use hopscope_tests::hopscope;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// As `ip netns exec` leaves it.
pub(super) fn without_cgroup2() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        if let (Some(place), Some("cgroup2")) = (words.next(), words.next()) {
            umount2(place, MntFlags::MNT_DETACH)?;
        }
    }
    namespace()?;
    let live = Live::start(&["udp port 7731"])?;
    let reader = UdpSocket::bind("127.0.0.1:7731")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.send_to(b"a packet", "127.0.0.1:7731")?;
    reader.recv(&mut [0; 8])?;
    let said = live.stop()?;
    let [packet] = &said.packets[..] else {
        anyhow::bail!("{} packets: {}", said.packets.len(), said.summary);
    };
    let slices = packet["slices"].as_array().context("slices")?;
    let at = |point: &str| slices.iter().any(|slice| slice["from"] == point);
    ensure!(at("tx_ip_out"), "no hook at sockets: {packet}");
    Ok(())
}

/// `-i` names a device of the namespace that `--netns` names.
pub(super) fn device_of_a_namespace() -> Result<()> {
    let mut inside = Command::new("unshare")
        .args(["--net", "sh", "-c"])
        .arg("ip link add inner type veth peer name other && echo there && exec sleep 60")
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let out = inside.stdout.take().context("a pipe")?;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)?;
    ensure!(line == "there\n", "no device: {line:?}");
    let pid = inside.id().to_string();
    let done = Live::start(&["--netns", &pid, "-i", "inner"]).and_then(Live::stop);
    let refused = hopscope(&["slice", "--netns", &pid, "-i", "outer", "-d", "0.1"])?;
    inside.kill()?;
    inside.wait()?;
    done?;
    refused.expect_refusal(&["-i outer", "no such interface in --netns"])
}

/// The second start does without the second that measuring takes, and says nothing of it.
pub(super) fn constants_are_kept() -> Result<()> {
    measured_and_kept("udp port 7732")
}

/// Packets that others do not read would hold every slot.
pub(super) fn constants_beside_others() -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let others = std::thread::spawn(move || unread_packets(&seen));
    let done = measured_and_kept("udp port 7733");
    stop.store(true, Ordering::Relaxed);
    others.join().ok().context("a thread panicked")??;
    done
}

/// Four times as many as there are slots, in sockets that come and go.
fn unread_packets(stop: &AtomicBool) -> Result<()> {
    const SOCKETS: usize = 160;
    const EACH: usize = 100;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let mut sockets = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        for _ in 0..EACH {
            sender.send_to(b"unread", socket.local_addr()?)?;
        }
        sockets.push_back(socket);
        if sockets.len() > SOCKETS {
            sockets.pop_front();
        }
    }
    Ok(())
}

fn measured_and_kept(filter: &str) -> Result<()> {
    let start = |more: &[&str]| -> Result<String> {
        let words = [&["slice", "-d", "0.05", filter], more].concat();
        Ok(hopscope(&words)?.expect_code(0)?.stderr)
    };
    let measuring = "measuring what stamps cost";
    let first = start(&["--recalibrate"])?;
    ensure!(first.contains(measuring), "{first}");
    let second = start(&[])?;
    ensure!(
        !second.contains(measuring) && second.contains("are watched"),
        "{second}"
    );
    Ok(())
}
