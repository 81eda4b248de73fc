//! A stack that runs says what its connections and counters are; a recording says where segments were when.
use super::cable::{STACK, Way, files, namespace};
use super::serving::{Serving, counter};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Schedstat};
    suite.case("stack::ss_has_the_fields_of_ss", &[Netns], ss);
    suite.case("stack::stats_are_what_was_done", &[Netns], stats);
    suite.case(
        "stack::a_recording_has_each_segments_way",
        &[Netns],
        recording,
    );
    suite.case(
        "stack::serve_sleeps_while_nothing_happens",
        &[Netns, Schedstat],
        sleeps,
    );
}

fn one_echo(stream: &mut TcpStream, bytes: usize) -> Result<()> {
    let text = vec![b'e'; bytes];
    stream.write_all(&text)?;
    let mut back = vec![0; bytes];
    stream.read_exact(&mut back)?;
    ensure!(back == text, "other bytes");
    Ok(())
}

fn asked(serving: &Serving, words: &[&str]) -> Result<String> {
    let words = [&["stack"], words, &["--control", serving.control()]].concat();
    Ok(hopscope(&words)?.expect_code(0)?.stdout)
}

fn ss() -> Result<()> {
    namespace()?;
    Way::TapQueues.make()?;
    let serving = Serving::start(Way::TapQueues, &["--app=echo", "--port=7"])?;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect((STACK, 7))?;
        one_echo(&mut stream, 1000)?;
        streams.push(stream);
    }
    let all: Value = serde_json::from_str(&asked(&serving, &["ss", "--json"])?)?;
    ensure!(all["type"] == "stack_ss" && all["schema"] == 1, "{all}");
    let engines = all["engines"].as_array().context("engines")?;
    ensure!(engines.len() == 2, "{all}");
    let rows = engines.iter().filter_map(|e| e["connections"].as_array());
    let rows: Vec<&Value> = rows.flatten().collect();
    let open = rows.iter().filter(|row| row["state"] == "ESTAB");
    let mut locals: Vec<String> = open
        .map(|row| {
            let info = &row["info"];
            ensure!(info["bytes_received"] == 1000, "{row}");
            ensure!(info["bytes_acked"].as_u64() >= Some(1000), "{row}");
            ensure!(info["cwnd"].as_u64() >= Some(10), "{row}");
            ensure!(info["rtt_us"].as_f64() > Some(0.0), "{row}");
            ensure!(info["mss"].as_u64() >= Some(1400), "{row}");
            Ok(row["peer"].as_str().context("peer")?.to_owned())
        })
        .collect::<Result<_>>()?;
    locals.sort();
    let mut expected: Vec<String> = streams
        .iter()
        .map(|stream| Ok(stream.local_addr()?.to_string()))
        .collect::<Result<_>>()?;
    expected.sort();
    ensure!(locals == expected, "{locals:?} and {expected:?}");
    // A listener in each engine, of each family.
    ensure!(
        rows.iter().filter(|row| row["state"] == "LISTEN").count() == 4,
        "{all}"
    );
    let text = asked(&serving, &["ss"])?;
    ensure!(text.contains("cwnd:") && text.contains("rtt:"), "{text}");
    drop(streams);
    serving.stop()?;
    Ok(())
}

fn stats() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo", "--port=7"])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    for _ in 0..10 {
        one_echo(&mut stream, 100)?;
    }
    let all: Value = serde_json::from_str(&asked(&serving, &["stats", "--json"])?)?;
    let engine = &all["engines"][0];
    let of = |path: &str| engine.pointer(path).and_then(Value::as_u64);
    ensure!(of("/counters/Tcp/PassiveOpens") == Some(1), "{all}");
    ensure!(of("/counters/Tcp/CurrEstab") == Some(1), "{all}");
    ensure!(of("/counters/Tcp/InSegs") >= Some(12), "{all}");
    ensure!(of("/app/bytes_received") == Some(1000), "{all}");
    ensure!(of("/memory/buffer_bytes").is_some(), "{all}");
    let text = asked(&serving, &["stats"])?;
    let row = text
        .lines()
        .find(|line| line.starts_with("TcpPassiveOpens "));
    ensure!(row.is_some_and(|row| row.ends_with(" 1")), "{text}");
    ensure!(!text.contains(" 0\n"), "{text}");
    let text = asked(&serving, &["stats", "--prometheus"])?;
    let row = "hopscope_stack_Tcp_PassiveOpens{engine=\"0\"} 1";
    ensure!(text.lines().any(|line| line == row), "{text}");
    drop(stream);
    // Its end is on the way.
    loop {
        let all: Value = serde_json::from_str(&asked(&serving, &["stats", "--json"])?)?;
        if all["engines"][0]["app"]["ended"] == 1 {
            break;
        }
    }
    serving.stop()?;
    Ok(())
}

fn recording() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let file = files().join("stack.hop");
    let path = file.to_str().context("a path")?;
    let serving = Serving::start(Way::Packet, &["--app=echo", "--port=7", "-o", path])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    for _ in 0..50 {
        one_echo(&mut stream, 100)?;
    }
    drop(stream);
    let summary = serving.stop()?;
    // Frames without payload, too.
    let [received, sent] = ["/port/received", "/port/sent"].map(|path| counter(&summary, path));
    let report = hopscope(&["report", path, "--json"])?.expect_code(0)?;
    let rows: Vec<Value> = report
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    for (name, least) in [
        ("rx", received),
        ("demux", 50),
        ("deliver", 50),
        ("app read", 50),
        ("app write", 50),
        ("tx", sent),
    ] {
        let row = rows
            .iter()
            .find(|row| row["name"] == name || row["function"] == name);
        let row = row.with_context(|| format!("no {name} in {}", report.stdout))?;
        let calls = row["calls"].as_u64().context("calls")?;
        ensure!(calls >= least, "{row}");
        let frames = [("rx", received), ("tx", sent)];
        ensure!(
            frames.iter().all(|(of, n)| *of != name || *n == calls),
            "{row}, {summary}"
        );
    }
    Ok(())
}

/// A second of nothing costs some wake-ups and next to no processor: the other end's neighbour cache may ask.
fn sleeps() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo", "--port=7"])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    one_echo(&mut stream, 100)?;
    let switches = || -> Result<u64> { Ok(serving.status("voluntary_ctxt_switches")?.parse()?) };
    let before = (switches()?, serving.cpu_ns()?);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let woken = switches()? - before.0;
    let cpu_ns = serving.cpu_ns()? - before.1;
    ensure!(woken < 100, "woke up {woken} times");
    ensure!(cpu_ns < 10_000_000, "{cpu_ns} ns of a processor");
    drop(stream);
    serving.stop()?;
    Ok(())
}
