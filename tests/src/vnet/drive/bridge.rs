//! Two TAP devices, in two namespaces, with `vnet serve` and `vnet drive` between them: TCP, to the byte.
use super::{Sums, drive, summary};
use crate::vnet::{dpdk::BackEnd, network};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, counts};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A connection on which nothing comes for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

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
    for (n, (options, served, long)) in ways.into_iter().enumerate() {
        let socket = place.join(&format!("{n}.sock"));
        let back_end = BackEnd::start(&socket, &[&["--tap=near"], served].concat())?;
        network::ip("addr add 10.9.0.1/24 dev near")?;
        let (said, heard) = channel();
        // Namespaces are the threads' own: what this one starts is there too.
        std::thread::scope(|scope| -> Result<()> {
            let there = scope.spawn(|| -> Result<_> {
                unshare(CloneFlags::CLONE_NEWNET)?;
                let ready = socket.with_extension("drive");
                let mut command = drive(&socket, &[&["--tap=far"][..], options].concat());
                command.arg("--ready-file").arg(&ready);
                let front = Target::spawn_with_ready_file(&mut command, &ready)?;
                network::ip("addr add 10.9.0.2/24 dev far")?;
                let listener = TcpListener::bind("10.9.0.2:7")?;
                said.send(())?;
                let (mut stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes)?;
                stream.write_all(&bytes)?;
                drop(stream);
                Ok((front, bytes.len()))
            });
            let came = heard.recv().context("the other end has not begun");
            let transferred = came.and_then(|()| transfer());
            let (front, len) = there.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            ensure!(transferred? == len, "{len} bytes");
            front.signal(Signal::SIGTERM)?;
            let front = summary(front)?;
            let back = back_end.stop()?;
            let mut sums = Sums::default();
            sums.add(&front)?;
            sums.are_those_of(&back)?;
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
            Ok(())
        })?;
    }
    Ok(())
}

/// Sends bytes there and compares what comes back.
fn transfer() -> Result<usize> {
    let len = counts().pick(4 << 20, 256 << 20);
    let bytes: Vec<u8> = (0..len).map(|n: usize| ((n * 7) >> 3) as u8).collect();
    let mut stream = TcpStream::connect("10.9.0.2:7")?;
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
    Ok(len)
}
