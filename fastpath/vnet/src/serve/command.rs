//! What a request of the control socket does.
use super::counts::ServeCounts;
use super::live::QueueError;
use super::pair::Pair;
use super::policy_counts::POLICIES_MAX;
use super::request::{BadRequest, Change, Request};
use crate::Ns;
use crate::policy::PolicyKind;
use crate::ring::Memory;
use hopscope_netio::PortError;
use hopscope_serving::clock::Clock;
use hopscope_serving::control::{Answer, ControlCounts};
use serde::Serialize;
use serde_json::json;

/// The back end, between two turns of its queues.
pub(super) struct Inside<'a> {
    pub(super) pairs: &'a mut [Pair],
    /// Of the front end, if one is connected.
    pub(super) memory: Option<&'a Memory>,
    pub(super) clock: Clock,
    pub(super) counts: &'a ServeCounts,
    pub(super) offers_index: bool,
    /// Queues that ended because their driver could not be notified.
    pub(super) broken: &'a mut Vec<(usize, QueueError)>,
}

#[derive(Debug, thiserror::Error)]
enum Undone {
    #[error(transparent)]
    Request(#[from] BadRequest),
    #[error("there is no pair {pair}: the last one is {last}")]
    NoPair { pair: usize, last: usize },
    #[error("kick_policy: the event index is offered at the start of vnet serve only")]
    Offered,
    #[error(
        "{POLICIES_MAX} policies were at work here, whose counts are kept: {policy} would be one too many"
    )]
    TooMany { policy: PolicyKind },
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("writing the answer: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Stat {
    r#type: &'static str,
    schema: u32,
    /// Since the back end began.
    up_ns: Ns,
    connected: bool,
    #[serde(flatten)]
    counts: ServeCounts,
}

impl Inside<'_> {
    pub(super) fn answer(&mut self, line: &[u8], control: ControlCounts) -> Answer {
        let request = Request::parse(line).map_err(Undone::from);
        let done = request.and_then(|request| match request {
            Request::Stat { wait } => self.stat(control, wait),
            Request::Set(change) => self.set(&change),
        });
        match done {
            Ok(line) => Answer {
                line,
                refused: false,
            },
            Err(error) => {
                let error = error.to_string();
                let line = json!({ "type": "error", "schema": 1, "error": error });
                Answer {
                    line: line.to_string(),
                    refused: true,
                }
            }
        }
    }

    fn stat(&mut self, control: ControlCounts, wait: Ns) -> Result<String, Undone> {
        let now = self.clock.now();
        let mut counts = self.counts.clone();
        counts.control = control;
        for pair in &mut *self.pairs {
            counts.pairs.push(pair.counts(now, wait)?);
        }
        Ok(serde_json::to_string(&Stat {
            r#type: "vnet_stat",
            schema: 1,
            up_ns: now,
            connected: self.memory.is_some(),
            counts,
        })?)
    }

    /// All of it or nothing.
    fn set(&mut self, change: &Change) -> Result<String, Undone> {
        let last = self.pairs.len() - 1;
        if let Some(pair) = change.pair.filter(|pair| *pair > last) {
            return Err(Undone::NoPair { pair, last });
        }
        if change
            .kicks
            .is_some_and(|kicks| kicks.offers_index() != self.offers_index)
        {
            return Err(Undone::Offered);
        }
        let chosen = |n: usize| change.pair.is_none_or(|pair| pair == n);
        let calls = [change.rx_calls, change.tx_calls];
        for (_, pair) in self.pairs.iter().enumerate().filter(|(n, _)| chosen(*n)) {
            for (queue, policy) in pair.queues.iter().zip(calls) {
                if let Some(policy) = policy.filter(|policy| !queue.can_keep(*policy)) {
                    return Err(Undone::TooMany { policy });
                }
            }
        }
        let mut queues = Vec::new();
        for (_, pair) in self
            .pairs
            .iter_mut()
            .enumerate()
            .filter(|(n, _)| chosen(*n))
        {
            for (queue, policy) in pair.queues.iter_mut().zip(calls) {
                if let Some(shadows) = change.shadows {
                    queue.cast_shadows(shadows, self.clock.now());
                }
                if let Some(kicks) = change.kicks {
                    (queue.kicks, queue.defer) = (kicks, kicks.defer());
                }
                if let Some(policy) = policy
                    && let Err(error) = queue.call_by(policy, self.memory, self.clock)
                {
                    queue.give_up();
                    self.broken.push((queue.index, error));
                }
                queues.push(json!({
                    "queue": queue.index, "call_policy": queue.calls, "kick_policy": queue.kicks,
                }));
            }
        }
        Ok(json!({ "type": "vnet_set", "schema": 1, "queues": queues }).to_string())
    }
}
