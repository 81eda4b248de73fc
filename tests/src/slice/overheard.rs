//! A program with a packet socket reads its copy of a packet before the reader does: that is
//! not the packet's copy.
use super::live::Live;
use anyhow::{Result, ensure};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;

const PACKETS: u64 = 30;

pub(super) fn run() -> Result<()> {
    // Packets of others, or of the calibration, might fill the packet socket's queue, which then misses the one that counts.
    unshare(CloneFlags::CLONE_NEWNET)?;
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()?;
    ensure!(up.success(), "ip: {up}");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let mut client = TcpStream::connect(("127.0.0.1", port))?;
    let (mut server, _) = listener.accept()?;
    let live = Live::start(&[&format!("tcp dst port {port} and greater 61")])?;
    let all = SockProtocol::EthAll;
    let overhears = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), all)?;
    for number in 0..PACKETS {
        let message = format!("overheard, {number} of port {port}.");
        client.write_all(message.as_bytes())?;
        let mut frame = [0; 2048];
        loop {
            let len = recv(overhears.as_raw_fd(), &mut frame, MsgFlags::empty())?;
            if frame[..len].ends_with(message.as_bytes()) {
                break;
            }
        }
        server.read_exact(&mut vec![0; message.len()])?;
    }
    let said = live.stop()?;
    said.expect_adds_up()?;
    ensure!(said.packets.len() as u64 == PACKETS, "{}", said.summary);
    let refused = said.counter("stale_refused")?;
    ensure!(refused >= PACKETS, "{refused} refused: {}", said.summary);
    Ok(())
}
