//! Where there is no room for a packet's record, it is counted once: against what the kernel counted.
use super::live::Live;
use super::losses::{ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use nix::sched::{CloneFlags, unshare};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::mpsc::channel;

const NEAR: &str = "02:00:00:00:00:01";
const FAR: &str = "02:00:00:00:00:02";

/// A socket behind a pair of devices, in a network namespace that lasts as long as it, as do the devices. Nothing else passes the devices.
pub(super) fn beyond_a_cable<S: Send + 'static>(open: fn() -> std::io::Result<S>) -> Result<S> {
    let (say_thread, thread) = channel();
    let (say_there, there) = channel();
    let socket = std::thread::spawn(move || -> Result<S> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        say_thread.send(nix::unistd::gettid())?;
        there.recv()?;
        ip("link set far addrgenmode none")?;
        ip("addr add 10.77.2.2/24 dev far")?;
        ip("link set far up")?;
        ip(&format!("neigh add 10.77.2.1 lladdr {NEAR} dev far"))?;
        Ok(open()?)
    });
    let thread = thread.recv()?;
    ip(&format!(
        "link add near address {NEAR} type veth peer name far address {FAR} netns {thread}"
    ))?;
    // The kernel cuts what TCP sends.
    let cut = ["-K", "near", "tso", "off"];
    command(Command::new("ethtool").args(cut))?.expect_code(0)?;
    ip("link set near addrgenmode none")?;
    ip("addr add 10.77.2.1/24 dev near")?;
    ip("link set near up")?;
    say_there.send(())?;
    let socket = socket.join().ok().context("a thread panicked")??;
    ip(&format!("neigh add 10.77.2.2 lladdr {FAR} dev near"))?;
    Ok(socket)
}

/// Packets that passed this end of the cable, in both directions.
fn passed() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("near:"));
    let fields: Vec<u64> = line
        .context("no device")?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    // Bytes, packets and six more received; the same sent.
    Ok(fields[1] + fields[9])
}

/// Of UDP, in this namespace: datagrams that programs have received, and sent.
fn datagrams() -> Result<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next(), lines.next());
    let (names, values) = names.zip(values).context("no UDP")?;
    let of = |name: &str| -> Result<u64> {
        let mut pairs = names.split(' ').zip(values.split(' '));
        let value = pairs.find(|(found, _)| *found == name);
        Ok(value.context("no counter")?.1.parse()?)
    };
    Ok([of("InDatagrams")?, of("OutDatagrams")?])
}

/// On neither side of the cable.
pub(super) fn without_slots() -> Result<()> {
    const PACKETS: u64 = 400;
    const SLOTS: u64 = 64;
    namespace()?;
    let reader = beyond_a_cable(|| UdpSocket::bind("10.77.2.2:7715"))?;
    let live = Live::start(&["--slots", "64", "udp port 7715"])?;
    let sender = UdpSocket::bind("10.77.2.1:0")?;
    for _ in 0..PACKETS {
        sender.send_to(b"later", "10.77.2.2:7715")?;
    }
    let said = live.stop()?;
    let passed = passed()?;
    drop(reader);
    said.expect_adds_up()?;
    let (received, lost) = (said.number("received")?, said.number("lost")?);
    ensure!(
        received == PACKETS && passed == PACKETS && (PACKETS - SLOTS..PACKETS).contains(&lost),
        "{received} received, {lost} lost: {}",
        said.summary
    );
    Ok(())
}

/// Some segments have a record, of others the packet that they were cut from has none, or the receiving side has one.
pub(super) fn segments_without_slots() -> Result<()> {
    const WRITES: usize = 40;
    const EACH: usize = 30_000;
    namespace()?;
    let listener = beyond_a_cable(|| TcpListener::bind("10.77.2.2:7717"))?;
    let live = Live::start(&["--slots", "64", "tcp port 7717"])?;
    let reader = std::thread::spawn(move || -> Result<(usize, TcpListener)> {
        let (mut end, _) = listener.accept()?;
        Ok((end.read_to_end(&mut Vec::new())?, listener))
    });
    let mut sender = TcpStream::connect("10.77.2.2:7717")?;
    for _ in 0..WRITES {
        sender.write_all(&[0; EACH])?;
    }
    sender.shutdown(std::net::Shutdown::Write)?;
    // The other end's FIN has come, and was answered.
    ensure!(sender.read(&mut [0])? == 0, "somebody answers");
    let (read, listener) = reader.join().ok().context("a thread panicked")??;
    ensure!(read == WRITES * EACH, "{read} of {WRITES} times {EACH}");
    let said = live.stop()?;
    let passed = passed()?;
    drop(listener);
    let received = said.number("received")?;
    ensure!(
        received == passed && said.counter("no_slot")? > 0 && said.counter("split")? > 0,
        "{received} received, {passed} passed: {}",
        said.summary
    );
    Ok(())
}

/// More than are remembered of one socket, which has room for all; it is closed with some unread.
pub(super) fn beyond_the_queue() -> Result<()> {
    const REMEMBERED: u64 = 128;
    const MORE: u64 = 112;
    const READ: u64 = 150;
    const LATER: u64 = 60;
    namespace()?;
    let live = Live::start(&["udp port 7716"])?;
    let reader = UdpSocket::bind("127.0.0.1:7716")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let send = |packets: u64| -> Result<()> {
        for _ in 0..packets {
            sender.send_to(b"later", "127.0.0.1:7716")?;
        }
        Ok(())
    };
    send(REMEMBERED + MORE)?;
    for _ in 0..READ {
        reader.recv(&mut [0; 5])?;
    }
    send(LATER)?;
    drop(reader);
    live.expect_none_in_flight()?;
    let said = live.stop()?;
    said.expect_adds_up()?;
    ensure!(
        datagrams()? == [READ, REMEMBERED + MORE + LATER]
            && said.number("received")? == REMEMBERED + MORE + LATER
            && said.number("lost")? == MORE
            && said.counter("queue_full")? == MORE
            && said.counter("dropped")? == LATER
            && said.counter("ambiguous")? == 0
            && said.counter("written")? == REMEMBERED + LATER,
        "{}",
        said.summary
    );
    let read = said
        .packets
        .iter()
        .filter(|one| !one["rx"]["tid"].is_null());
    let read = read.count() as u64;
    ensure!(read == REMEMBERED, "{read} with a reader");
    Ok(())
}
