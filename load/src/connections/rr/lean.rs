//! One connection and one request at a time: a blocking send and a blocking receive, nothing else.
use super::flow::{Flow, Shared};
use crate::connections::due::Due;
use crate::connections::socket::TICK;
use crate::connections::wait::{LOOK_NS, SPIN_NS};
use crate::connections::{LoadError, Pace, tally::Cause};
use std::net::TcpStream;
use std::time::Duration;

pub(super) fn run(
    shared: &Shared<'_>,
    share: Vec<(u64, TcpStream)>,
    mut due: Due,
) -> Result<(), LoadError> {
    let (plan, worker) = (shared.plan, shared.worker);
    // Woken at the time that was asked for; see `Waiter::new`.
    let _ = nix::sys::prctl::set_timerslack(1);
    // One byte more than an answer: a full buffer would mean another read, which would block.
    let mut buffer = vec![0; plan.response + 1];
    let closed = plan.pace == Pace::Closed;
    for (connection, stream) in share {
        let errno = |error: std::io::Error| Cause::of(&error).errno();
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(TICK)))
            .and_then(|()| stream.set_write_timeout(Some(TICK)));
        prepared.map_err(|e| LoadError::System {
            what: "cannot prepare a socket",
            errno: errno(e),
        })?;
        let mut flow = Flow::new(connection, stream);
        let mut over_since = None;
        while flow.alive {
            let now_ns = worker.now_ns();
            while !closed || flow.open_requests() == 0 {
                let Some(due_ns) = due.take(worker, now_ns) else {
                    break;
                };
                worker.count(due_ns, |tally| tally.asked += 1);
                flow.ask(due_ns);
            }
            if over_since.is_none() && due.ended(worker, now_ns) {
                worker.asked_all(now_ns);
                over_since = Some(now_ns);
            }
            if let Some(since) = over_since {
                if flow.open_requests() == 0 {
                    return Ok(());
                }
                if now_ns - since > plan.timeout.as_nanos() as u64 {
                    flow.end("receive", Cause::TimedOut, worker);
                }
            }
            if flow.open_requests() == 0 {
                wait_until(due.next_ns().unwrap_or(now_ns), now_ns);
                continue;
            }
            flow.send(shared);
            flow.receive(shared, &mut buffer);
            if flow.open_requests() > 0 {
                flow.check_time(shared, worker.now_ns());
            }
        }
    }
    worker.asked_all(worker.now_ns());
    Ok(())
}

/// Sleeps for most of the time, but never so long that a stop would not be seen; the caller looks
/// again until the time has come.
fn wait_until(due_ns: u64, now_ns: u64) {
    let for_ns = due_ns.saturating_sub(now_ns).min(LOOK_NS);
    if for_ns > SPIN_NS {
        std::thread::sleep(Duration::from_nanos(for_ns - SPIN_NS))
    } else {
        std::hint::spin_loop()
    }
}
