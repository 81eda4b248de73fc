//! Clients of others, over the kernel's TCP, of the servers in the stack.
use super::cable::{KERNEL, STACK, STACK_V6, Way, namespace};
use super::serving::{Serving, counter};
use anyhow::{Context, Result, anyhow, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, hopscope};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Ethtool, Netns, Wrk};
    for way in Way::ALL {
        let name = format!("stack::serve_answers_curl_{}", way.name());
        suite.case(name, &[Netns, Ethtool, Curl], move || curl(way));
        let name = format!("stack::serve_gives_load_every_byte_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || load(way));
    }
    suite.case("stack::serve_answers_wrk", &[Netns, Wrk], wrk);
    suite.case("stack::serve_answers_raw_clients", &[Netns], raw);
    suite.case("stack::serve_answers_ping", &[Netns], ping);
    suite.case(
        "stack::serve_takes_one_queue_of_several",
        &[Netns],
        one_queue,
    );
    suite.case("stack::serve_refuses_connections", &[Netns], refuses);
}

fn curl(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let serving = Serving::start(way, &["--app=http:10000"])?;
    let rounds = counts().pick(3, 50);
    for n in 0..rounds {
        for host in [STACK, &format!("[{STACK_V6}]")] {
            let out = run(Command::new("curl").args([
                "--silent",
                "--show-error",
                "--max-time",
                "20",
                "--output",
                "-",
                "--write-out",
                "%{http_code} %{num_connects}",
                &format!("http://{host}/{n}"),
                &format!("http://{host}/again"),
            ]))?;
            ensure!(out.code == Some(0), "curl {host}: {}", out.stderr);
            // Two bodies, of the same connection.
            let (bodies, codes) = (out.stdout.len(), out.stdout.matches("200 ").count());
            ensure!(codes == 2 && bodies > 20_000, "curl {host}: {}", out.stdout);
            ensure!(
                out.stdout.ends_with("200 0"),
                "not kept alive: {}",
                out.stdout
            );
        }
    }
    let summary = serving.stop()?;
    let app = &summary["app"];
    ensure!(app["answered"] == 4 * rounds, "{app}");
    ensure!(app["accepted"] == 2 * rounds && app["failed"] == 0, "{app}");
    clean(&summary)
}

/// Nothing on the way was damaged, and nothing sent again, on a cable that loses nothing.
fn clean(summary: &Value) -> Result<()> {
    for path in [
        "/counters/Tcp/InErrs",
        "/counters/Tcp/InCsumErrors",
        "/counters/Ip/InHdrErrors",
        "/counters/Hopscope/FramesMalformed",
        "/counters/Hopscope/TcpOptionsMalformed",
        "/port/send_failed",
    ] {
        ensure!(counter(summary, path) == 0, "{path}: {summary}");
    }
    Ok(())
}

/// Every byte of round trips and of a stream, compared by the client.
fn load(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let requests = counts().pick("2000", "100000");
    // Of the client's 28,232 ports each waits a minute behind its connection.
    let dialled = counts().pick("2000", "20000");
    let echo = Serving::start(way, &["--app=echo", "--port=7"])?;
    for host in [STACK.to_owned(), format!("[{STACK_V6}]")] {
        for (kind, size, connections, requests) in [
            ("rr", "100", "16", requests),
            ("rr", "30000", "4", requests),
            ("crr", "500", "8", dialled),
        ] {
            let target = format!("{host}:7");
            let words = [
                "tcp",
                kind,
                &target,
                "--closed",
                "-c",
                requests,
                "-n",
                connections,
                "--size",
                size,
            ];
            let summary = loaded(&words)?;
            ensure!(
                summary["failed"] == 0 && summary["corrupt"] == 0,
                "{words:?}: {summary}"
            );
        }
    }
    clean(&echo.stop()?)?;
    let source = Serving::start(way, &["--app=chargen", "--port=19", "--seed=1"])?;
    let target = format!("{STACK}:19");
    let messages = counts().pick("200", "20000");
    let words = [
        "tcp",
        "stream",
        &target,
        "--reverse",
        "-c",
        messages,
        "--size",
        "128K",
    ];
    let summary = loaded(&words)?;
    ensure!(
        summary["corrupt"] == 0 && summary["failed"] == 0,
        "{summary}"
    );
    clean(&source.stop()?)?;
    let sink = Serving::start(way, &["--app=discard", "--port=9", "--seed=1"])?;
    let target = format!("{STACK}:9");
    let summary = loaded(&["tcp", "stream", &target, "-c", messages, "--size", "128K"])?;
    ensure!(summary["failed"] == 0, "{summary}");
    let done = sink.stop()?;
    let bytes: u64 = 131_072 * messages.parse::<u64>()?;
    ensure!(done["app"]["bytes_received"] == bytes, "{bytes}: {done}");
    ensure!(done["app"]["corrupt"] == 0, "{done}");
    clean(&done)
}

