//! Requests that may be lost: netperf's UDP_RR and UDP_STREAM, and ICMP echo.
use super::drive::{RunResult, Worker, drive};
use super::due::Due;
use super::pattern::Pattern;
use super::{LoadError, LoadPlan, limits};
use crate::interval::Interval;
use std::sync::atomic::AtomicBool;

mod exchange;
mod flights;
mod icmp;
mod link;

use link::{Link, LinkKind};

/// Each datagram begins with its number, 8 bytes little-endian.
pub const SMALLEST: usize = 8;

/// The most that a UDP datagram carries over IPv4: 65,535 less 20 and 8 bytes of headers.
pub const LARGEST: usize = 65_507;

/// Datagrams to an echo server at intended times, whether or not others are still under way; in a
/// closed loop one at a time on each socket. No answer within the time-out is a loss.
///
/// # Errors
/// What keeps the run from beginning. What is lost or fails later is counted.
pub fn udp_rr(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    run(plan, stop, each_second, LinkKind::Udp, true)
}

/// Datagrams that nobody answers. One is done when it was sent; what arrived the sink knows.
///
/// # Errors
/// What keeps the run from beginning. What fails later is counted.
pub fn udp_stream(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    run(plan, stop, each_second, LinkKind::Udp, false)
}

/// ICMP echo requests, through the kernel's ping sockets (net.ipv4.ping_group_range) or else a raw
/// socket, which needs CAP_NET_RAW.
///
/// # Errors
/// What keeps the run from beginning: neither kind of socket is allowed. Losses are counted.
pub fn ping(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    run(plan, stop, each_second, LinkKind::Icmp, true)
}

fn run(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
    kind: LinkKind,
    answered: bool,
) -> Result<RunResult, LoadError> {
    plan.check()?;
    limits::ports_for(plan.connections, plan.sources.len())?;
    let pattern = &Pattern::new(plan.seed, plan.request);
    let threads = plan.threads.min(plan.connections);
    let mut shares: Vec<Vec<Link>> = Vec::new();
    shares.resize_with(threads, Vec::new);
    for number in 0..plan.connections {
        shares[number % threads].push(Link::open(plan, kind, number)?);
    }
    let tasks = shares.into_iter().enumerate().map(|(thread, share)| {
        Box::new(move |worker: &Worker<'_>| {
            let due = Due::new(plan, worker, thread, share.len())?;
            exchange::run(plan, pattern, worker, share, due, answered)
        }) as _
    });
    drive(&plan.limits, stop, tasks.collect(), each_second)
}
