//! What is lost is counted, and the account adds up.
use super::live::Live;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::UdpSocket;
use std::process::Command;

/// For this process alone; the devices go with it.
pub(super) fn namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    ip("link set lo up")
}

pub(super) fn ip(arguments: &str) -> Result<()> {
    let out = command(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}

/// The packets of the interface until it went are there; the run ends by itself, as tcpdump's does, though another
/// interface has its number by then.
pub(super) fn interface_goes() -> Result<()> {
    namespace()?;
    ip("link add near index 77 type veth peer name far")?;
    ip("addr add 10.77.1.1/24 dev near")?;
    ip("link set near up")?;
    ip("link set far up")?;
    // Nobody answers for the neighbour.
    ip("neigh add 10.77.1.2 lladdr 02:00:00:00:00:02 dev near")?;
    let live = Live::start(&["-i", "near", "udp port 7712"])?;
    let socket = UdpSocket::bind("10.77.1.1:0")?;
    for _ in 0..20 {
        socket.send_to(b"anybody?", "10.77.1.2:7712")?;
    }
    ip("link del near")?;
    ip("link add next index 77 type veth peer name after")?;
    let said = live.ends(1)?;
    said.expect_adds_up()?;
    let of_ours = said.counter("created")?;
    ensure!(of_ours == 20, "{of_ours} packets: {}", said.summary);
    Ok(())
}

/// The same where the interface is another namespace's, of which the process that named it has ended.
pub(super) fn interface_of_a_namespace_goes() -> Result<()> {
    let mut inside = Command::new("unshare")
        .args(["--net", "sh", "-c"])
        .arg(
            "ip link add inner type veth peer name other
            sleep infinity > /dev/null & echo $!; exec >&-; read line; ip link del inner; wait",
        )
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut stays = String::new();
    let out = inside.stdout.take().context("a pipe")?;
    std::io::Read::read_to_string(&mut { out }, &mut stays)?;
    let stays = Pid::from_raw(stays.trim().parse()?);
    let done = in_namespace(&mut inside, stays);
    kill(stays, Signal::SIGKILL)?;
    inside.wait()?;
    done
}

fn in_namespace(inside: &mut std::process::Child, stays: Pid) -> Result<()> {
    let named = Command::new("nsenter")
        .args(["--net", "--target", &stays.to_string(), "sleep", "infinity"])
        .spawn();
    let mut named = named?;
    let pid = named.id().to_string();
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net"));
    while namespace(&pid)? != namespace(&stays.to_string())? {
        std::thread::yield_now();
    }
    let live = Live::start(&["--netns", &pid, "-i", "inner"]);
    named.kill()?;
    named.wait()?;
    drop(inside.stdin.take());
    live?.ends(1)?.expect_adds_up()
}

/// Packets that nobody reads hold their slots: those that come when none is left are counted.
pub(super) fn too_few_slots() -> Result<()> {
    const PACKETS: u64 = 400;
    const SLOTS: u64 = 64;
    namespace()?;
    let live = Live::start(&["--slots", "64", "udp port 7713"])?;
    let reader = UdpSocket::bind("127.0.0.1:7713")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    for _ in 0..PACKETS {
        sender.send_to(b"later", "127.0.0.1:7713")?;
    }
    let said = live.stop()?;
    drop(reader);
    said.expect_adds_up()?;
    let (created, refused) = (said.counter("created")?, said.counter("no_slot")?);
    let left = PACKETS - created;
    // One that was not followed from the sending side asks again where it is received, and is counted once.
    ensure!(
        (1..=SLOTS).contains(&created) && (left..=PACKETS).contains(&refused),
        "{created} followed, {refused} not: {}",
        said.summary
    );
    Ok(())
}
