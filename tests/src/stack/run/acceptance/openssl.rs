//! openssl s_server and s_client: some megabytes each way at the same time, and pages that name the connection.
use super::super::running::kernel_has_none;
use super::super::tools::body;
use super::certificate::certificate;
use super::side::{Mode, Side, on_the_kernel};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Openssl};
    for mode in Mode::BOTH {
        for (end, is_server) in [("serves_with", true), ("connects_with", false)] {
            for (version, option) in [("12", "-tls1_2"), ("13", "-tls1_3")] {
                let name = format!("{}_{end}_openssl_tls{version}", mode.prefix());
                suite.case(name, &[Netns, Openssl], move || {
                    both_ways(mode, is_server, option)
                });
            }
        }
        let name = format!("{}_serves_pages_of_openssl", mode.prefix());
        suite.case(name, &[Netns, Openssl, Curl], move || pages(mode));
    }
}

const PORT: &str = "4433";

fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped())
}

/// A client that is connected: its first byte has come. It is started again until the server listens.
fn connected(start: impl Fn() -> Result<Target>, said: &Path) -> Result<(Target, u8)> {
    loop {
        let mut client = start()?;
        let mut first = [0];
        let output = client.child().stdout.as_mut().context("piped")?;
        if output.read(&mut first)? == 1 {
            return Ok((client, first[0]));
        }
        client.wait()?;
        let said = std::fs::read_to_string(said)?;
        ensure!(said.contains("errno=111"), "{said}");
    }
}

/// Reads as much as was sent, while the other end's input is written.
fn exchange(client: &mut Child, first: u8, server: &mut Child, sent: &[u8]) -> Result<()> {
    let mut to_client = server.stdout.take().context("piped")?;
    let mut from_server = client.stdout.take().context("piped")?;
    let input = client.stdin.as_mut().context("piped")?;
    std::thread::scope(|scope| {
        let there = scope.spawn(move || -> Result<Vec<u8>> {
            let mut got = vec![0; sent.len()];
            to_client.read_exact(&mut got)?;
            Ok(got)
        });
        let back = scope.spawn(move || -> Result<Vec<u8>> {
            let mut got = vec![first; sent.len()];
            from_server.read_exact(&mut got[1..])?;
            Ok(got)
        });
        input.write_all(sent)?;
        for (way, got) in [("to the server", there), ("to the client", back)] {
            let got = got.join().ok().context("no panic")??;
            ensure!(got == sent, "bytes {way} differ");
        }
        Ok(())
    })
}

fn both_ways(mode: Mode, is_server: bool, version: &str) -> Result<()> {
    let side = Side::new(mode)?;
    let [certificate, key] = certificate()?;
    let sent = body(&files(), counts().pick(4_000_000, 200_000_000))?;
    let address = if is_server { STACK } else { KERNEL };
    let at = format!("{address}:{PORT}");
    let server = [
        "/usr/bin/openssl",
        "s_server",
        "-quiet",
        "-naccept",
        "1",
        "-accept",
        &at,
        "-cert",
        &certificate,
        "-key",
        &key,
        version,
    ];
    let client = [
        "/usr/bin/openssl",
        "s_client",
        "-quiet",
        "-nocommands",
        "-no_ign_eof",
        "-connect",
        &at,
        "-CAfile",
        &certificate,
        "-verify_return_error",
        version,
    ];
    let spawn = |words: &[&str], is_there: bool, said: &Path| -> Result<Target> {
        let mut command = if is_there {
            side.command(words)
        } else {
            on_the_kernel(words)
        };
        Target::spawn_now(piped(&mut command).stderr(File::create(said)?))
    };
    let (server_said, client_said) = (files().join("server-said"), files().join("client-said"));
    let mut server = spawn(&server, is_server, &server_said)?;
    // What it has for the client; the rest is written beside it. Its input stays open: at its end it would look for it all the time.
    let mut input = server.child().stdin.take().context("piped")?;
    let own = sent.clone();
    let writing = std::thread::spawn(move || input.write_all(&own).map(|()| input));
    let (mut client, first) = connected(|| spawn(&client, !is_server, &client_said), &client_said)?;
    if is_server {
        kernel_has_none(4433)?;
    }
    exchange(client.child(), first, server.child(), &sent)?;
    let input = writing.join().ok().context("no panic")??;
    // Its input ends, and with it the connection, and the server with its only one.
    drop(client.child().stdin.take());
    for (target, is_there, said) in [
        (client, !is_server, client_said),
        (server, is_server, server_said),
    ] {
        let status = target.wait()?;
        let said = std::fs::read_to_string(said)?;
        ensure!(status.success(), "{status}: {said}");
        if is_there {
            side.nothing_is_left(&said)?;
        }
    }
    drop(input);
    side.ends(100)
}

/// Each over a connection of its own, of either version.
fn pages(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let [certificate, key] = certificate()?;
    let at = format!("{STACK}:{PORT}");
    let program = [
        "/usr/bin/openssl",
        "s_server",
        "-www",
        "-naccept",
        "4",
        "-accept",
        &at,
        "-cert",
        &certificate,
        "-key",
        &key,
    ];
    let mut command = side.command(&program);
    command.stdout(Stdio::null());
    let server = side.spawns(&mut command, Target::spawn_now)?;
    for version in ["1.2", "1.3", "1.2", "1.3"] {
        let at = format!("https://{STACK}:{PORT}/");
        let out = run(Command::new("curl")
            .args([
                "-sS",
                "--max-time",
                "60",
                "--retry",
                "20",
                "--retry-connrefused",
            ])
            .args(["--cacert", &certificate, "--tls-max", version, &at]))?
        .expect_code(0)?;
        let protocol = format!("TLSv{version}");
        ensure!(out.stdout.contains(&protocol), "{protocol}: {}", out.stdout);
        kernel_has_none(4433)?;
    }
    side.ended(server, None)?;
    side.ends(20)
}
