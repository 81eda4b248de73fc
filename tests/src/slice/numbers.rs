//! What a time says is true of its packet: whatever regions are asked for, whoever looked at the data before they
//! were read, and whether or not the sending side could be followed.
use super::live::{Live, Said};
use super::losses::{ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{compile_c, scratch};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

fn has_flag(packet: &Value, flag: &str) -> bool {
    let flags = packet["flags"].as_array();
    flags.is_some_and(|flags| flags.iter().any(|f| f == flag))
}

/// Over a connection of its own: so many bytes there, and one back.
fn exchange(port: u16, bytes: usize) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let reader = std::thread::spawn(move || -> Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut left = bytes;
        let mut room = vec![0; 1 << 16];
        while left > 0 {
            let read = stream.read(&mut room)?;
            ensure!(read > 0, "{left} bytes are missing");
            left -= read;
        }
        Ok(stream.write_all(b"!")?)
    });
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(&vec![7; bytes])?;
    stream.read_exact(&mut [0])?;
    reader.join().ok().context("the reader")?
}

/// Regions without the points at which records begin and end.
pub(super) fn regions_of_a_file() -> Result<()> {
    namespace()?;
    for (at, (name, line)) in [
        ("wire", "wire = tx_driver .. rx_core"),
        ("queue", "queue = tx_transport .. tx_dev_queue"),
        ("stack", "stack = rx_core .. rx_transport"),
    ]
    .into_iter()
    .enumerate()
    {
        // The folder is emptied when the slicer begins.
        let file = scratch().with_extension("conf");
        std::fs::write(&file, line)?;
        let port = 7720 + at as u16;
        let filter = format!("tcp port {port}");
        let live = Live::start(&["--regions", file.to_str().context("a path")?, &filter])?;
        exchange(port, 100)?;
        let said = live.stop()?;
        said.expect_adds_up()?;
        let has_region = |packet: &&Value| packet["regions"][name].is_object();
        let whole = said.packets.iter().filter(has_region).count();
        let dropped = said.packets.iter().filter(|p| has_flag(p, "dropped"));
        ensure!(
            whole > 0 && dropped.count() == 0 && said.counter("stale_ended")? == 0,
            "{line}: {whole} with it: {}",
            said.summary
        );
    }
    Ok(())
}

fn arrivals(what: &str, port: u16) -> Result<(Said, u64)> {
    namespace()?;
    let program = compile_c(&["slice/arrivals.c"], &["-O2", "-Wall"])?;
    let live = Live::start(&[&format!("tcp dst port {port}")])?;
    let out = command(Command::new(program).args([what, &port.to_string()]))?.expect_code(0)?;
    Ok((live.stop()?, out.stdout.trim().parse()?))
}

fn of_length(said: &Said, length: u64) -> Vec<&Value> {
    let of_length = said.packets.iter().filter(|p| p["length"] == length);
    of_length.collect()
}

/// When its copy began.
fn copied_ns(packet: &Value) -> Result<u64> {
    let mut at = packet["monotonic_ns"].as_u64().context("no time")?;
    for slice in packet["slices"].as_array().context("no slices")? {
        if slice["from"] == "rx_copy" {
            return Ok(at);
        }
        at += slice["raw_ns"].as_u64().context("no time")?;
    }
    anyhow::bail!("no copy: {packet}")
}

/// The copy that counts is the reader's.
pub(super) fn peeked() -> Result<()> {
    let (said, read_ns) = arrivals("peek", 7724)?;
    let [packet] = of_length(&said, 64)[..] else {
        anyhow::bail!("not one packet: {:?}", said.packets);
    };
    let copied_ns = copied_ns(packet)?;
    ensure!(
        copied_ns >= read_ns,
        "copied {} ns before it was read: {packet}",
        read_ns - copied_ns
    );
    ensure!(
        has_flag(packet, "peeked") && said.counter("peeked")? == 1,
        "{packet}"
    );
    Ok(())
}

/// Data that came before anybody waited for them, on a connection between two ends of this program.
pub(super) fn unread() -> Result<()> {
    namespace()?;
    let listener = TcpListener::bind(("127.0.0.1", 7727))?;
    let live = Live::start(&["tcp dst port 7727"])?;
    let mut sender = TcpStream::connect(("127.0.0.1", 7727))?;
    let (mut reader, _) = listener.accept()?;
    sender.write_all(&[7; 100])?;
    reader.read_exact(&mut [0; 100])?;
    let said = live.stop()?;
    let [packet] = of_length(&said, 100)[..] else {
        anyhow::bail!("not one packet: {:?}", said.packets);
    };
    let slices = packet["slices"].as_array().context("no slices")?;
    let from_socket = slices.iter().find(|slice| slice["from"] == "rx_socket");
    let name = from_socket.and_then(|slice| slice["region"].as_str());
    ensure!(name == Some("rx.unread"), "{packet}");
    Ok(())
}

/// What waits in TCP for bytes before its own says so, and what came late, too.
pub(super) fn unordered() -> Result<()> {
    let (said, _) = arrivals("gap", 7725)?;
    let (late, early) = (of_length(&said, 100), of_length(&said, 200));
    let waited = early.iter().filter(|p| has_flag(p, "ofo-queue"));
    let came_late = late.iter().filter(|p| has_flag(p, "reordered"));
    ensure!(
        waited.count() == 1 && came_late.count() == 1,
        "{late:?} {early:?}"
    );
    ensure!(
        said.counter("ofo_queued")? == 1 && said.counter("reordered")? == 1,
        "{}",
        said.summary
    );
    Ok(())
}

/// Segments that software GSO cuts from packets in a full queue are known by their senders; the whole of those that
/// are not is "or longer", and in no distribution.
pub(super) fn full_queue() -> Result<()> {
    const BYTES: usize = 1_500_000;
    namespace()?;
    ip("link set lo mtu 1500")?;
    let arguments = "qdisc add dev lo root tbf rate 100mbit burst 10k limit 4m";
    let out = command(Command::new("tc").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "tc {arguments}: {}", out.stderr);
    let live = Live::start(&["tcp dst port 7726"])?;
    exchange(7726, BYTES)?;
    let said = live.stop()?;
    let begins_late = |packet: &&Value| {
        let first = &packet["slices"][0]["from"];
        first.as_str().is_some_and(|from| from.starts_with("rx_"))
    };
    let data: Vec<&Value> = said.packets.iter().filter(|p| p["length"] != 0).collect();
    let late = said.packets.iter().filter(begins_late).count();
    let flagged = said.packets.iter().filter(|p| has_flag(p, "tx-unseen"));
    let flagged = flagged.count();
    ensure!(flagged == late, "{late} begin late, {flagged} say so");
    ensure!(
        data.len() > BYTES / 1448 / 2 && late * 10 < data.len(),
        "of {} packets {late} without their senders: {}",
        data.len(),
        said.summary
    );
    let of_wholes = &said.summary["whole"];
    ensure!(
        of_wholes["head_unseen"] == late
            && of_wholes["count"].as_u64() <= Some((said.packets.len() - late) as u64),
        "{of_wholes}"
    );
    Ok(())
}
