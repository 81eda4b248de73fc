//! Programs over UDP on either stack: dnsmasq and dig, iperf3, a server on every address.
use super::running::{frames, kernel_has_no_datagrams};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Target, counts};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A real server of names at an address of the stack; dig of the kernel's and on the stack.
pub(super) fn names(on_either: impl Fn(bool, &[&str]) -> Command) -> Result<()> {
    let pid = files().join("dnsmasq-pid");
    let file = format!("--pid-file={}", pid.display());
    for (server_on_stack, address) in [(true, STACK), (false, KERNEL)] {
        let before = frames()?;
        let _ = std::fs::remove_file(&pid);
        let listen = format!("--listen-address={address}");
        let server = [
            "dnsmasq",
            "--keep-in-foreground",
            "--no-resolv",
            "--no-hosts",
            "--conf-file=/dev/null",
            "--user=root",
            "--bind-interfaces",
            "--address=/name.test/192.0.2.7",
            &file,
            &listen,
        ];
        let mut command = on_either(server_on_stack, &server);
        command.stdin(Stdio::null());
        let target = Target::spawn_with_ready_file(&mut command, &pid)?;
        if server_on_stack {
            kernel_has_no_datagrams(53)?;
        }
        let at = format!("@{address}");
        let client = ["dig", &at, "name.test", "+short", "+tries=1", "+time=20"];
        let out = run(&mut on_either(!server_on_stack, &client))?;
        ensure!(
            out.stdout.trim() == "192.0.2.7",
            "{:?} {}",
            out.stdout,
            out.stderr
        );
        // The question, or the answer.
        ensure!(frames()? > before, "not over the cable");
        drop(target);
    }
    Ok(())
}

/// Both ends, both ways: the program itself counts what is lost and out of order.
pub(super) fn iperf(on_either: impl Fn(bool, &[&str]) -> Command) -> Result<()> {
    let before = frames()?;
    let time = counts().pick("1", "10");
    let pid = files().join("iperf-pid");
    let file = pid.to_str().context("path")?;
    for (server_on_stack, address) in [(true, STACK), (false, KERNEL)] {
        let server = ["iperf3", "-s", "-1", "-B", address, "-I", file];
        for reverse in [&[][..], &["-R"]] {
            let mut command = on_either(server_on_stack, &server);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let server = Target::spawn_with_ready_file(&mut command, &pid)?;
            let client = [
                &[
                    "iperf3", "-c", address, "-u", "-b", "20M", "-l", "1400", "-t", time, "--json",
                ],
                reverse,
            ]
            .concat();
            // It has its file before it listens.
            let out = loop {
                let out = run(&mut on_either(!server_on_stack, &client))?;
                if !out.stdout.contains("Connection refused") {
                    break out;
                }
            };
            ensure!(
                out.code == Some(0),
                "{client:?}: {}{}",
                out.stdout,
                out.stderr
            );
            let status = server.wait()?;
            ensure!(status.success(), "the server: {status}");
            let summary: serde_json::Value = serde_json::from_str(&out.stdout)?;
            let sum = &summary["end"]["sum"];
            let packets = sum["packets"].as_u64().context("no packets")?;
            let lost = sum["lost_packets"].as_u64().context("no losses")?;
            ensure!(packets > 1_000 && lost * 20 < packets, "{client:?}: {sum}");
        }
    }
    ensure!(frames()? > before + 3_000, "not over the cable");
    Ok(())
}

/// A server on every address is asked over the cable and over loopback, and told to end: each answer comes from where the question went.
pub(super) fn ask_everywhere(how: &str) -> Result<()> {
    let client = UdpSocket::bind("0.0.0.0:0")?;
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    let before = frames()?;
    let mut over_cable = Vec::new();
    for address in [STACK, "127.0.0.1", STACK, "127.0.0.1", STACK] {
        let ends = over_cable.len() == 4;
        let text = if ends { &b"over"[..] } else { b"question" };
        client.send_to(text, (address, 7))?;
        let mut back = [0; 100];
        let (len, from) = client
            .recv_from(&mut back)
            .with_context(|| format!("{how}: {address}"))?;
        ensure!(&back[..len] == text, "{how}: {address}: {len} bytes");
        ensure!(from.ip().to_string() == address, "{how}: {from}");
        over_cable.push(frames()? - before);
    }
    ensure!(
        over_cable[0] > 0 && over_cable[1] == over_cable[0] && over_cable[2] > over_cable[1],
        "{over_cable:?}"
    );
    Ok(())
}
