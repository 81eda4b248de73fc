//! A client that writes and does not read: what waits for it has a bound in every mode.
use super::server::Server;
use super::{KERNEL, network, number};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::{Requirement, Suite};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

/// Beyond all buffers of a connection, beyond which nothing would stop it.
const MOST: usize = 256 << 20;
/// What buffers of both ends may hold (net.ipv4.tcp_rmem, tcp_wmem: 6 and 4 MiB by default), with room.
pub(crate) const BOUND: usize = 64 << 20;
pub(crate) const CHUNK: usize = 64 << 10;
/// Nothing more is taken: the client is held back.
const HELD_BACK_MS: u16 = 2000;
/// Only what hangs is waited for so long.
const WATCHDOG_MS: u16 = 20_000;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "splice_echo::a_client_that_does_not_read::egress",
        KERNEL,
        egress,
    );
    suite.case(
        "splice_echo::a_client_that_does_not_read::egress_while_stopped",
        KERNEL,
        egress_while_stopped,
    );
    suite.case(
        "splice_echo::a_client_that_does_not_read::ingress",
        KERNEL,
        || held_back(&["--mode", "kernel", "--local-clients"]),
    );
    for mode in ["user", "uring"] {
        let name = format!("splice_echo::a_client_that_does_not_read::{mode}");
        let needs = &[Requirement::Root, Requirement::Netns];
        suite.case(name, needs, move || held_back(&["--mode", mode]).map(drop));
    }
}

pub(crate) enum End {
    HeldBack,
    Reset,
    Never,
}

pub(crate) fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Writes until it is held back or reset.
pub(crate) fn flood(stream: &mut TcpStream) -> Result<(usize, End)> {
    stream.set_nonblocking(true)?;
    let pattern: Vec<u8> = (0..CHUNK + 251).map(byte).collect();
    let mut sent = 0;
    while sent < MOST {
        let from = sent % 251;
        match stream.write(&pattern[from..from + CHUNK]) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
                if poll(&mut fds, PollTimeout::from(HELD_BACK_MS))? == 0 {
                    return Ok((sent, End::HeldBack));
                }
            }
            Err(error)
                if [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()) =>
            {
                return Ok((sent, End::Reset));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((sent, End::Never))
}

/// The kernel cannot hold it back, so it is reset, and that is counted.
fn egress() -> Result<()> {
    over_limit(false)
}

/// The reset is user space's: what comes until that has its turn is dropped and counted, and waits nowhere.
fn egress_while_stopped() -> Result<()> {
    over_limit(true)
}

fn over_limit(is_stopped: bool) -> Result<()> {
    network::own()?;
    let words = ["--mode", "kernel", "--listen", "127.0.0.1:0"];
    let server = Server::start(&words)?;
    let mut stream = TcpStream::connect(server.address)?;
    // It is accepted.
    stream.write_all(&[0])?;
    stream.read_exact(&mut [0])?;
    let server_pid = Pid::from_raw(i32::try_from(server.pid())?);
    if is_stopped {
        kill(server_pid, Signal::SIGSTOP)?;
        while !are_all_stopped(server.pid())? {
            poll(&mut [], 1u8)?;
        }
    }
    let (sent, end) = flood(&mut stream)?;
    if is_stopped {
        ensure!(matches!(end, End::Never), "{sent} B were taken, not all");
        while !is_acknowledged(&stream)? {
            poll(&mut [], 1u8)?;
        }
        kill(server_pid, Signal::SIGCONT)?;
    }
    let is_reset = match end {
        End::Reset => true,
        End::HeldBack => false,
        End::Never => has_ended(&stream)?,
    };
    let summary = server.finish()?;
    ensure!(is_reset, "{sent} B without a reset: {summary}");
    let (turned, dropped) = (
        number(&summary, "/kernel/egress_bytes")?,
        number(&summary, "/kernel/dropped_bytes")?,
    );
    ensure!(
        turned < BOUND as u64,
        "{turned} B were turned round: {summary}"
    );
    let seen = turned + dropped + number(&summary, "/kernel/passed_bytes")?;
    // With the one before. What was on its way at the reset was neither.
    let all = sent as u64 + 1;
    ensure!(
        dropped > 0 && (seen == all || !is_stopped && seen < all),
        "{sent} B: {summary}"
    );
    ensure!(number(&summary, "/over_limit")? == 1, "{summary}");
    ensure!(number(&summary, "/kernel/over_limit")? == 1, "{summary}");
    Ok(())
}

/// Nothing that was sent is on its way any more (proc(5): /proc/net/tcp, local address and tx_queue).
fn is_acknowledged(stream: &TcpStream) -> Result<bool> {
    let local = format!(":{:04X}", stream.local_addr()?.port());
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp")?;
    let words = |line: &str| -> Option<(String, String)> {
        let mut words = line.split_ascii_whitespace().map(str::to_owned);
        Some((words.nth(1)?, words.nth(2)?))
    };
    let mut sockets = table.lines().filter_map(words);
    let own = sockets.find(|(address, _)| address.ends_with(&local));
    let (_, queues) = own.context("the client's socket is gone")?;
    Ok(queues.starts_with("00000000:"))
}

/// A signal's sender does not wait until it is taken.
fn are_all_stopped(pid: u32) -> Result<bool> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = std::fs::read_to_string(task?.path().join("stat"))?;
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        if !state.is_some_and(|state| state.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A reset, or an end, is told within the watchdog's time.
fn has_ended(stream: &TcpStream) -> Result<bool> {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    Ok(poll(&mut fds, PollTimeout::from(WATCHDOG_MS))? > 0)
}

/// It is held back, and when it reads after all, it gets everything.
fn held_back(words: &[&str]) -> Result<()> {
    network::own()?;
    let server = Server::start(&[words, &["--listen", "127.0.0.1:0"]].concat())?;
    let mut stream = TcpStream::connect(server.address)?;
    let (sent, end) = flood(&mut stream)?;
    match end {
        End::HeldBack => ensure!(sent < BOUND, "held back after {sent} B"),
        End::Reset => bail!("reset after {sent} B"),
        End::Never => bail!("{sent} B were taken"),
    }
    stream.set_nonblocking(false)?;
    stream.shutdown(Shutdown::Write)?;
    let mut got = 0;
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        let right = buffer[..n].iter().enumerate();
        let mut right = right.map(|(at, found)| *found == byte(got + at));
        ensure!(right.all(|right| right), "other bytes after {got}");
        got += n;
    }
    let summary = server.finish()?;
    ensure!(got == sent, "{got} B of {sent} came back: {summary}");
    if words.contains(&"kernel") {
        // The kernel's part and then user space's.
        let slow = number(&summary, "/kernel/client_is_slow")?;
        let (kernel, user) = (
            number(&summary, "/kernel/ingress_bytes")?,
            number(&summary, "/user_bytes")?,
        );
        ensure!(slow == 1 && kernel > 0 && user > 0, "{summary}");
        ensure!(kernel + user == sent as u64, "{summary}");
    }
    Ok(())
}
