//! What `vnet serve` cannot have: one clear line, and code 2.
use super::dpdk::BackEnd;
use super::network;
use anyhow::{Result, ensure};
use hopscope_tests::{command, hopscope, hopscope_bin};
use std::os::unix::net::UnixStream;
use std::process::Command;

pub(super) fn run() -> Result<()> {
    network::namespace()?;
    network::cable("near", "far")?;
    let dir = network::Place::new()?;
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let (socket, file, left) = (path("vnet.sock"), path("file"), path("left.sock"));
    std::fs::write(&file, "not to be lost")?;
    // As after a kill: the name is there, and nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&left)?);
    let back_end = BackEnd::start(socket.as_ref(), &["--veth=near"])?;
    // Two front ends: the second is told by the end of its connection.
    let _first = UnixStream::connect(&socket)?;
    let mut second = UnixStream::connect(&socket)?;
    let ended = std::io::Read::read(&mut second, &mut [0; 1])?;
    ensure!(ended == 0, "a second front end is served");
    for (arguments, word) in [
        (&["--socket", &socket, "--veth=far"][..], "is in use"),
        (&["--socket", &file, "--veth=far"], "is not a socket"),
        (
            &["--socket", "/nowhere/s", "--veth=far"],
            "cannot listen on /nowhere/s",
        ),
        (
            &["--socket", &left, "--veth=nothing"],
            "no network device named nothing",
        ),
        (&["--socket", &left, "--tap=far"], "a device has it already"),
        (
            &["--socket", &left, "--tap=sixteen-letters-"],
            "no network device can be named sixteen-letters-",
        ),
        (&["--socket", &left, "--tap=t%d"], "can be named t%d"),
        (
            &["--socket", &left, "--tap=t", "--user=none-such"],
            "there is no user none-such",
        ),
        (
            &["--socket", &left, "--veth=far", "--netns=none"],
            "--netns none",
        ),
        (
            &["--socket", &left, "--veth=far", "--queues=2"],
            "--queues is for --tap",
        ),
        (
            &["--socket", &left, "--veth=far", "--tap=t"],
            "cannot be used with",
        ),
        (&["--socket", &left], "--tap <NAME>"),
        (
            &["--socket", &left, "--veth=far", "--tx-call-policy=soon"],
            "event-idx",
        ),
        (
            &["--socket", &left, "--veth=far", "--kick-policy=defer:0:5"],
            "1 to 1024 entries",
        ),
        (
            &[
                "--socket",
                &left,
                "--veth=far",
                "--kick-policy=defer:8:20000",
            ],
            "10000 microseconds",
        ),
    ] {
        let out = hopscope(&[&["vnet", "serve"], arguments].concat())?.expect_code(2)?;
        ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
        ensure!(out.stdout.is_empty(), "{arguments:?}: {}", out.stdout);
    }
    without_rights(
        &["--socket", &left, "--tap=t"],
        "making the TAP device of t needs",
    )?;
    without_rights(&["--socket", &left, "--veth=far"], "CAP_NET_RAW")?;
    without_rights(
        &["--socket", &left, "--discard", "--user=nobody"],
        "cannot run as nobody",
    )?;
    let summary = back_end.stop()?;
    // And the one that asked whether anybody listens there.
    ensure!(
        summary["turned_away"] == 2 && summary["connections"] == 1,
        "{summary}"
    );
    ensure!(
        std::fs::read(&file)? == b"not to be lost",
        "a file was overwritten"
    );
    ensure!(
        !std::path::Path::new(&socket).exists(),
        "the socket is left behind"
    );
    // One that a killed back end left is taken over.
    BackEnd::start(left.as_ref(), &["--veth=far"])?.stop()?;
    Ok(())
}

/// As root without any capability: what it is started with is all that it lacks.
fn without_rights(arguments: &[&str], word: &str) -> Result<()> {
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-all"]);
    command.arg(hopscope_bin()).args(["vnet", "serve"]);
    let out = command::run(command.args(arguments))?.expect_code(2)?;
    ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
    ensure!(out.stderr.lines().count() == 1, "{}", out.stderr);
    Ok(())
}
