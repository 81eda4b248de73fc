//! Two TAP devices, in two namespaces, with `vnet serve` and `vnet drive` between them.
use super::{Sums, drive, summary};
use crate::vnet::{dpdk::BackEnd, network};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, counts};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A connection on which nothing comes for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// And a datagram. Shorter than what `vnet drive` sleeps at most: by then it would be found.
const SOON: Duration = Duration::from_secs(5);
const HERE: &str = "10.9.0.1:7";
const THERE: &str = "10.9.0.2:7";

/// `here` in this namespace and `there` in another, with both ends between them; `begin` is called there first, so
/// that somebody listens. What `there` gives, and what the front end counted, which is what the back end did.
fn between<L: Send, T: Send>(
    socket: &Path,
    (options, served): (&[&str], &[&str]),
    begin: impl FnOnce() -> Result<L> + Send,
    there: impl FnOnce(L) -> Result<T> + Send,
    here: impl FnOnce() -> Result<()>,
) -> Result<(T, Value)> {
    let back_end = BackEnd::start(socket, &[&["--tap=near"], served].concat())?;
    network::ip("addr add 10.9.0.1/24 dev near")?;
    let (said, heard) = channel();
    // Namespaces are the threads' own: what this one starts is there too.
    std::thread::scope(|scope| {
        let other = scope.spawn(move || -> Result<_> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let ready = socket.with_extension("drive");
            let mut command = drive(socket, &[&["--tap=far"][..], options].concat());
            command.arg("--ready-file").arg(&ready);
            let front = Target::spawn_with_ready_file(&mut command, &ready)?;
            network::ip("addr add 10.9.0.2/24 dev far")?;
            let listens = begin()?;
            said.send(())?;
            Ok((front, there(listens)?))
        });
        let came = heard.recv().context("the other end has not begun");
        let done = came.and_then(|()| here());
        let other = other.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        done?;
        let (front, given) = other?;
        front.signal(Signal::SIGTERM)?;
        let front = summary(front)?;
        let back = back_end.stop()?;
        let mut sums = Sums::default();
        sums.add(&front)?;
        sums.are_those_of(&back)?;
        Ok((given, front))
    })
}

/// TCP, to the byte.
pub(super) fn run() -> Result<()> {
    network::namespace()?;
    let place = network::Place::new()?;
    // Whether segments are left undone: where both ends agree.
    let ways: [(&[&str], &[&str], bool); 4] = [
        (&[], &[], true),
        (&["--packed"], &[], true),
        (&["--no-offload"], &[], false),
        (&[], &["--no-offload"], false),
    ];
    let len = counts().pick(4 << 20, 256 << 20);
    for (n, (options, served, long)) in ways.into_iter().enumerate() {
        let socket = place.join(&format!("{n}.sock"));
        let (came, front) = between(
            &socket,
            (options, served),
            || Ok(TcpListener::bind(THERE)?),
            sent_back,
            || transfer(len),
        )?;
        ensure!(came == len, "{came} of {len} bytes");
        // With segments left undone a packet is longer than any frame on a cable.
        let tx = &front["tx"];
        let number = |name: &str| tx[name].as_u64().context("a number");
        let mean = number("bytes")? / number("packets")?;
        ensure!(
            (mean > 1514) == long || mean < 1514,
            "{mean} bytes a packet: {front}"
        );
        ensure!(front["port"]["received"] == tx["packets"], "{front}");
        ensure!(front["port"]["sent"] == front["rx"]["packets"], "{front}");
    }
    Ok(())
}

fn sent_back(listener: TcpListener) -> Result<usize> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    stream.write_all(&bytes)?;
    Ok(bytes.len())
}

/// Sends bytes there and compares what comes back.
fn transfer(len: usize) -> Result<()> {
    let bytes: Vec<u8> = (0..len).map(|n: usize| ((n * 7) >> 3) as u8).collect();
    let mut stream = TcpStream::connect(THERE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut back = Vec::new();
    stream.write_all(&bytes)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_to_end(&mut back)?;
    ensure!(
        back == bytes,
        "{} of {len} bytes came back, or others",
        back.len()
    );
    Ok(())
}

/// One datagram under way, and nobody who sends another when it does not come: each wakes who has to hand it on.
pub(super) fn every_packet() -> Result<()> {
    network::namespace()?;
    let place = network::Place::new()?;
    let datagrams = counts().pick(10_000u32, 200_000);
    let ways = [
        ("--spin=0", "--kick-policy=event-idx"),
        ("--spin=60", "--kick-policy=adaptive"),
    ];
    for (n, (spin, kicks)) in ways.into_iter().enumerate() {
        let socket = place.join(&format!("{n}.sock"));
        between(
            &socket,
            (&[spin], &[kicks]),
            || bound(THERE, HERE),
            |socket| {
                (0..datagrams).try_for_each(|n| {
                    receive(&socket, n)?;
                    socket.send(&n.to_le_bytes())?;
                    Ok(())
                })
            },
            || {
                let socket = bound(HERE, THERE)?;
                (0..datagrams).try_for_each(|n| {
                    socket.send(&n.to_le_bytes())?;
                    receive(&socket, n)
                })
            },
        )?;
    }
    Ok(())
}

fn bound(at: &str, to: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(SOON))?;
    socket.connect(to)?;
    Ok(socket)
}

fn receive(socket: &UdpSocket, n: u32) -> Result<()> {
    let mut bytes = [0; 8];
    let len = socket.recv(&mut bytes);
    let len = len.with_context(|| format!("datagram {n}"))?;
    ensure!(bytes[..len] == n.to_le_bytes(), "not datagram {n}");
    Ok(())
}