fn loaded(words: &[&str]) -> Result<Value> {
    let words = [&["load"], words, &["--json"]].concat();
    let out = hopscope(&words)?.expect_code(0)?;
    let last = out.stdout.lines().last().context("no line")?;
    Ok(serde_json::from_str(last)?)
}

fn wrk() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=http:600"])?;
    let url = format!("http://{STACK}/");
    let duration = counts().pick("1s", "20s");
    let out = run(Command::new("wrk").args(["-t1", "-c100", "-d", duration, &url]))?;
    ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
    ensure!(!out.stdout.contains("Socket errors"), "{}", out.stdout);
    ensure!(!out.stdout.contains("Non-2xx"), "{}", out.stdout);
    let summary = serving.stop()?;
    // One more is tried before.
    ensure!(summary["app"]["accepted"] == 101, "{summary}");
    ensure!(summary["app"]["corrupt"] == 0, "{summary}");
    clean(&summary)
}

/// A line at a time, as `nc` or `redis-cli` would; half a close has the rest come back first.
fn raw() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo", "--port=7"])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
    for n in 0..100u32 {
        let line = format!("line {n}\n");
        stream.write_all(line.as_bytes())?;
        let mut back = vec![0; line.len()];
        stream.read_exact(&mut back)?;
        ensure!(back == line.as_bytes(), "{back:?}");
    }
    let much = vec![b'x'; 1 << 20];
    let mut writer = stream.try_clone()?;
    let sent = much.clone();
    let sending = std::thread::spawn(move || -> Result<()> {
        writer.write_all(&sent)?;
        Ok(writer.shutdown(Shutdown::Write)?)
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back)?;
    sending.join().expect("no panic")?;
    ensure!(back == much, "{} bytes came back", back.len());
    let summary = serving.stop()?;
    ensure!(
        summary["app"]["ended"] == 1 && summary["app"]["failed"] == 0,
        "{summary}"
    );
    Ok(())
}

fn ping() -> Result<()> {
    namespace()?;
    Way::TapQueues.make()?;
    let serving = Serving::start(Way::TapQueues, &["--app=echo"])?;
    for host in [STACK, STACK_V6] {
        let out = hopscope(&["load", "ping", host, "-i", "1ms", "-c", "100", "--json"])?;
        let out = out.expect_code(0)?;
        let summary: Value = serde_json::from_str(out.stdout.lines().last().context("no line")?)?;
        ensure!(
            summary["done"] == 100 && summary["duplicate"] == 0,
            "{host}: {summary}"
        );
    }
    let summary = serving.stop()?;
    ensure!(
        counter(&summary, "/counters/Icmp/InEchos") >= 100,
        "{summary}"
    );
    Ok(())
}

/// A device that was made for several queues, and one engine.
fn one_queue() -> Result<()> {
    namespace()?;
    Way::TapQueues.make()?;
    let serving = Serving::start(Way::Tap, &["--app=echo", "--port=7"])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    let (text, mut back) = (vec![7; 100_000], vec![0; 100_000]);
    let mut writer = stream.try_clone()?;
    let written = std::thread::spawn(move || writer.write_all(&text));
    stream.read_exact(&mut back)?;
    written.join().map_err(|_| anyhow!("the writer"))??;
    ensure!(back.iter().all(|byte| *byte == 7), "other bytes");
    drop(stream);
    serving.stop()?;
    Ok(())
}

/// Where nobody listens, as the kernel does it: a reset at once.
fn refuses() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo", "--port=7"])?;
    let error = TcpStream::connect((STACK, 8)).err().context("connected")?;
    ensure!(
        error.kind() == std::io::ErrorKind::ConnectionRefused,
        "{error}"
    );
    // Its neighbours are not ours to answer for.
    ensure!(TcpStream::connect((KERNEL, 8)).is_err(), "connected");
    let summary = serving.stop()?;
    ensure!(counter(&summary, "/counters/Tcp/OutRsts") == 1, "{summary}");
    Ok(())
}
