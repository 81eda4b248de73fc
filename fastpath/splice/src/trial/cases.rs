//! The known faults of joined sockets, a case each.
use super::pair::{PATIENCE, Pair, Place, connect, count, fit, joined};
use super::{Outcome, Weight};
use crate::load::{Accelerator, Count, bytes_to_read};
use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};
use nix::unistd::{Pid, gettid};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

type Tried = Result<Outcome, Outcome>;

#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub name: &'static str,
    pub means: &'static str,
    pub weight: Weight,
    /// With bytes that came by TCP, at sockets that are joined.
    pub by_tcp: bool,
    pub is_slow: bool,
    pub run: fn(&Place, &Accelerator) -> Outcome,
}

const fn trial(
    name: &'static str,
    weight: Weight,
    means: &'static str,
    run: fn(&Place, &Accelerator) -> Outcome,
) -> Trial {
    Trial {
        name,
        means,
        weight,
        by_tcp: false,
        is_slow: false,
        run,
    }
}

const fn by_tcp(mut trial: Trial) -> Trial {
    trial.by_tcp = true;
    trial
}

const fn slow(mut trial: Trial) -> Trial {
    trial.is_slow = true;
    trial
}

use Weight::{Fionread, Said, Shared, Vital, Waits};

pub(super) const ALL: [Trial; 15] = [
    trial(
        "joins",
        Vital,
        "no connection would take the short cut",
        |place, with| flat(short_cut(place, with)),
    ),
    trial(
        "early-data",
        Vital,
        "what a client sends before accept() would lie unseen, and both would wait for ever",
        |place, with| flat(early_data(place, with)),
    ),
    trial(
        "eof-overtakes",
        Vital,
        "a connection that is closed at once would lose its tail",
        |place, with| flat(eof(place, with)),
    ),
    trial(
        "half-close",
        Vital,
        "answers after the client's shutdown would be lost",
        |place, with| flat(half_close(place, with)),
    ),
    slow(trial(
        "memory-bound",
        Vital,
        "a reader that stops would cost memory without end",
        |place, with| flat(memory(place, with)),
    )),
    trial(
        "fionread",
        Fionread,
        "programs that ask how much can be read (nginx, Java, .NET) get another number, and wait for ever: they are left out",
        |place, with| flat(joined(place.listener(), with).and_then(fionread)),
    ),
    trial(
        "peek",
        Said,
        "programs that look ahead (MSG_PEEK) see other bytes than they read",
        |place, with| flat(joined(place.listener(), with).and_then(peek)),
    ),
    trial(
        "splice",
        Said,
        "programs that move bytes with splice(2) get EAGAIN and may wait for ever: haproxy with option splice-*",
        |place, with| flat(joined(place.listener(), with).and_then(splice_2)),
    ),
    trial(
        "waitall",
        Waits,
        "programs that read with MSG_WAITALL get less than they asked for",
        |place, with| flat(joined(place.listener(), with).and_then(waitall)),
    ),
    trial(
        "interrupted",
        Waits,
        "programs that wait in recv() get EAGAIN when a signal, a stop, a debugger or a reset ends the wait, and take it for a time-out",
        |place, with| flat(joined(place.listener(), with).and_then(interrupted)),
    ),
    trial(
        "unread-reset",
        Said,
        "where a program closes a connection with unread bytes, the other end is told of an orderly end, not of a reset",
        |place, with| flat(joined(place.listener(), with).and_then(unread_reset)),
    ),
    trial(
        "shared",
        Shared,
        "programs that wait in a blocking recv() in one thread while another sends on the same connection get EAGAIN when there is room to send again: they are left out once they are seen",
        |place, with| flat(joined(place.listener(), with).and_then(shared)),
    ),
    by_tcp(trial(
        "fionread-tcp",
        Fionread,
        "programs that ask how much can be read (nginx, Java, .NET) get 0 for bytes that came by TCP, and wait for ever: they are left out",
        |place, _| flat(place.prepared().and_then(fionread)),
    )),
    by_tcp(trial(
        "peek-tcp",
        Said,
        "programs that look ahead (MSG_PEEK) see other bytes than they read where these came by TCP",
        |place, _| flat(place.prepared().and_then(peek)),
    )),
    by_tcp(trial(
        "splice-tcp",
        Said,
        "programs that move bytes with splice(2) get EAGAIN where these came by TCP",
        |place, _| flat(place.prepared().and_then(splice_2)),
    )),
];

