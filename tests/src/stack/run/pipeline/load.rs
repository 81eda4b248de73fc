//! Many clients at once whose requests are all answered, whatever becomes of the server's processes.
use super::instance::WATCHDOG;
use super::upgrades::request;
use crate::stack::cable::STACK;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Half of them with a connection for each request.
const CLIENTS: usize = 16;

/// What has been answered until now.
pub(super) struct Load<'a> {
    answered: &'a AtomicU64,
    is_over: &'a AtomicBool,
}

impl Load<'_> {
    /// Until so many more requests are answered.
    pub(super) fn goes_on(&self, more: u64) -> Result<()> {
        let (started, from) = (Instant::now(), self.answered.load(Ordering::Relaxed));
        while self.answered.load(Ordering::Relaxed) < from + more {
            // What failed, its client tells.
            if self.is_over.load(Ordering::Relaxed) {
                bail!("a request failed");
            }
            ensure!(started.elapsed() < WATCHDOG, "requests are not answered");
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// A connection for many requests.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn new(port: u16) -> Result<Kept> {
        let stream = TcpStream::connect((STACK, port))?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        Ok(Kept(BufReader::new(stream)))
    }

    /// Whether another one may follow; nothing if it was closed before the first byte of an answer.
    fn asks(&mut self) -> Result<Option<bool>> {
        let sent = self
            .0
            .get_mut()
            .write_all(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut head = String::new();
        let is_gone = |error: &std::io::Error| {
            matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
            )
        };
        match sent.and_then(|()| self.0.read_line(&mut head)) {
            Ok(0) => return Ok(None),
            Err(error) if head.is_empty() && is_gone(&error) => return Ok(None),
            other => other?,
        };
        ensure!(head == "HTTP/1.1 200 OK\r\n", "{head}");
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.0.read_line(&mut head)? > 0, "{head}");
        }
        ensure!(head.contains("Content-Length: 600\r\n"), "{head}");
        let mut body = [0; 600];
        self.0.read_exact(&mut body)?;
        ensure!(body == [b'x'; 600], "another body");
        Ok(Some(!head.contains("Connection: close\r\n")))
    }
}

/// RFC 9112, 9.3.1: who finds an idle connection closed asks again on another one, never on its first.
fn keeps(port: u16, goes_on: impl Fn() -> bool) -> Result<()> {
    let mut connection = Kept::new(port)?;
    let mut is_idle = false;
    loop {
        let next = connection.asks()?;
        ensure!(next.is_some() || is_idle, "closed before its first answer");
        is_idle = next == Some(true);
        if next.is_some() && !goes_on() {
            return Ok(());
        }
        if !is_idle {
            connection = Kept::new(port)?;
        }
    }
}

/// Not one request fails while `meanwhile` runs.
pub(super) fn under_load(port: u16, meanwhile: impl FnOnce(&Load) -> Result<()>) -> Result<()> {
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let goes_on = || {
        answered.fetch_add(1, Ordering::Relaxed);
        !is_over.load(Ordering::Relaxed)
    };
    let client = |n: usize| -> Result<()> {
        let done = if n.is_multiple_of(2) {
            keeps(port, goes_on)
        } else {
            loop {
                match request(port) {
                    Ok(()) if goes_on() => {}
                    other => break other,
                }
            }
        };
        // Who fails ends all.
        is_over.store(true, Ordering::Relaxed);
        done.with_context(|| format!("client {n}"))
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| scope.spawn(move || client(n)))
            .collect();
        let load = Load {
            answered: &answered,
            is_over: &is_over,
        };
        let done = meanwhile(&load);
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().ok().context("no panic")??;
        }
        done
    })
}
