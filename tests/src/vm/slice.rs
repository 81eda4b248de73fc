//! Slices of packets on Debian's 6.1, which lacks tracepoints that this machine's kernel has: with its
//! function entries, and without. One record for every message that was sent, with the points that the
//! backend promises, in their order.
mod truth;

use super::check::LIKE_BEFORE;
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::{Requirement, compile_c, counts};
use serde_json::Value;
use truth::Message;

const NEEDS: &[Requirement] = &[Requirement::Vm, Requirement::Gcc];

pub(super) const SLICED: Part = Part {
    name: "vm::slices_are_what_was_sent",
    needs: NEEDS,
    steps: slice,
    holds: sliced,
};
pub(super) const KILLED: Part = Part {
    name: "vm::no_hook_outlives_its_slicer",
    needs: NEEDS,
    steps: kill,
    holds: killed,
};

const MESSAGES: u32 = 20;
const TRAFFIC: &str = include_str!("traffic.sh");

/// Points that each message of a protocol has; a sleeping reader's are between.
struct Promise {
    protocol: u64,
    points: &'static [&'static str],
}

const WOKEN: &[&str] = &["rx_waking", "rx_sched_in"];

const FENTRY: &[Promise] = &[
    Promise {
        protocol: 6,
        points: &[
            "tx_syscall",
            "tx_transport",
            "tx_ip_out",
            "tx_dev_queue",
            "tx_driver",
            "rx_driver",
            "tx_done",
            "rx_core",
            "rx_ip",
            "rx_transport",
            "rx_socket",
            "rx_copy",
            "rx_copied",
            "rx_received",
            "rx_return",
        ],
    },
    // UDP copies short packets where no hook is.
    Promise {
        protocol: 17,
        points: &[
            "tx_syscall",
            "tx_transport",
            "tx_ip_out",
            "tx_dev_queue",
            "tx_driver",
            "rx_driver",
            "tx_done",
            "rx_core",
            "rx_ip",
            "rx_socket",
            "rx_copied",
            "rx_received",
            "rx_return",
        ],
    },
];

/// Who sends is seen by TCP's entry, and who is woken by the socket's: neither is here.
const TRACEPOINT: &[Promise] = &[Promise {
    protocol: 6,
    points: &[
        "tx_dev_queue",
        "tx_driver",
        "rx_driver",
        "tx_done",
        "rx_core",
        "rx_transport",
        "rx_copy",
        "rx_copied",
        "rx_return",
    ],
}];

fn programs(guest: &mut Guest) -> Result<()> {
    let exchange = compile_c(&["slice/exchange.c"], &["-O2", "-Wall"])?;
    let objects = compile_c(&["slice/bpf_objects.c"], &["-O2", "-Wall"])?;
    guest.program(&exchange, "/bin/exchange")?;
    guest.program(&objects, "/bin/bpf_objects")?;
    guest.file("/traffic.sh", TRAFFIC.as_bytes());
    Ok(())
}

const BACKENDS: [&str; 4] = ["fentry", "tracepoint", "raw", "auto"];

fn backends() -> &'static [&'static str] {
    counts().pick(&["fentry", "tracepoint", "raw"], &BACKENDS)
}

fn slice(guest: &mut Guest) -> Result<()> {
    programs(guest)?;
    guest.step("net", ". /traffic.sh; net");
    // Neighbours are found, and addresses settled, before anything is expected.
    guest.step("first", ". /traffic.sh; exchange_all 1");
    for backend in backends() {
        let run = format!(
            ". /traffic.sh
            start --json --backend {backend} || exit
            exchange_all {MESSAGES}
            stop"
        );
        guest.step(backend, &run);
        guest.step(
            truth_of(backend),
            "cd /truth; for file in *-?; do echo $file; cat $file; done",
        );
    }
    Ok(())
}

fn sliced(run: &Run) -> Result<()> {
    for (backend, used, promises) in [
        ("fentry", "fentry", FENTRY),
        ("tracepoint", "tracepoint", TRACEPOINT),
        ("auto", "fentry", FENTRY),
    ] {
        if !backends().contains(&backend) {
            continue;
        }
        check(run, backend, used, promises).with_context(|| format!("backend {backend}"))?;
    }
    let raw = run.step("raw")?.expect_code(2)?;
    ensure!(
        raw.stderr.lines().count() == 1 && raw.stderr.contains("Linux 6.2"),
        "{raw:?}"
    );
    Ok(())
}

fn truth_of(backend: &str) -> &'static str {
    match backend {
        "fentry" => "truth-fentry",
        "auto" => "truth-auto",
        "tracepoint" => "truth-tracepoint",
        _ => "truth-raw",
    }
}

