//! Requests over standing connections: netperf's TCP_RR, on many connections at once, at intended
//! times.
use super::drive::{RunResult, Worker, drive};
use super::due::Due;
use super::pattern::Pattern;
use super::{LoadError, LoadPlan, open_all};
use crate::interval::Interval;
use std::sync::atomic::AtomicBool;

mod flow;
mod lean;
mod many;

use flow::Shared;

/// Runs until a limit, `stop`, or until no connection is left.
///
/// # Errors
/// What keeps the run from beginning: a connection that cannot be made, a limit of the machine.
/// What fails later is counted.
pub fn run(
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
            let shared = &Shared {
                plan,
                pattern,
                worker,
            };
            // Without an event loop a round trip is two system calls, as in the smallest client.
            match (share.len(), plan.depth) {
                (1, 1) => lean::run(shared, share, due),
                _ => many::run(shared, share, due),
            }
        }) as _
    });
    let mut outcome = drive(&plan.limits, stop, tasks.collect(), each_second)?;
    outcome.run.merge(&connect);
    Ok(outcome)
}
