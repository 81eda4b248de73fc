//! Requests on the control socket, a line of JSON: `{"do":"stat"}`, `{"do":"set","tx_call_policy":"batch"}`.
use super::kicks::{BadKicks, Kicks};
use crate::Ns;
use crate::policy::{BadPolicy, PolicyKind};
use serde::Deserialize;

/// On the average, that packets may wait where nothing else is asked for: what waking a peer costs.
pub(super) const WAIT: Ns = Ns::from_us(3);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// Advice lets packets wait so long on the average.
    Stat {
        wait: Ns,
    },
    Set(Change),
}

/// What is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// `None`: all.
    pub(super) pair: Option<usize>,
    pub(super) tx_calls: Option<PolicyKind>,
    pub(super) rx_calls: Option<PolicyKind>,
    pub(super) kicks: Option<Kicks>,
    pub(super) shadows: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BadRequest {
    #[error("no request: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error("kick_policy: {0}")]
    Kicks(#[from] BadKicks),
    #[error("nothing is to be set: tx_call_policy, rx_call_policy, kick_policy, shadows")]
    Nothing,
    #[error("stat does not change policies: use set")]
    OnlyStat,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Stat,
    Set,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    #[serde(rename = "do")]
    verb: Verb,
    wait_ns: Option<u64>,
    pair: Option<usize>,
    tx_call_policy: Option<String>,
    rx_call_policy: Option<String>,
    kick_policy: Option<String>,
    shadows: Option<bool>,
}

impl Request {
    /// # Errors
    /// What is no request.
    pub(super) fn parse(line: &[u8]) -> Result<Request, BadRequest> {
        let words: Words = serde_json::from_slice(line)?;
        let policy = |text: Option<String>| text.map(|text| text.parse::<PolicyKind>()).transpose();
        let kicks = words.kick_policy.map(|text| text.parse::<Kicks>());
        let change = Change {
            pair: words.pair,
            tx_calls: policy(words.tx_call_policy)?,
            rx_calls: policy(words.rx_call_policy)?,
            kicks: kicks.transpose()?,
            shadows: words.shadows,
        };
        let (all, none) = (change.pair, Change::default());
        let is_empty = change == Change { pair: all, ..none };
        match (words.verb, is_empty) {
            (Verb::Stat, true) => Ok(Request::Stat {
                wait: words.wait_ns.map_or(WAIT, Ns),
            }),
            (Verb::Stat, false) => Err(BadRequest::OnlyStat),
            (Verb::Set, true) => Err(BadRequest::Nothing),
            (Verb::Set, false) => Ok(Request::Set(change)),
        }
    }
}

#[cfg(test)]
mod tests;
