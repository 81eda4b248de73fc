//! Lines of `hopscope report --json`.
use crate::error::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Times since the begin of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Run {
    pub(super) run: u64,
    pub(super) start_ns: f64,
    pub(super) length_ns: f64,
}

/// One that came back and has a run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Packet {
    pub(super) seq: u64,
    pub(super) sent_ns: f64,
    pub(super) latency_ns: f64,
    pub(super) run: u64,
}

#[derive(Debug, Clone, PartialEq, Deserialize, serde::Serialize)]
pub(super) struct Cause {
    pub(super) cause: String,
    pub(super) function: Option<String>,
    pub(super) packets: u64,
    pub(super) events: u64,
}

pub(super) trait Row: DeserializeOwned {
    const TYPE: &'static str;
}

impl Row for Run {
    const TYPE: &'static str = "run";
}

impl Row for Packet {
    const TYPE: &'static str = "packet_run";
}

impl Row for Cause {
    const TYPE: &'static str = "tail_cause";
}

fn lines<'a>(said: &'a str, kind: &'a str) -> impl Iterator<Item = Value> + 'a {
    said.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(move |line| line["type"] == kind)
}

/// Rows of a type that have all that is asked of them: packets without a run have not.
pub(super) fn rows<R: Row>(said: &str) -> Vec<R> {
    lines(said, R::TYPE)
        .filter_map(|line| serde_json::from_value(line).ok())
        .collect()
}

/// A number of the only line of its type.
pub(super) fn number(said: &str, kind: &str, field: &str) -> Result<f64> {
    let found = lines(said, kind).find_map(|line| line[field].as_f64());
    found.ok_or_else(|| missing(said, format!("{kind}.{field}")))
}

pub(super) fn of_function(said: &str, function: &str, field: &str) -> Result<f64> {
    let found = lines(said, "run_function")
        .find(|line| line["function"] == function)
        .and_then(|line| line[field].as_f64());
    found.ok_or_else(|| missing(said, format!("{field} of {function}")))
}

fn missing(said: &str, field: String) -> Error {
    Error::no_field(
        "hopscope report --json",
        field,
        said.lines().last().unwrap_or_default(),
    )
}
