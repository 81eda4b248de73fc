//! Packets through the switch. A socket belongs to the network namespace that its thread was in
//! when it was made.
use crate::demo::Network;
use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

pub(super) const LEFT: &str = "10.99.0.1";
pub(super) const RIGHT: &str = "10.99.0.2";
const ECHO_PORT: u16 = 5007;
const DISCARD_PORT: u16 = 9;
const CHUNK: usize = 1 << 16;

/// Only a packet that is lost is waited for so long.
const WATCHDOG: Duration = Duration::from_secs(30);

/// What `make` returns, made in the namespace of `side`.
fn inside<T: Send>(
    network: &Network,
    side: &str,
    make: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let path = format!("/run/netns/{}", network.namespace(side));
    let namespace = File::open(&path).with_context(|| path.clone())?;
    thread::scope(|scope| {
        let made = scope.spawn(|| {
            setns(&namespace, CloneFlags::CLONE_NEWNET)?;
            make()
        });
        made.join().expect("a socket's thread does not panic")
    })
}

/// Questions from the left, each answered before the next, each after a packet that goes nowhere:
/// so no queue can overflow, and every packet is counted.
pub(super) fn exchange(network: &Network, count: u64) -> Result<()> {
    let bind = |address: &'static str, port: u16| {
        move || -> Result<UdpSocket> {
            let socket = UdpSocket::bind((address, port))?;
            socket.set_read_timeout(Some(WATCHDOG))?;
            Ok(socket)
        }
    };
    let left = inside(network, "left", bind(LEFT, 0))?;
    let right = inside(network, "right", bind(RIGHT, ECHO_PORT))?;
    let mut data = vec![0; CHUNK];
    for number in 0..count {
        // All sizes of an unfragmented packet.
        let question: Vec<u8> = pattern(number).take((number % 1400) as usize + 8).collect();
        left.send_to(&question, (RIGHT, DISCARD_PORT))?;
        left.send_to(&question, (RIGHT, ECHO_PORT))?;
        let (length, from) = right.recv_from(&mut data).context("no question")?;
        ensure!(data[..length] == question, "another question {number}");
        right.send_to(&data[..length], from)?;
        let (length, _) = left.recv_from(&mut data).context("no answer")?;
        ensure!(data[..length] == question, "another answer {number}");
    }
    Ok(())
}

/// A stream of bytes that do not repeat, compared byte by byte.
pub(super) fn transfer(network: &Network, bytes: u64) -> Result<()> {
    let listener = inside(network, "right", || Ok(TcpListener::bind((RIGHT, 0))?))?;
    let to = listener.local_addr()?;
    let mut sender = inside(network, "left", move || Ok(TcpStream::connect(to)?))?;
    let (mut receiver, _) = listener.accept()?;
    receiver.set_read_timeout(Some(WATCHDOG))?;
    sender.set_write_timeout(Some(WATCHDOG))?;
    let chunks = bytes / CHUNK as u64;
    thread::scope(|scope| {
        let sending = scope.spawn(move || -> Result<()> {
            for number in 0..chunks {
                let chunk: Vec<u8> = pattern(number).take(CHUNK).collect();
                sender.write_all(&chunk)?;
            }
            Ok(())
        });
        let mut data = vec![0; CHUNK];
        for number in 0..chunks {
            receiver.read_exact(&mut data).context("a chunk")?;
            let same = data.iter().copied().eq(pattern(number).take(CHUNK));
            ensure!(same, "chunk {number} of {chunks} arrived with other bytes");
        }
        ensure!(receiver.read(&mut data)? == 0, "more than was sent");
        sending.join().expect("the sender does not panic")
    })
}

/// xorshift64 (Marsaglia 2003), seeded by the number.
fn pattern(number: u64) -> impl Iterator<Item = u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
}
