//! What `vnet drive` cannot have, and what ends it: one clear line, and code 2.
use super::{drive, fake, summary};
use crate::vnet::{dpdk::BackEnd, network};
use anyhow::{Result, ensure};
use hopscope_tests::{Target, hopscope};
use nix::sys::signal::Signal;
use std::time::Duration;

/// For a front end that has nothing to wait for.
const PATIENCE: Duration = Duration::from_secs(60);
const VERSION_1: u64 = 1 << 32;

pub(super) fn run() -> Result<()> {
    let dir = network::Place::new()?;
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let (none, listening) = (path("none"), path("listening"));
    let _listening = std::os::unix::net::UnixListener::bind(&listening)?;
    for (arguments, word) in [
        (&["--socket", &none][..], "start a back end there first"),
        (
            &["--socket", &none, "--ring=1000"],
            "a ring of 1000 entries",
        ),
        (&["--socket", &none, "--ring=1"], "a ring of 1 entries"),
        (&["--socket", &none, "--size=59"], "frames of 59 bytes"),
        (
            &["--socket", &none, "--size=1515"],
            "60 to 1514 can be sent",
        ),
        (&["--socket", &none, "--size=90-80"], "frames of 80 bytes"),
        (&["--socket", &none, "--size=big"], "BYTES or MIN-MAX"),
        (&["--socket", &none, "--rate=0"], "or saturate"),
        (&["--socket", &none, "--spin=soon"], "or always"),
        (
            &["--socket", &none, "--arm=last"],
            "first or three-quarters",
        ),
        (&["--socket", &none, "--kick-policy=tam:0"], "limit of 0"),
        (&["--socket", &none, "--duration=0"], "--duration 0"),
        (
            &["--socket", &none, "--sink", "--rate=5"],
            "cannot be used with",
        ),
        (&["--socket", &none, "--netns=x"], "--tap"),
        (&["--socket", &listening, "--listen"], "cannot listen on"),
        (&["--socket", &none, "--tap=lo"], "a device has it already"),
    ] {
        let out = hopscope(&[&["vnet", "drive"], arguments].concat())?.expect_code(2)?;
        ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
        ensure!(out.stdout.is_empty(), "{arguments:?}: {}", out.stdout);
    }
    for (name, features, answer_as, word) in [
        ("old", 0, None, "does not offer VIRTIO_F_VERSION_1"),
        ("split", VERSION_1, None, "leave --packed out"),
        (
            "liar",
            VERSION_1,
            Some(2),
            "message 1 was answered by 8 bytes for 2",
        ),
    ] {
        let back_end = fake::start(&dir.join(name), features, answer_as)?;
        let out = hopscope(&["vnet", "drive", "--packed", "--socket", &path(name)])?;
        out.expect_refusal(&[word])?;
        ensure!(back_end.join().is_ok_and(|ended| ended.is_ok()), "{name}");
    }
    Ok(())
}

/// The back end is killed while a front end sends as fast as it can, and while one has nothing to send.
pub(super) fn killed() -> Result<()> {
    let dir = network::Place::new()?;
    for (n, work) in ["--rate=saturate", "--sink"].into_iter().enumerate() {
        let (socket, ready) = (dir.join(&format!("{n}")), dir.join(&format!("{n}.ready")));
        let back_end = BackEnd::start(&socket, &["--discard"])?;
        let mut command = drive(&socket, &[work]);
        command.arg("--ready-file").arg(&ready);
        let mut front = Target::spawn_with_ready_file(&mut command, &ready)?;
        back_end.signal(Signal::SIGKILL)?;
        front.wait_at_most(PATIENCE)?;
        let out = front.output()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure!(
            out.status.code() == Some(2),
            "{work}: {}: {said}",
            out.status
        );
        ensure!(
            said.lines().count() == 1 && said.contains("the back end disconnected"),
            "{work}: {said}"
        );
    }
    Ok(())
}

/// A back end that connects, to one front end after another.
pub(super) fn waits() -> Result<()> {
    let dir = network::Place::new()?;
    let (socket, ready) = (dir.join("vnet.sock"), dir.join("front"));
    let back_end = BackEnd::start(&dir.join("vnet.sock"), &["--discard", "--client"])?;
    for packed in [&[][..], &["--packed"]] {
        let mut command = drive(
            &socket,
            &[&["--listen", "--count=100"][..], packed].concat(),
        );
        command.arg("--ready-file").arg(&ready);
        let summary = summary(Target::spawn_with_ready_file(&mut command, &ready)?)?;
        ensure!(summary["sent"] == 100, "{summary}");
        ensure!(!socket.exists(), "the socket is left behind");
    }
    let back = back_end.stop()?;
    ensure!(back["connections"] == 2, "{back}");
    ensure!(back["pairs"][0]["tx"]["packets"] == 200, "{back}");
    // Nobody comes.
    let mut command = drive(&socket, &["--listen"]);
    command.arg("--ready-file").arg(&ready);
    let front = Target::spawn_with_ready_file(&mut command, &ready)?;
    front.signal(Signal::SIGTERM)?;
    let out = front.output()?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure!(out.status.code() == Some(2), "{}: {said}", out.status);
    ensure!(said.contains("before a back end connected"), "{said}");
    ensure!(!socket.exists(), "the socket is left behind");
    Ok(())
}
