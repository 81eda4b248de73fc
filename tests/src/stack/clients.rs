//! The client in the stack, against servers over the kernel's TCP.
use super::cable::{KERNEL, KERNEL_V6, Way, files, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope, hopscope_bin};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns};
    for way in [Way::Packet, Way::PacketWhole, Way::Xdp, Way::Tap] {
        let name = format!("stack::connect_gets_every_byte_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || every_byte(way));
    }
    suite.case("stack::connect_says_that_it_ended_early", &[Netns], early);
    suite.case("stack::connect_says_why_not", &[Netns], refused);
}

/// `hopscope load tcp serve`, on every address of the kernel.
pub(super) fn server(service: &str, port: u16) -> Result<Target> {
    let ready = files().join(format!("ready-{service}"));
    let listen = format!(":{port}");
    let mut command = Command::new(hopscope_bin());
    command
        .args([
            "load",
            "tcp",
            "serve",
            "--json",
            "--seed",
            "1",
            "--service",
            service,
        ])
        .args(["--listen", &listen, "--ready-file"])
        .arg(&ready)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Target::spawn_with_ready_file(&mut command, &ready)
}

/// Ends a server; its summary.
pub(super) fn ended(server: Target) -> Result<Value> {
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    let out = String::from_utf8(server.output()?.stdout)?;
    let last = out.lines().last().context("no line")?;
    Ok(serde_json::from_str(last)?)
}

pub(super) fn connect(way: Way, target: &str, arguments: &[&str], code: i32) -> Result<Value> {
    let words = [
        &["stack", "connect", target, "--json"],
        &way.arguments()[..],
        arguments,
    ]
    .concat();
    let out = hopscope(&words)?.expect_code(code)?;
    let last = out.stdout.lines().last().context("no line")?;
    Ok(serde_json::from_str(last)?)
}

fn every_byte(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let requests = counts().pick("1000", "50000");
    let bytes = counts().pick("10M", "1G");
    let size = counts().pick(10u64 << 20, 1 << 30);
    let echo = server("echo", 7)?;
    for host in [KERNEL.to_owned(), format!("[{KERNEL_V6}]")] {
        let target = format!("{host}:7");
        for more in [
            &["-n", "1"][..],
            &["-n", "20"],
            &["-n", "4", "--size", "50000"],
        ] {
            let more = [&["-c", requests], more].concat();
            let summary = connect(way, &target, &more, 0)?;
            ensure!(summary["answered"] == requests.parse::<u64>()?, "{summary}");
            ensure!(
                summary["corrupt"] == 0 && summary["failed"] == 0,
                "{summary}"
            );
        }
    }
    ended(echo)?;
    let sink = server("sink", 9)?;
    let target = format!("{KERNEL}:9");
    let summary = connect(way, &target, &["--app=discard", "--bytes", bytes], 0)?;
    ensure!(summary["bytes_sent"] == size, "{summary}");
    let said = ended(sink)?;
    ensure!(
        said["counts"]["bytes_received"] == size && said["counts"]["corrupt"] == 0,
        "{said}"
    );
    let source = server("source", 19)?;
    let target = format!("{KERNEL}:19");
    let summary = connect(way, &target, &["--app=chargen", "--bytes", bytes], 0)?;
    ensure!(
        summary["bytes_received"] == size && summary["corrupt"] == 0,
        "{summary}"
    );
    ended(source)?;
    Ok(())
}

/// A server that closes before all is there is no reset, and says how far it came.
fn early() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let server = TcpListener::bind((KERNEL, 80))?;
    let serving = std::thread::spawn(move || -> Result<()> {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
            "HTTP/1.1 200",
            "part of an echo",
        ] {
            let (mut stream, _) = server.accept()?;
            // All of it: unread bytes would make the close a reset.
            let mut request = [0; 1_000];
            let _ = stream.read(&mut request)?;
            stream.write_all(text.as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            let _ = stream.read(&mut request)?;
        }
        Ok(())
    });
    let target = format!("{KERNEL}:80");
    for (more, expected) in [
        (
            &["--app=http"][..],
            "closed the connection after 4 bytes of 10",
        ),
        (&["--app=http"], "closed the connection before the response"),
        (
            &["--app=echo"],
            "closed the connection after 15 bytes of 64",
        ),
    ] {
        let summary = connect(Way::Packet, &target, more, 1)?;
        let said = summary["error"].as_str().context("no error")?;
        ensure!(said.contains(expected), "{said}");
    }
    serving.join().expect("no panic")
}

fn refused() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let target = format!("{KERNEL}:7");
    let summary = connect(Way::Packet, &target, &[], 1)?;
    ensure!(
        summary["connected"] == 0 && summary["failed"] == 1,
        "{summary}"
    );
    let said = summary["error"].as_str().context("no error")?;
    ensure!(said.contains("refused"), "{said}");
    // Nobody has this address: no neighbour answers.
    let summary = connect(Way::Packet, "10.0.0.77:7", &["--timeout=10s"], 1)?;
    let said = summary["error"].as_str().context("no error")?;
    ensure!(said.contains("unreachable"), "{said}");
    let words = [
        &["stack", "connect", "10.0.0.2:7"],
        &Way::Packet.arguments()[..],
    ]
    .concat();
    let out = hopscope(&words)?.expect_code(2)?;
    ensure!(out.stderr.contains("own address"), "{}", out.stderr);
    // No route leads there.
    let words = [
        &["stack", "connect", "192.0.2.1:7"],
        &Way::Packet.arguments()[..],
    ]
    .concat();
    let out = hopscope(&words)?.expect_code(2)?;
    ensure!(out.stderr.contains("network unreachable"), "{}", out.stderr);
    Ok(())
}
