//! The echo through io_uring: receive, send, receive, in one thread.
#[allow(unsafe_code)]
mod submit;

use super::EchoError;
use super::counts::Counters;
use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use std::net::TcpListener;
pub(super) use submit::Ring;
use submit::{Done, accepted};

/// What a place does now.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Receive,
    /// Bytes `from..to` of the buffer are to go.
    Send {
        from: usize,
        to: usize,
    },
}

/// A ring belongs to the thread that makes it.
pub(super) fn ring() -> Result<Ring, EchoError> {
    Ring::new()
}

pub(super) fn run(
    mut ring: Ring,
    listener: TcpListener,
    stop: &EventFd,
    counters: &Counters,
) -> Result<(), EchoError> {
    let blocking = listener.set_nonblocking(false);
    blocking.map_err(EchoError::system("preparing the listener"))?;
    ring.watch(stop)?;
    ring.accept(&listener)?;
    let mut doing: Vec<Doing> = Vec::new();
    let mut done = Vec::with_capacity(1024);
    loop {
        done.clear();
        ring.wait(&mut done)?;
        for one in &done {
            match *one {
                Done::Stop => {
                    Counters::add(&counters.open_at_stop, ring.open() as u64);
                    return Ok(());
                }
                Done::Accept(fd) => {
                    if fd >= 0 {
                        Counters::add(&counters.accepted, 1);
                        let at = ring.enter(accepted(fd));
                        doing.resize(doing.len().max(at + 1), Doing::Receive);
                        doing[at] = Doing::Receive;
                        ring.receive(at)?;
                    } else {
                        Counters::add(&counters.accept_failed, 1);
                        // As with epoll: at once it would fail again.
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    ring.accept(&listener)?;
                }
                Done::Place(at, result) => step(&mut ring, &mut doing[at], at, result, counters)?,
            }
        }
    }
}

fn step(
    ring: &mut Ring,
    doing: &mut Doing,
    at: usize,
    result: i32,
    counters: &Counters,
) -> Result<(), EchoError> {
    let end = |ring: &mut Ring, counter: &std::sync::atomic::AtomicU64| {
        Counters::add(counter, 1);
        ring.leave(at);
        Ok(())
    };
    if result < 0 {
        let counter = match Errno::from_raw(-result) {
            Errno::ECONNRESET | Errno::EPIPE => &counters.reset,
            _ => &counters.failed,
        };
        return end(ring, counter);
    }
    let n = result as usize;
    match *doing {
        Doing::Receive if n == 0 => end(ring, &counters.ended),
        Doing::Receive => {
            *doing = Doing::Send { from: 0, to: n };
            ring.send(at, 0, n)
        }
        Doing::Send { from, to } => {
            Counters::add(&counters.user_bytes, n as u64);
            let from = from + n;
            if from < to {
                *doing = Doing::Send { from, to };
                return ring.send(at, from, to);
            }
            *doing = Doing::Receive;
            ring.receive(at)
        }
    }
}
