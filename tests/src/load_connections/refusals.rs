//! What cannot be run is refused in one line before anything is sent.
use super::counts::Own;
use anyhow::{Context, Result};
use hopscope_tests::{Suite, command, hopscope, hopscope_bin};
use std::net::TcpListener;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_connections::what_cannot_be_run_is_refused",
        &[],
        refused,
    );
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
