//! A Perfetto trace, decoded with the official descriptors, holds the calls of the recording.
use super::{export, of_kind, packets, rows, tricky};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{Requirement, Suite, scratch};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Readers];
    suite.case("export::perfetto_slices_are_the_calls", needs, slices);
    suite.case("export::perfetto_joins_each_packet_by_a_flow", needs, flows);
}

fn decoded(file: &Path) -> Result<Value> {
    let trace = scratch().join("out.perfetto");
    export(
        file,
        &["--format", "perfetto", "-o", &trace.display().to_string()],
    )?;
    let out = run(Command::new(readers_python())
        .arg(programs().join("readers/perfetto_slices.py"))
        .arg(&trace))?
    .expect_code(0)?;
    Ok(serde_json::from_str(&out.stdout)?)
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    value[name].as_array().with_context(|| format!("no {name}"))
}

fn slices() -> Result<()> {
    let (rows, _) = rows(&tricky(), &["--what", "calls"])?;
    let trace = decoded(&tricky())?;
    let slices = list(&trace, "slices")?;
    // Runs have tracks of their own.
    let slices: Vec<&Value> = slices
        .iter()
        .filter(|s| s["notes"]["run"].is_null())
        .collect();
    let by_call: HashMap<u64, &Value> = slices
        .iter()
        .filter_map(|s| Some((s["notes"]["call"].as_u64()?, *s)))
        .collect();
    let calls: Vec<&Value> = of_kind(&rows, "call").collect();
    ensure!(calls.len() > 10 && by_call.len() == calls.len() && slices.len() == calls.len());
    for call in calls {
        let number = call["call"].as_u64().context("a call's number")?;
        let slice = by_call.get(&number).context("a call without a slice")?;
        let name = slice["name"].as_str().context("a name")?;
        let function = call["function"].as_str().context("a function")?;
        let about = format!("{call} drawn as {slice}");
        ensure!(name.ends_with(&format!("!{function}")), "{about}");
        ensure!(
            slice["track"]["tid"] == call["tid"] || call["stack"].as_u64() > Some(0),
            "{about}"
        );
        ensure!(slice["depth"] == call["depth"], "{about}");
        ensure!(slice["parent"] == call["parent_call"], "{about}");
        let whole = call["fate"] == "exit" || call["fate"] == "tail_exit";
        let moved = |which: &str| slice["notes"][which].as_f64().unwrap_or(0.0);
        let moved = moved("end_moved_ns") - moved("begin_moved_ns");
        match (whole, call["total_raw_ns"].as_f64(), slice["dur"].as_f64()) {
            // Begin and end are rounded to whole nanoseconds each.
            (true, Some(ns), Some(dur)) => {
                ensure!((ns + moved - dur).abs() <= 1.0, "{about}");
            }
            (false, None, Some(_)) => {
                ensure!(slice["notes"]["end_unknown"].is_string(), "{about}");
            }
            (false, None, None) => ensure!(call["fate"] == "open_at_end", "{about}"),
            _ => anyhow::bail!("{about}"),
        }
    }
    missing(&rows, list(&trace, "instants")?)
}

/// Each gap and each end without a begin is an event, and the facts are there.
fn missing(rows: &[Value], instants: &[Value]) -> Result<()> {
    let named = |what: &str| {
        let named = |i: &&Value| i["name"].as_str().is_some_and(|n| n.starts_with(what));
        instants.iter().filter(named).count()
    };
    let (gaps, ends) = (of_kind(rows, "gap").count(), of_kind(rows, "end").count());
    ensure!(gaps > 0 && named("records lost") == gaps, "{gaps} gaps");
    ensure!(ends > 0 && named("end of ") == ends, "{ends} ends");
    let facts = instants.iter().find(|i| i["name"] == "hopscope");
    let facts = &facts.context("no facts")?["notes"];
    ensure!(
        facts["records_lost"] == 5 && facts["records_torn"] == 2,
        "{facts}"
    );
    Ok(())
}

fn flows() -> Result<()> {
    let (rows, _) = rows(&packets(), &["--what", "packets"])?;
    let trace = decoded(&packets())?;
    let slices = list(&trace, "slices")?;
    let arrived = |row: &&Value| row["lost"] == 0;
    let packets: Vec<&Value> = of_kind(&rows, "packet").filter(arrived).collect();
    ensure!(packets.len() > 10, "{} packets", packets.len());
    ensure!(slices.len() == packets.len(), "{} slices", slices.len());
    for packet in &packets {
        let its = |s: &&Value| s["notes"]["seq"] == packet["seq"];
        let slice = slices
            .iter()
            .find(its)
            .context("a packet without a slice")?;
        let (ns, dur) = (packet["transit_ns"].as_f64(), slice["dur"].as_f64());
        let (ns, dur) = (ns.context("transit")?, dur.context("dur")?);
        ensure!((ns - dur).abs() <= 1.0, "{packet} drawn as {slice}");
        ensure!(slice["depth"] == 0, "overlaps another: {slice}");
    }
    // Of a lost packet there is nothing but that it left.
    let lost = of_kind(&rows, "packet").count() - packets.len();
    let whole = |flow: &&Value| flow.as_array().is_some_and(|steps| steps.len() > 1);
    let flows = list(&trace, "flows")?;
    ensure!(flows.len() == packets.len() + lost, "{} flows", flows.len());
    let flows: Vec<&Value> = flows.iter().filter(whole).collect();
    ensure!(flows.len() == packets.len(), "{} joined", flows.len());
    for flow in flows {
        let steps = flow.as_array().context("steps")?;
        let last: Vec<_> = steps.iter().map(|s| s["last"] == true).collect();
        ensure!(steps.len() == 2 && last == [false, true], "{flow}");
        ensure!(steps[0]["name"] == steps[1]["name"], "{flow}");
    }
    Ok(())
}
