//! The receiving side.
use crate::connections::drive::Worker;
use crate::connections::pattern::Pattern;
use crate::connections::tally::Cause;
use crate::connections::wait::Waiter;
use crate::connections::{LoadError, LoadPlan};
use nix::sys::epoll::EpollFlags;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;

/// Bytes that are read at once at most.
pub(super) const CHUNK: usize = 128 << 10;

pub(super) fn run(
    plan: &LoadPlan,
    pattern: &Pattern,
    worker: &Worker<'_>,
    share: Vec<(u64, TcpStream)>,
) -> Result<(), LoadError> {
    let mut waiter = Waiter::new(share.len())?;
    let mut streams = Vec::with_capacity(share.len());
    for (connection, stream) in share {
        let added = waiter.add(&stream, streams.len() as u64, EpollFlags::EPOLLIN);
        added.map_err(LoadError::system("cannot watch a socket"))?;
        streams.push((connection, stream, 0u64));
    }
    let (mut buffer, mut alive) = (vec![0; CHUNK], streams.len());
    let (mut heard_ns, mut left) = (worker.now_ns(), worker.count);
    while alive > 0 && left > 0 {
        let now_ns = worker.now_ns();
        if worker.is_over(now_ns) {
            break;
        }
        if now_ns - heard_ns > plan.timeout.as_nanos() as u64 {
            worker.count(now_ns, |tally| {
                tally.asked += 1;
                tally.fail("receive", Cause::TimedOut, 1);
            });
            break;
        }
        let ready = waiter.wait(None)?;
        for at in 0..ready {
            let (key, _) = waiter.event(at);
            let (connection, stream, offset) = &mut streams[key as usize];
            let failed = match stream.read(&mut buffer) {
                Ok(0) => Some(Cause::Closed),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => Some(Cause::of(&error)),
                Ok(n) => {
                    heard_ns = worker.now_ns();
                    let expected = pattern.stream(*offset, n);
                    let differs = || buffer[..n].iter().zip(expected).position(|(a, b)| a != b);
                    let wrong = if plan.verify { differs() } else { None };
                    let size = plan.response as u64;
                    let messages = (*offset + n as u64) / size - *offset / size;
                    if worker.is_measured(heard_ns) {
                        left = left.saturating_sub(messages);
                    }
                    worker.count(heard_ns, |tally| {
                        tally.bytes_received += n as u64;
                        tally.last_done_ns = heard_ns;
                        tally.asked += messages;
                        match wrong {
                            None => tally.done += messages,
                            Some(at) => {
                                let name = format!("connection {connection} at {offset}");
                                tally.corrupted(&name, (at, buffer[at], expected[at]));
                                // The chunk counts once; its messages are not right either.
                                tally.asked = tally.asked + 1 - messages;
                            }
                        }
                    });
                    *offset += n as u64;
                    None
                }
            };
            if let Some(cause) = failed {
                alive -= 1;
                let now_ns = worker.now_ns();
                worker.count(now_ns, |tally| {
                    tally.asked += 1;
                    tally.fail("receive", cause, 1);
                });
                let removed = waiter.remove(&*stream);
                removed.map_err(LoadError::system("cannot leave a socket"))?;
            }
        }
    }
    worker.asked_all(worker.now_ns());
    Ok(())
}
