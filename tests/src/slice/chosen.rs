//! A command's packets are all of its connections: those that nobody sends or reads, too, and no other's.
use super::live::Live;
use super::losses::namespace;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{hopscope, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const PORT: u16 = 7733;
/// Both ends have said and seen FIN before it ends.
const CLIENT: &str = "import socket\n\
    s = socket.create_connection(('127.0.0.1', 7733))\n\
    s.sendall(b'a question')\n\
    s.shutdown(socket.SHUT_WR)\n\
    while s.recv(100): pass\n";
const FIN: u64 = 0x01;
const SYN: u64 = 0x02;
const ACK: u64 = 0x10;

/// Answers one client, and is another's meanwhile.
fn serve(listener: &TcpListener) -> Result<u16> {
    let (mut client, address) = listener.accept()?;
    let mut other = TcpStream::connect(("127.0.0.1", PORT))?;
    let (mut accepted, _) = listener.accept()?;
    other.write_all(b"another's question")?;
    accepted.read_exact(&mut [0; 18])?;
    client.read_to_end(&mut Vec::new())?;
    client.write_all(b"an answer")?;
    Ok(address.port())
}

fn ports(packet: &Value) -> [Option<u64>; 2] {
    ["source_port", "destination_port"].map(|name| packet[name].as_u64())
}

fn flags(packet: &Value) -> u64 {
    packet["tcp"]["flags"].as_u64().unwrap_or_default()
}

/// SYN, its answer, bare acknowledgements, and a FIN of each end.
fn expect_whole(packets: &[Value], port: u16) -> Result<()> {
    let is_its = |packet: &Value| ports(packet).contains(&Some(u64::from(port)));
    ensure!(packets.iter().all(is_its), "another's: {packets:?}");
    let from: BTreeSet<(bool, u64)> = packets
        .iter()
        .map(|packet| (ports(packet)[0] == Some(port.into()), flags(packet)))
        .collect();
    let fins = from.iter().filter(|(_, flags)| flags & FIN != 0);
    let fins: BTreeSet<bool> = fins.map(|(is_client, _)| *is_client).collect();
    ensure!(
        from.contains(&(true, SYN))
            && from.contains(&(false, SYN | ACK))
            && from.contains(&(true, ACK))
            && fins.len() == 2,
        "{from:?}"
    );
    Ok(())
}

fn lines(text: &str) -> Result<Vec<Value>> {
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let mut lines = lines.with_context(|| text.to_owned())?;
    lines.pop().context("no summary")?;
    Ok(lines)
}

pub(super) fn of_a_command() -> Result<()> {
    namespace()?;
    let listener = TcpListener::bind(("127.0.0.1", PORT))?;
    let server = std::thread::spawn(move || serve(&listener));
    let words = ["-q", "slice", "--no-calibration", "--json", "tcp port 7733"];
    let command = ["--", "python3", "-c", CLIENT];
    let out = hopscope(&[&words[..], &command].concat())?.expect_code(0)?;
    let port = server.join().ok().context("the server")??;
    expect_whole(&lines(&out.stdout)?, port)
}

/// The same from a recording of all.
pub(super) fn of_a_recording() -> Result<()> {
    namespace()?;
    let file = scratch().with_extension("hop");
    let file = file.to_str().context("a path")?;
    let listener = TcpListener::bind(("127.0.0.1", PORT))?;
    let live = Live::start(&["tcp port 7733", "-o", file])?;
    let server = std::thread::spawn(move || serve(&listener));
    let mut client = std::process::Command::new("python3")
        .args(["-c", CLIENT])
        .spawn()?;
    ensure!(client.wait()?.success());
    let port = server.join().ok().context("the server")??;
    live.stop()?;
    let pid = client.id().to_string();
    let out = hopscope(&["slice", "-r", file, "--json", "--pid", &pid])?.expect_code(0)?;
    expect_whole(&lines(&out.stdout)?, port)
}