fn flat(tried: Tried) -> Outcome {
    tried.unwrap_or_else(|outcome| outcome)
}

fn failed(error: impl std::fmt::Display) -> Outcome {
    Outcome::Unknown(error.to_string())
}

/// A call that waited in vain is what these faults look like.
fn hung(what: &str) -> impl FnOnce(io::Error) -> Outcome {
    move |error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Outcome::Broken(format!("{what}: nothing comes"))
        }
        ErrorKind::UnexpectedEof => Outcome::Broken(format!("{what}: it ends too early")),
        _ => Outcome::Broken(format!("{what}: {error}")),
    }
}

/// No two places alike for a long while, so that nothing can be missing or twice.
fn bytes(length: usize) -> Vec<u8> {
    let word = |n: usize| (n as u32).wrapping_mul(0x9e37_79b9).to_le_bytes();
    (0..length.div_ceil(4))
        .flat_map(word)
        .take(length)
        .collect()
}

fn expect(read: &[u8], sent: &[u8]) -> Tried {
    match read == sent {
        true => Ok(Outcome::Ok(format!("{} bytes, all right", sent.len()))),
        false => Err(Outcome::Broken(format!(
            "{} bytes came of {}, or others",
            read.len(),
            sent.len()
        ))),
    }
}

fn exchange(pair: &Pair) -> Tried {
    let sent = bytes(3000);
    for (mut from, mut to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
        let mut read = vec![0; sent.len()];
        from.write_all(&sent).map_err(hung("writing"))?;
        to.read_exact(&mut read).map_err(hung("reading"))?;
        expect(&read, &sent)?;
    }
    Ok(Outcome::Ok(String::new()))
}

fn short_cut(place: &Place, with: &Accelerator) -> Tried {
    let listeners = [Some(place.listener()), place.listener_v6()];
    let mut families = 0;
    for listener in listeners.into_iter().flatten() {
        let pair = joined(listener, with)?;
        let before = count(with, Count::DirectMessages)?;
        exchange(&pair)?;
        if count(with, Count::DirectMessages)? < before + 2 {
            return Err(Outcome::Broken("messages still take TCP".into()));
        }
        families += 1;
    }
    Ok(Outcome::Ok(match families {
        2 => "IPv4 and IPv6".into(),
        _ => "IPv4; no IPv6 here".into(),
    }))
}

fn early_data(place: &Place, with: &Accelerator) -> Tried {
    let listener = place.listener();
    let sent = bytes(5000);
    for _ in 0..10 {
        let before = count(with, Count::DirectMessages)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut client = connect(address).map_err(failed)?;
        client.write_all(&sent).map_err(hung("writing"))?;
        let is_direct = count(with, Count::DirectMessages)? > before;
        let (mut server, _) = listener.accept().map_err(failed)?;
        fit(&server).map_err(failed)?;
        let mut read = vec![0; sent.len()];
        server.read_exact(&mut read).map_err(hung("reading"))?;
        expect(&read, &sent)?;
        if !is_direct {
            return Err(Outcome::Unknown("it took TCP".into()));
        }
    }
    Ok(Outcome::Ok("10 connections".into()))
}

fn eof(place: &Place, with: &Accelerator) -> Tried {
    let sent = bytes(20_000);
    for _ in 0..20 {
        let mut pair = joined(place.listener(), with)?;
        for part in sent.chunks(1000) {
            pair.client.write_all(part).map_err(hung("writing"))?;
        }
        drop(pair.client);
        let mut read = Vec::new();
        pair.server
            .read_to_end(&mut read)
            .map_err(hung("reading"))?;
        expect(&read, &sent)?;
    }
    Ok(Outcome::Ok("20 connections".into()))
}

fn half_close(place: &Place, with: &Accelerator) -> Tried {
    let mut pair = joined(place.listener(), with)?;
    let sent = bytes(50_000);
    let mut read = Vec::new();
    pair.client
        .write_all(&sent[..100])
        .map_err(hung("writing"))?;
    pair.client.shutdown(Shutdown::Write).map_err(failed)?;
    pair.server
        .read_to_end(&mut read)
        .map_err(hung("reading"))?;
    expect(&read, &sent[..100])?;
    read.clear();
    pair.server.write_all(&sent).map_err(hung("answering"))?;
    pair.server.shutdown(Shutdown::Write).map_err(failed)?;
    pair.client
        .read_to_end(&mut read)
        .map_err(hung("reading the answer"))?;
    expect(&read, &sent)
}