fn check(run: &Run, backend: &str, used: &str, promises: &[Promise]) -> Result<()> {
    let said = run.step(backend)?.expect_code(0)?.stdout;
    let mut lines: Vec<Value> = Vec::new();
    for line in said.lines() {
        lines.push(serde_json::from_str(line).with_context(|| line.to_owned())?);
    }
    let summary = lines.pop().context("nothing said")?;
    ensure!(summary["backend"] == used, "{summary}");
    adds_up(&summary, lines.len() as u64)?;
    let messages = truth::read(&run.step(truth_of(backend))?.stdout)?;
    ensure!(
        messages.len() == 4 * 2 * MESSAGES as usize,
        "{} messages",
        messages.len()
    );
    let mut woken = 0;
    for promise in promises {
        for message in messages.iter().filter(|m| m.protocol == promise.protocol) {
            let record = only(&lines, message)?;
            let points = points(record);
            let (asleep, others): (Vec<&str>, Vec<&str>) =
                points.iter().partition(|point| WOKEN.contains(point));
            ensure!(others == promise.points, "{message:?}: {record}");
            ensure!(
                asleep.is_empty() || asleep == WOKEN,
                "{message:?}: {record}"
            );
            woken += asleep.len();
            in_time(record, message)?;
        }
    }
    // Where the reader is seen being woken at all, it sometimes sleeps.
    ensure!((woken > 0) == (used == "fentry"), "{woken} wake-ups");
    Ok(())
}

/// Every record begun is accounted for, and every one handed over has a line.
fn adds_up(summary: &Value, lines: u64) -> Result<()> {
    let counter = |name: &str| {
        let value = &summary["summary"]["counters"][name];
        value.as_u64().with_context(|| format!("{name}: {value}"))
    };
    let ended: u64 = [
        "written",
        "ring_full",
        "too_fast",
        "other_process",
        "aged",
        "stale_ended",
        "split_parents",
        "queue_full",
    ]
    .iter()
    .map(|name| counter(name))
    .sum::<Result<u64>>()?;
    let in_flight = summary["summary"]["in_flight"].as_u64();
    let in_flight = in_flight.with_context(|| summary.to_string())?;
    ensure!(counter("created")? == ended + in_flight, "{summary}");
    ensure!(counter("written")? == lines, "{lines} lines: {summary}");
    let begun = ["created", "unmatched", "unreadable", "no_slot"];
    let begun: u64 = begun
        .iter()
        .map(|name| counter(name))
        .sum::<Result<u64>>()?;
    ensure!(counter("seen")? == begun, "{summary}");
    for name in ["ring_full", "no_slot", "out_of_order", "queue_full"] {
        ensure!(counter(name)? == 0, "{name}: {summary}");
    }
    Ok(())
}

/// The record of a message: its length tells which one it is. A packet without data has none.
fn only<'a>(lines: &'a [Value], message: &Message) -> Result<&'a Value> {
    let port = match message.is_from_server {
        true => "source_port",
        false => "destination_port",
    };
    let is_it = |line: &&Value| {
        line["protocol"] == message.protocol
            && line["family"] == message.family
            && line["length"] == message.bytes
            && line[port] == 7711
    };
    let found: Vec<&Value> = lines.iter().filter(is_it).collect();
    match found.as_slice() {
        [record] => Ok(record),
        [] => bail!("no record of {message:?}"),
        more => bail!("{} records of {message:?}", more.len()),
    }
}

fn points(record: &Value) -> Vec<&str> {
    let pieces = record["slices"].as_array().map_or(&[][..], Vec::as_slice);
    let first = pieces.first().and_then(|piece| piece["from"].as_str());
    let others = pieces.iter().filter_map(|piece| piece["to"].as_str());
    first.into_iter().chain(others).collect()
}

/// On one processor stamps are in the order of points, and within what both ends saw.
fn in_time(record: &Value, message: &Message) -> Result<()> {
    let ns = |value: &Value| value.as_u64().with_context(|| record.to_string());
    for piece in record["slices"].as_array().context("slices")? {
        ns(&piece["raw_ns"]).with_context(|| format!("backwards in {message:?}"))?;
    }
    ensure!(
        record["rx"]["tid"] == message.receiver && record["call_returned"] == message.bytes,
        "{message:?}: {record}"
    );
    let first = ns(&record["monotonic_ns"])?;
    let last = first + ns(&record["whole"]["raw_ns"])?;
    if points(record).first() == Some(&"tx_syscall") {
        ensure!(
            record["tx"]["tid"] == message.sender,
            "{message:?}: {record}"
        );
    }
    let sent = message.send.contains(&first);
    let received = message.receive.contains(&last);
    ensure!(sent && received, "{first} to {last} of {message:?}");
    Ok(())
}

/// Verifying its programs once more takes a machine without KVM as long as all before.
fn ways() -> &'static [&'static str] {
    counts().pick(&["killed"], &["killed", "ended"])
}

fn kill(guest: &mut Guest) -> Result<()> {
    programs(guest)?;
    guest.step("before", "bpf_objects | tee /tmp/before");
    guest.step("during", ". /traffic.sh; start && bpf_objects");
    guest.step("killed", &format!("kill -9 $(cat /pid); {LIKE_BEFORE}"));
    if ways().contains(&"ended") {
        guest.step(
            "ended",
            &format!(". /traffic.sh; start && stop > /dev/null && {LIKE_BEFORE}"),
        );
    }
    Ok(())
}

fn killed(run: &Run) -> Result<()> {
    let before = run.step("before")?.expect_code(0)?.stdout;
    let during = run.step("during")?.expect_code(0)?.stdout;
    for program in ["tp_net_dev_queu", "fn_sock_def_rea", "link"] {
        ensure!(during.contains(program), "{during}");
    }
    for step in ways() {
        let after = run.step(step)?.stdout;
        ensure!(after == before, "{step}: left behind:\n{after}");
    }
    Ok(())
}
