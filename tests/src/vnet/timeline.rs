//! Recordings of both ends of queues: every kick, drain and call is there, and both lie on one timeline.
use super::dpdk::BackEnd;
use super::drive::{drive, summary};
use super::network;
use anyhow::{Context, Result, ensure};
use hopscope_event::{Content, RecordKind};
use hopscope_tests::{Target, counts, hopscope};
use hopscope_trace::TraceReader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// By thread and function: how often it happened, and the sum of its numbers.
type Happened = BTreeMap<(String, String), (u64, u64)>;

pub(super) fn run() -> Result<()> {
    let place = network::Place::new()?;
    let [back, front, both] = ["back.hop", "front.hop", "both.hop"].map(|name| place.join(name));
    let path = |path: &Path| path.display().to_string();
    let output = format!("--output={}", path(&back));
    // Called for each: there is something to see of calls.
    let serve = ["--discard", "--tx-call-policy=plain", &output];
    let socket = place.join("vnet.sock");
    let back_end = BackEnd::start(&socket, &serve)?;
    let count = counts().pick(5_000, 100_000).to_string();
    let output = format!("--output={}", path(&front));
    let arguments = ["--count", &count, "--rate=50000", "--spin=0", &output];
    let front_end = summary(Target::spawn_now(&mut drive(&socket, &arguments))?)?;
    let back_end = back_end.stop()?;

    let at_back = happened(&TraceReader::open(&back)?)?;
    let at_front = happened(&TraceReader::open(&front)?)?;
    let of = |summary: &Value, path: &str| {
        let count = summary.pointer(path).and_then(Value::as_u64);
        count.with_context(|| format!("{path}: {summary}"))
    };
    for (all, thread, what, number) in [
        (
            &at_front,
            "front end tx 0",
            "kick",
            of(&front_end, "/tx/kicks")?,
        ),
        (
            &at_back,
            "back end tx 0",
            "kicked",
            of(&back_end, "/pairs/0/tx/kicks")?,
        ),
        (
            &at_back,
            "back end tx 0",
            "drain",
            of(&back_end, "/pairs/0/tx/chains")?,
        ),
        (
            &at_back,
            "back end tx 0",
            "call",
            of(&back_end, "/pairs/0/tx/calls")?,
        ),
        (
            &at_front,
            "front end tx 0",
            "reclaim",
            of(&front_end, "/tx/entries")?,
        ),
        (
            &at_front,
            "front end rx 0",
            "kick",
            of(&front_end, "/rx/kicks")?,
        ),
        (
            &at_back,
            "back end rx 0",
            "kicked",
            of(&back_end, "/pairs/0/rx/kicks")?,
        ),
    ] {
        let found = all.get(&(thread.into(), what.into()));
        let sum = found.map(|(_, sum)| *sum).unwrap_or_default();
        ensure!(
            sum == number && number > 0,
            "{thread} {what}: {sum} of {number}"
        );
    }
    // Those after the last sleep woke nobody.
    let called = at_front.get(&("front end tx 0".into(), "called".into()));
    let (woken, called) = *called.context("nobody was ever called")?;
    ensure!(
        woken <= called && called <= of(&front_end, "/tx/calls")?,
        "{woken} times called, {called} calls: {front_end}"
    );

    let merged = [
        "vnet",
        "merge",
        &path(&back),
        &path(&front),
        "-o",
        &path(&both),
    ];
    hopscope(&merged)?.expect_code(0)?;
    let mut sum = at_back;
    sum.extend(at_front);
    ensure!(happened(&TraceReader::open(&both)?)? == sum, "merged");
    let page = path(&place.join("both.html"));
    hopscope(&["report", &path(&both), "--html", &page])?.expect_code(0)?;
    let page = std::fs::read_to_string(&page)?;
    ensure!(page.contains("front end tx 0"), "the page has one end only");

    let out = hopscope(&[
        "vnet",
        "merge",
        &path(&back),
        &path(&back),
        "-o",
        &path(&both),
    ])?;
    ensure!(
        out.code == Some(2) && out.stderr.contains("the same end"),
        "{}",
        out.stderr
    );
    Ok(())
}

/// A disk that is full costs the recording, and nothing of what was counted.
pub(super) fn full_disk() -> Result<()> {
    let place = network::Place::new()?;
    let socket = place.join("vnet.sock");
    let back_end = BackEnd::start(&socket, &["--discard"])?;
    let arguments = ["--count=5000", "--output=/dev/full"];
    let out = Target::spawn_now(&mut drive(&socket, &arguments))?.output()?;
    let (said, why) = (
        String::from_utf8(out.stdout)?,
        String::from_utf8(out.stderr)?,
    );
    let last: Value = serde_json::from_str(said.lines().last().context("no line")?)?;
    ensure!(last["type"] == "summary" && last["sent"] == 5000, "{said}");
    ensure!(
        out.status.code() == Some(2) && why.contains("/dev/full") && why.lines().count() == 1,
        "{}: {why}",
        out.status
    );
    let back = back_end.stop()?;
    ensure!(back["pairs"][0]["tx"]["packets"] == 5000, "{back}");
    Ok(())
}

/// Every record is of a call that ends, and the numbers are of its end.
fn happened(reader: &TraceReader) -> Result<Happened> {
    let tables = reader.tables();
    let summary = tables.summary.as_ref().context("no summary")?;
    ensure!(summary.lost == 0 && tables.damage.is_none(), "{summary:?}");
    let (mut all, mut records) = (Happened::new(), 0);
    for batch in reader.batches() {
        let batch = batch?;
        let thread = tables.threads.iter().find(|t| t.ix == batch.thread);
        let thread = thread.context("a thread without a name")?;
        for record in &batch.records {
            records += 1;
            let function = tables.functions.iter().find(|f| f.id == record.function());
            let name = function.context("a function without a name")?.name.clone();
            let entry = all.entry((thread.comm.clone(), name)).or_default();
            match (record.kind(), record.value().map(|value| value.content)) {
                (Some(RecordKind::Entry), _) => entry.0 += 1,
                (_, Some(Content::Value(n))) => entry.1 += n,
                _ => {}
            }
        }
    }
    ensure!(records == summary.recorded, "{records} of {summary:?}");
    Ok(all)
}
