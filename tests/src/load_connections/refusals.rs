//! What cannot be run is refused in one line before anything is sent.
use super::counts::Own;
use anyhow::{Context, Result};
use hopscope_tests::{Suite, command, hopscope, hopscope_bin};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_connections::what_cannot_be_run_is_refused",
        &[],
        refused,
    );
    let name = "load_connections::both_ways_of_pacing_are_named";
    suite.case(name, &[], without_pace);
    let name = "load_connections::a_port_alone_is_one_of_every_address";
    suite.case(name, &[], ports_alone);
    suite.case(
        "load_connections::a_port_that_is_taken_is_refused",
        &[],
        taken,
    );
    suite.case(
        "load_connections::too_few_descriptors_are_refused",
        &[],
        descriptors,
    );
}

/// Both ways of pacing are named where one is missing.
fn without_pace() -> Result<()> {
    for test in [["tcp", "rr"], ["tcp", "crr"], ["udp", "rr"]] {
        let words = [&["load"], &test[..], &["127.0.0.1:1"]].concat();
        let said = hopscope(&words)?.expect_code(2)?.stderr;
        let names = |option: &&str| said.contains(option);
        anyhow::ensure!(["--rate", "--closed"].iter().all(names), "{said}");
    }
    Ok(())
}

/// A port alone is one of every address, wherever something listens.
fn ports_alone() -> Result<()> {
    let mut child = Command::new(hopscope_bin())
        .args(["load", "tcp", "serve", "--listen", ":0"])
        .args(["--until-stdin-ends", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let out = child.stdout.take().context("a pipe")?;
    BufReader::new(out).read_line(&mut line)?;
    let ready: serde_json::Value = serde_json::from_str(&line)?;
    let port = ready["listen"]
        .as_str()
        .and_then(|at| at.rsplit(':').next());
    let here = format!("127.0.0.1:{}", port.context("no port")?);
    let run = hopscope(&["load", "tcp", "rr", &here, "--closed", "-c", "10"])?;
    drop(child.stdin.take());
    child.wait()?;
    run.expect_code(0)?;
    Ok(())
}

fn refused() -> Result<()> {
    // A port that was free a moment ago: the kernel does not give it out again so soon.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let nobody = listener.local_addr()?.to_string();
    drop(listener);
    let server = Own::start(&[])?;
    let [here, _] = server.addresses();
    let hdr = "/nonexistent/latency.hlog";
    for (arguments, words) in [
        (vec!["rr", &nobody, "--closed"], vec!["refused", &nobody]),
        (vec!["crr", &nobody, "--closed"], vec!["refused", &nobody]),
        (vec!["echo", &nobody], vec!["refused", &nobody]),
        (vec!["stream", &nobody], vec!["refused", &nobody]),
        (vec!["rr", "127.0.0.1", "--closed"], vec!["HOST:PORT"]),
        (vec!["rr", here, "--rate", "5000M"], vec!["cannot be paced"]),
        (
            vec!["rr", here, "--closed", "--source", "192.0.2.1"],
            vec!["192.0.2.1"],
        ),
        (
            vec!["rr", here, "--closed", "--source", "::1"],
            vec!["address family"],
        ),
        (
            vec!["rr", here, "--closed", "--hdr", hdr],
            vec![hdr, "No such file"],
        ),
        (
            vec!["rr", here, "--closed", "--server-stats", &nobody],
            vec!["counts", "refused"],
        ),
    ] {
        let line = arguments.join(" ");
        let out = hopscope(&[&["load", "tcp"], &arguments[..]].concat())?;
        out.expect_refusal(&words).with_context(|| line)?;
    }
    Ok(())
}

/// Also when both would share it: half of the connections would go astray.
fn taken() -> Result<()> {
    let server = Own::start(&[])?;
    let other = TcpListener::bind("127.0.0.1:0")?;
    for address in [server.addresses()[0], &other.local_addr()?.to_string()] {
        hopscope(&[
            "load",
            "tcp",
            "serve",
            "--until-stdin-ends",
            "--listen",
            address,
        ])?
        .expect_refusal(&["cannot listen", address, "another program"])?;
    }
    Ok(())
}

fn descriptors() -> Result<()> {
    let server = Own::start(&[])?;
    let line = format!(
        "ulimit -n 500; exec {} load tcp rr {} --closed -n 1000 -c 1000",
        hopscope_bin().display(),
        server.addresses()[0]
    );
    let out = command::run(Command::new("sh").args(["-c", &line]))?;
    out.expect_refusal(&["1032 file descriptors", "at most 500"])?;
    Ok(())
}
