//! A control socket that cannot be had, and requests that cannot be done: one clear line each.
use super::super::dpdk::BackEnd;
use super::super::network;
use super::Client;
use anyhow::{Context, Result, ensure};
use hopscope_tests::hopscope;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

pub(super) fn run() -> Result<()> {
    network::namespace()?;
    network::cable("near", "far")?;
    let dir = network::Place::new()?;
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let (socket, control, file) = (path("s"), path("s.control"), path("file"));
    std::fs::write(&file, "not to be lost")?;
    // As after a kill.
    drop(std::os::unix::net::UnixListener::bind(&control)?);
    let back_end = BackEnd::start(socket.as_ref(), &["--veth=near", "--kick-policy=flags"])?;
    let mode = std::fs::metadata(&control)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "mode {mode:o}");
    let long = format!("/{}", "x".repeat(120));
    for (arguments, word) in [
        (["--control", control.as_str()], "is in use"),
        (["--control", &file], "is not a socket"),
        (["--control", &long], "too long"),
        (["--control", "/nowhere/c"], "/nowhere/c"),
    ] {
        let other = path("other");
        let serve = ["vnet", "serve", "--veth=far", "--socket", &other];
        let out = hopscope(&[&serve[..], &arguments].concat())?.expect_code(2)?;
        ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
    }
    for (arguments, word) in [
        (&["set", "--tx-call-policy=soon"][..], "event-idx"),
        (
            &["set", "--kick-policy=event-idx"],
            "at the start of vnet serve",
        ),
        (&["set", "--tx-call-policy=plain", "--queue=1"], "no pair 1"),
        (&["set"], "required"),
        (&["stat", "--explain"], "no policies in shadow mode"),
        (&["stat", "-c", "3"], "--interval"),
    ] {
        let words = [&["vnet"], arguments, &["--socket", &socket]].concat();
        let out = hopscope(&words)?.expect_code(2)?;
        ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
    }
    let none = hopscope(&["vnet", "stat", "--socket", &path("none")])?.expect_code(2)?;
    ensure!(
        none.stderr.contains("no vnet serve takes requests there"),
        "{}",
        none.stderr
    );
    let mut client = Client::new(control.as_ref())?;
    // Sixteen names are kept, and the one at work.
    let mut refused = None;
    for n in 1..=20 {
        let answer = client.ask(&json!({ "do": "set", "rx_call_policy": format!("tam:{n}") }))?;
        if let Some(error) = answer["error"].as_str() {
            refused = Some((n, error.to_owned()));
            break;
        }
    }
    // Nothing was at work while no front end was there, so nothing had to be kept.
    ensure!(refused.is_none(), "{refused:?}");
    let summary = back_end.stop()?;
    ensure!(summary["pairs"][0]["rx"]["policy"] == "tam:20", "{summary}");
    for left in [&socket, &control] {
        ensure!(
            !std::path::Path::new(left).exists(),
            "{left} is left behind"
        );
    }
    ensure!(
        std::fs::read(&file).context("file")? == b"not to be lost",
        "a file was overwritten"
    );
    let silent = BackEnd::start(socket.as_ref(), &["--veth=near", "--no-control"])?;
    ensure!(!std::path::Path::new(&control).exists(), "--no-control");
    silent.stop()?;
    Ok(())
}
