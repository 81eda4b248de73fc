//! What a program sends on, byte for byte, is not cut from the packet that it looks like.
use super::live::Live;
use super::losses::{ip, namespace};
use super::room::beyond_a_cable;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const SENT: usize = 200_000;
/// No segment that is cut has as many bytes.
const EACH: u64 = 777;
const COPIES: u64 = 150;

/// The packets that are cut wait in front of their device while the copies pass another.
pub(super) fn run() -> Result<()> {
    namespace()?;
    let listener = beyond_a_cable(|| TcpListener::bind("10.77.2.2:7718"))?;
    let slow = "qdisc add dev near root tbf rate 8mbit burst 16kb limit 4mb";
    command(Command::new("tc").args(slow.split(' ')))?.expect_code(0)?;
    ip("link add elsewhere type veth peer name nobody")?;
    ip("link set nobody up")?;
    ip("link set elsewhere up")?;
    let live = Live::start(&["tcp dst port 7718 and greater 100"])?;
    let reader = std::thread::spawn(move || -> Result<(usize, TcpListener)> {
        let (mut end, _) = listener.accept()?;
        Ok((end.read_to_end(&mut Vec::new())?, listener))
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/slice/sent_on.py");
    let arguments = ["10.77.2.2", "7718", "elsewhere"];
    command(Command::new("python3").arg(script).args(arguments))?.expect_code(0)?;
    let (read, listener) = reader.join().ok().context("a thread panicked")??;
    ensure!(read == SENT, "{read} of {SENT}");
    let said = live.stop()?;
    drop(listener);
    said.expect_adds_up()?;
    let is_copy = |one: &&serde_json::Value| one["parent"].is_u64() && one["length"] == EACH;
    let copies = said.packets.iter().filter(is_copy).count();
    let cut = said.counter("split")?;
    ensure!(
        cut > 0 && copies == 0,
        "{cut} cut, {copies} of {COPIES} that were sent on: {}",
        said.summary
    );
    Ok(())
}
