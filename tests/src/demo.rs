//! The demo network function does what it says: without that, measuring it proves nothing. And it
//! does so while it is measured.
use anyhow::{Context, Result};
use hopscope_tests::Suite;
use serde_json::Value;

mod alone;
mod attached;
mod build;
mod forwarding;
mod measured;
mod network;
mod packet_numbers;
mod planted;
mod runs;
mod scene;
mod tails;

pub(crate) use network::Network;

pub(crate) fn register(suite: &mut Suite) {
    alone::register(suite);
    forwarding::register(suite);
    measured::register(suite);
    attached::register(suite);
    runs::register(suite);
    tails::register(suite);
    packet_numbers::register(suite);
}

fn parse(stdout: &str) -> Result<Value> {
    serde_json::from_str(stdout).with_context(|| format!("not JSON: {stdout}"))
}

fn number(counters: &Value, pointer: &str) -> Result<u64> {
    counters
        .pointer(pointer)
        .and_then(Value::as_u64)
        .with_context(|| format!("no number {pointer} in {counters}"))
}
