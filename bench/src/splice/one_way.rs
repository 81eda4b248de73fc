//! Bytes that go one way only, by plain TCP and redirected, in turn. TCP is faster there, since the sender goes on while
//! the receiver copies, so the accelerator releases such connections after a while: before, and after.
use super::request_rates::{Path, ratios};
use super::servers::{Accelerator, more};
use super::{Bench, a_processor_each};
use crate::error::{Error, Result};
use crate::load::network::Server;
use crate::not_measured::NotMeasured;
use crate::program::run_as;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Of each write.
const SIZES: [u32; 2] = [4096, 65_536];
/// Two windows of half a second show that it is one way, and the first one begins wherever it does.
const MILLISECONDS: u64 = 3_000;
/// At the beginning and at the end, in tenths of a second. The first tenth has slow start and the windows' growth.
const BEFORE: std::ops::Range<usize> = 1..5;
const AFTER: std::ops::Range<usize> = 20..30;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) size: u32,
    /// Of each round, 10^9 bytes a second.
    pub(super) plain_gb_per_s: Spread,
    pub(super) redirected_gb_per_s: Spread,
    pub(super) released_gb_per_s: Spread,
    /// The first half second, to that of plain TCP.
    pub(super) redirected_vs_plain: Spread,
    /// The last second, to that of plain TCP.
    pub(super) released_vs_plain: Spread,
    /// All of it.
    pub(super) whole_vs_plain: Spread,
    pub(super) connections: u64,
    pub(super) released: u64,
}

/// Of one side, by rounds, bytes a second.
#[derive(Debug, Default)]
struct Rates {
    before: Vec<f64>,
    after: Vec<f64>,
    whole: Vec<f64>,
}

struct Ends<'a> {
    stream: PathBuf,
    path: &'a Path<'a>,
    /// Plain, and redirected.
    sinks: [Server; 2],
    accelerator: Accelerator,
    sender_at: String,
}

pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    missing: &mut Vec<NotMeasured>,
) -> Result<Vec<Row>> {
    let Some((first, last)) = a_processor_each("bytes that go one way", missing) else {
        return Ok(Vec::new());
    };
    let stream = bench.program("stream", include_str!("stream.c"))?;
    let start = || {
        let mut command = path.server.in_its_network("taskset");
        command.args(["-c", &first]).arg(&stream).arg("sink");
        Server::start("the sink", command)
    };
    let sinks = [start()?, start()?];
    let port = std::slice::from_ref(&sinks[1].port);
    let accelerator = Accelerator::start(&bench.settings.hopscope, &bench.files, port, &[])?;
    let ends = Ends {
        stream,
        path,
        sinks,
        accelerator,
        sender_at: last,
    };
    let mut rows = Vec::new();
    let sizes = if bench.settings.quick {
        &SIZES[1..]
    } else {
        &SIZES[..]
    };
    for size in sizes {
        rows.extend(one(bench, &ends, *size)?);
    }
    Ok(rows)
}

fn one(bench: &mut Bench<'_, '_>, ends: &Ends<'_>, size: u32) -> Result<Option<Row>> {
    let mut sides = [Rates::default(), Rates::default()];
    let before = ends.accelerator.stat()?;
    for round in 0..bench.rounds {
        bench.say(&format!("one way, {size} bytes a write"), round);
        for turn in 0..2 {
            let at = (turn + round) % 2;
            let said = ends.send(&ends.sinks[at], size)?;
            sides[at].add(&said)?;
            bench.sample(json!({
                "what": "one_way", "round": round, "size": size, "joined": at == 1, "said": said,
            }))?;
        }
    }
    let after = ends.accelerator.stat()?;
    let [plain, joined] = &sides;
    let counts = (
        more(&before, &after, "connections")?,
        more(&before, &after, "released_one_way")?,
    );
    Ok(row(size, plain, joined, counts))
}

impl Ends<'_> {
    fn send(&self, to: &Server, size: u32) -> Result<Value> {
        let mut command = self.path.client.in_its_network("taskset");
        command.args(["-c", &self.sender_at]).arg(&self.stream);
        command.args(["send", &to.port, &size.to_string()]);
        let line = run_as("the sender", command.arg(MILLISECONDS.to_string()))?;
        Ok(serde_json::from_str(&line).unwrap_or_default())
    }
}

impl Rates {
    fn add(&mut self, said: &Value) -> Result<()> {
        let bytes = said["bytes"].as_array().into_iter().flatten();
        let bytes: Vec<f64> = bytes.filter_map(Value::as_f64).collect();
        let (Some(before), Some(after)) = (bytes.get(BEFORE), bytes.get(AFTER)) else {
            return Err(Error::no_field("the sender", "bytes", said));
        };
        let rate = |slices: &[f64]| slices.iter().sum::<f64>() * 10.0 / slices.len() as f64;
        self.before.push(rate(before));
        self.after.push(rate(after));
        self.whole.push(rate(&bytes));
        Ok(())
    }
}

fn row(size: u32, plain: &Rates, joined: &Rates, counts: (u64, u64)) -> Option<Row> {
    let gigabytes = |rates: &[f64]| {
        let scaled: Vec<f64> = rates.iter().map(|rate| rate / 1e9).collect();
        Spread::of(&scaled)
    };
    Some(Row {
        size,
        plain_gb_per_s: gigabytes(&plain.whole)?,
        redirected_gb_per_s: gigabytes(&joined.before)?,
        released_gb_per_s: gigabytes(&joined.after)?,
        redirected_vs_plain: ratios(&joined.before, &plain.before)?,
        released_vs_plain: ratios(&joined.after, &plain.after)?,
        whole_vs_plain: ratios(&joined.whole, &plain.whole)?,
        connections: counts.0,
        released: counts.1,
    })
}

pub(super) fn line(row: &Row) -> String {
    format!(
        "{:>6} B a write  plain {:>6.2} GB/s  redirected {:>6.2} (x {:.2})  released {:>6.2} (x {:.2})  all of it \
         x {:.2}; {} of {} released",
        row.size,
        row.plain_gb_per_s.median,
        row.redirected_gb_per_s.median,
        row.redirected_vs_plain.median,
        row.released_gb_per_s.median,
        row.released_vs_plain.median,
        row.whole_vs_plain.median,
        row.released,
        row.connections
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_and_after_are_told_apart() {
        let slice = |n: u64| if n < 15 { 1_000 } else { 3_000 };
        let bytes: Vec<u64> = (0..30).map(slice).collect();
        let mut rates = Rates::default();
        rates
            .add(&json!({"slice_ms": 100, "bytes": bytes}))
            .unwrap();
        assert_eq!((rates.before[0], rates.after[0]), (10_000.0, 30_000.0));
        assert_eq!(rates.whole[0], 20_000.0);
        assert!(rates.add(&json!({"bytes": [1, 2]})).is_err());
    }
}
