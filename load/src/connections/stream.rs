//! Bytes in one direction: netperf's TCP_STREAM, and TCP_MAERTS for the other.
use super::drive::{RunResult, Worker, drive};
use super::due::Due;
use super::pattern::Pattern;
use super::tally::Tally;
use super::{LoadError, LoadPlan, open_all};
use crate::interval::Interval;
use std::sync::atomic::AtomicBool;

mod receive;
mod send;

/// Messages of `plan.request` bytes to a sink. One is done when the kernel has taken its last byte;
/// latency counts until then. At the end each connection is closed in one direction and the run
/// lasts until the sink has done the same: it then has everything.
///
/// # Errors
/// What keeps the run from beginning. What fails later is counted.
pub fn send(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    plan.check()?;
    let pattern = &Pattern::new(plan.seed, plan.request);
    let (shares, connect) = open_all(plan)?;
    let tasks = shares.into_iter().enumerate().map(|(thread, share)| {
        Box::new(move |worker: &Worker<'_>| {
            let due = Due::new(plan, worker, thread, share.len())?;
            send::run(plan, pattern, worker, share, due)
        }) as _
    });
    with_connect(
        drive(&plan.limits, stop, tasks.collect(), each_second),
        &connect,
    )
}

/// Messages of `plan.response` bytes from a source, which decides how fast: there is no rate and no
/// latency. A connection ends by closing it, whatever is still under way.
///
/// # Errors
/// What keeps the run from beginning. What fails later is counted.
pub fn receive(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    plan.check()?;
    let pattern = &Pattern::new(plan.seed, receive::CHUNK);
    let (shares, connect) = open_all(plan)?;
    let tasks = shares.into_iter().map(|share| {
        Box::new(move |worker: &Worker<'_>| receive::run(plan, pattern, worker, share)) as _
    });
    with_connect(
        drive(&plan.limits, stop, tasks.collect(), each_second),
        &connect,
    )
}

fn with_connect(
    outcome: Result<RunResult, LoadError>,
    connect: &Tally,
) -> Result<RunResult, LoadError> {
    outcome.map(|mut outcome| {
        outcome.run.merge(connect);
        outcome
    })
}