/// Bytes that are taken from a writer whose reader does not read.
fn fill(pair: &mut Pair) -> Result<usize, Outcome> {
    /// Beyond any limit of ours.
    const ENOUGH: usize = 256 << 20;
    let part = vec![0x5a; 64 << 10];
    let mut taken = 0;
    pair.client.set_nonblocking(true).map_err(failed)?;
    while taken < ENOUGH {
        match pair.client.write(&part) {
            Ok(length) => taken += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(taken)
}

fn memory(place: &Place, with: &Accelerator) -> Tried {
    let mut plain = place.plain().map_err(failed)?;
    let mut fast = joined(place.listener(), with)?;
    let (plain_bytes, fast_bytes) = (fill(&mut plain)?, fill(&mut fast)?);
    drop(plain);
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let found = format!(
        "{:.1} MiB unread, plain TCP {:.1} MiB",
        mib(fast_bytes),
        mib(plain_bytes)
    );
    if fast_bytes > 2 * plain_bytes {
        return Err(Outcome::Broken(found));
    }
    let reader = thread::spawn(move || -> io::Result<usize> {
        let mut part = vec![0; 64 << 10];
        let mut read = 0;
        while read < fast_bytes {
            read += match fast.server.read(&mut part)? {
                0 => break,
                length => length,
            };
        }
        Ok(read)
    });
    match reader.join() {
        Ok(Ok(read)) if read == fast_bytes => Ok(Outcome::Ok(found)),
        Ok(Ok(read)) => Err(Outcome::Broken(format!(
            "{read} of {fast_bytes} bytes came"
        ))),
        Ok(Err(error)) => Err(hung("reading what was queued")(error)),
        Err(_) => Err(Outcome::Unknown("the reader failed".into())),
    }
}

/// How often a thread of this process went to sleep, if it sleeps (proc(5), /proc/PID/status).
fn sleeps(tid: Pid) -> Result<Option<u64>, Outcome> {
    let status =
        std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).map_err(failed)?;
    let value = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let times = value("voluntary_ctxt_switches:").and_then(|times| times.trim().parse().ok());
    match value("State:").is_some_and(|state| state.trim().starts_with('S')) {
        true => Ok(times),
        false => Ok(None),
    }
}

/// One thread waits for bytes, another one fills the connection until it is told to wait, and the other
/// end makes room.
fn shared(mut pair: Pair) -> Tried {
    pair.client.set_read_timeout(None).map_err(failed)?;
    let reader = pair.client.try_clone().map_err(failed)?;
    let (say, said) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    // Nobody listens any more where the case has been given up.
    thread::spawn(move || {
        let _ = say.send(gettid());
        let _ = tell.send(recv(reader.as_raw_fd(), &mut [0], MsgFlags::empty()));
    });
    let tid = said.recv_timeout(PATIENCE).map_err(failed)?;
    let asleep = |more_than: Option<u64>| -> Result<Option<u64>, Outcome> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match told.try_recv() {
                Ok(Err(errno)) => {
                    return Err(Outcome::Broken(format!("the reader was told {errno}")));
                }
                Ok(Ok(_)) => return Err(Outcome::Broken("the reader was told of bytes".into())),
                Err(_) => {}
            }
            if let Ok(Some(times)) = sleeps(tid)
                && more_than.is_none_or(|before| times > before)
            {
                return Ok(Some(times));
            }
            thread::yield_now();
        }
        Ok(None)
    };
    let before = asleep(None)?;
    if before.is_none() {
        return Err(Outcome::Unknown("the reader did not come to wait".into()));
    }
    let part = vec![0x5a; 64 << 10];
    let patience = Some(Duration::from_millis(20));
    pair.client.set_write_timeout(patience).map_err(failed)?;
    let (mut taken, mut read) = (0, 0);
    while let Ok(length) = pair.client.write(&part) {
        taken += length;
    }
    let mut buffer = vec![0; 64 << 10];
    while read < taken {
        read += pair.server.read(&mut buffer).map_err(hung("making room"))?;
    }
    // Woken and asleep again, or not woken at all: both are right.
    asleep(before)?;
    pair.server.write_all(&[1]).map_err(hung("answering"))?;
    match told.recv_timeout(PATIENCE) {
        Ok(Ok(1)) => Ok(Outcome::Ok(format!("after {taken} bytes the other way"))),
        Ok(Ok(_)) => Err(Outcome::Broken("the reader was told of an end".into())),
        Ok(Err(errno)) => Err(Outcome::Broken(format!("the reader was told {errno}"))),
        Err(_) => Err(Outcome::Broken("the reader's byte never came".into())),
    }
}

