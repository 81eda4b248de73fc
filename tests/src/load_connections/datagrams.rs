//! Datagrams may be lost, doubled or changed on the way: each is counted as what became of it.
use super::{balance, number};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope};
use serde_json::Value;
use std::net::UdpSocket;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_connections::datagrams_are_named_for_what_became_of_them",
        &[],
        named,
    );
    suite.case(
        "load_connections::datagrams_are_counted_alike",
        &[],
        counted_alike,
    );
    suite.case(
        "load_connections::pings_are_answered",
        &[Requirement::Root],
        pings,
    );
}

fn summary(arguments: &[&str], code: i32) -> Result<Value> {
    let words = [&["load"], arguments, &["--json"]].concat();
    let out = hopscope(&words)?.expect_code(code)?;
    let summary = serde_json::from_str(out.stdout.lines().last().context("no line")?)?;
    balance(&summary)?;
    Ok(summary)
}

const ASKED: usize = 84;

/// Echoes, but for every seventh datagram (never), every eleventh (twice) and every thirteenth
/// (with a byte changed). One that is none of the others' is answered as it came.
fn unreliable(socket: &UdpSocket) -> Result<[u64; 3]> {
    let (mut lost, mut doubled, mut changed) = (0, 0, 0);
    let mut buffer = [0; 2048];
    for n in 1..=ASKED {
        let (len, from) = socket.recv_from(&mut buffer)?;
        if n % 7 == 0 {
            lost += 1;
            continue;
        }
        if n % 13 == 0 {
            buffer[len - 1] ^= 1;
            changed += 1;
        }
        socket.send_to(&buffer[..len], from)?;
        if n % 11 == 0 && n % 13 != 0 {
            socket.send_to(&buffer[..len], from)?;
            doubled += 1;
        }
    }
    Ok([lost, doubled, changed])
}

fn named() -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?.to_string();
    let server = std::thread::spawn(move || unreliable(&socket));
    let count = ASKED.to_string();
    let words = ["udp", "rr", &address, "--closed", "-c", &count];
    let summary = summary(&[&words[..], &["--timeout", "300ms"]].concat(), 1)?;
    let [lost, doubled, changed] = server.join().expect("no panic")?;
    let found = ["/failed", "/duplicate", "/corrupt"].map(|field| number(&summary, field));
    let [failed, duplicate, corrupt] = found;
    ensure!(
        (failed?, duplicate?, corrupt?) == (lost, doubled, changed),
        "{lost} lost, {doubled} doubled, {changed} changed: {summary}"
    );
    Ok(())
}

fn counted_alike() -> Result<()> {
    let summary = summary(&["udp", "rr", "--serve-here", "--closed", "-c", "2000"], 0)?;
    let (done, failed) = (number(&summary, "/done")?, number(&summary, "/failed")?);
    let served = number(&summary, "/server/counts/datagrams")?;
    ensure!(done > 0 && done + failed == 2000, "{summary}");
    ensure!((done..=2000).contains(&served), "{summary}");
    Ok(())
}

fn pings() -> Result<()> {
    for address in ["127.0.0.1", "::1"] {
        let summary = summary(&["ping", address, "-c", "20", "-i", "1ms"], 0)?;
        ensure!(number(&summary, "/done")? == 20, "{address}: {summary}");
    }
    Ok(())
}