fn wait_readable(pair: &Pair) -> Result<(), Outcome> {
    let mut fds = [PollFd::new(pair.server.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(400u16)) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Outcome::Broken(
            "poll(2) never says that there is something".into(),
        )),
        Err(errno) => Err(failed(errno)),
    }
}

fn fionread(mut pair: Pair) -> Tried {
    let sent = bytes(1234);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let said = bytes_to_read(&pair.server).map_err(failed)?;
    let mut read = vec![0; sent.len()];
    pair.server.read_exact(&mut read).map_err(hung("reading"))?;
    expect(&read, &sent)?;
    match said == sent.len() {
        true => Ok(Outcome::Ok(format!("says {said}"))),
        false => Ok(Outcome::Broken(format!("says {said} of {}", sent.len()))),
    }
}

fn peek(mut pair: Pair) -> Tried {
    let sent = bytes(800);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let mut seen = vec![0; sent.len()];
    for _ in 0..2 {
        let length = pair.server.peek(&mut seen).map_err(hung("looking ahead"))?;
        expect(&seen[..length], &sent)?;
    }
    let mut read = vec![0; sent.len()];
    pair.server.read_exact(&mut read).map_err(hung("reading"))?;
    expect(&read, &sent)
}

fn splice_2(mut pair: Pair) -> Tried {
    let sent = bytes(700);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let (to, from) = io::pipe()
        .map(|(reader, writer)| (writer, reader))
        .map_err(failed)?;
    let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
    let moved = splice(&pair.server, None, &to, None, sent.len(), flags);
    drop(to);
    match moved {
        Ok(length) => {
            let mut read = Vec::new();
            (&from)
                .take(length as u64)
                .read_to_end(&mut read)
                .map_err(failed)?;
            expect(&read, &sent)
        }
        Err(errno) => Ok(Outcome::Broken(errno.to_string())),
    }
}

fn waitall(mut pair: Pair) -> Tried {
    let sent = bytes(20);
    pair.client
        .write_all(&sent[..10])
        .map_err(hung("writing"))?;
    let (mut client, rest) = (pair.client, sent[10..].to_vec());
    let mut read = vec![0; sent.len()];
    let later = thread::spawn(move || {
        // Long enough that the reader is asleep in its call, whatever it does with the first part.
        thread::sleep(Duration::from_millis(30));
        client.write_all(&rest).map(|()| client)
    });
    let got = recv(pair.server.as_raw_fd(), &mut read, MsgFlags::MSG_WAITALL);
    let kept = later.join();
    let got = got.map_err(failed)?;
    drop(kept);
    match got == sent.len() {
        true => expect(&read, &sent),
        false => Ok(Outcome::Broken(format!("{got} of {} bytes", sent.len()))),
    }
}

/// Something else than bytes wakes a receive: TCP says what it was.
fn interrupted(pair: Pair) -> Tried {
    let Pair { client, server } = pair;
    let later = thread::spawn(move || {
        // Long enough that the reader is asleep in its call.
        thread::sleep(Duration::from_millis(30));
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(&server, sockopt::Linger, &at_once)
    });
    let got = recv(client.as_raw_fd(), &mut [0; 8], MsgFlags::empty());
    match later.join() {
        Ok(Ok(())) => {}
        _ => return Err(Outcome::Unknown("the connection could not be reset".into())),
    }
    match got {
        Err(Errno::ECONNRESET) => Ok(Outcome::Ok("a reset is told".into())),
        Err(errno) => Ok(Outcome::Broken(format!("a reset is told as {errno}"))),
        Ok(_) => Ok(Outcome::Broken("a reset is told as an end".into())),
    }
}

/// RFC 9293 section 3.6.1: whoever closes with unread data resets the connection.
fn unread_reset(mut pair: Pair) -> Tried {
    pair.client
        .write_all(&bytes(100))
        .map_err(hung("writing"))?;
    wait_readable(&pair)?;
    drop(pair.server);
    match pair.client.read(&mut [0; 8]) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {
            Ok(Outcome::Ok("a reset is told".into()))
        }
        Err(error) => Ok(Outcome::Broken(error.to_string())),
        Ok(_) => Ok(Outcome::Broken("an orderly end".into())),
    }
}
