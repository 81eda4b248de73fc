//! The urgent byte is not of the stream, whichever engine hands that on, as haproxy and socat have it.
use super::ENGINES;
use super::proxy::{Proxy, accepted, comes, ends, upstream};
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, send};
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

pub(super) fn register(suite: &mut Suite) {
    for engine in ENGINES {
        let name = format!("splice_proxy::the_urgent_byte_is_not_in_the_stream::{engine}");
        suite.case(name, KERNEL, move || run(engine));
    }
}

/// The last byte is the urgent one.
fn urgent(end: &TcpStream, bytes: &[u8]) -> Result<()> {
    let sent = send(end.as_raw_fd(), bytes, MsgFlags::MSG_OOB)?;
    ensure!(sent == bytes.len(), "{sent} sent");
    Ok(())
}

fn run(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    // Before the proxy has accepted, all of it lies in one packet, larger than what is moved at once.
    proxy.signal(Signal::SIGSTOP)?;
    let mut client = proxy.client()?;
    client.write_all(&[b'x'; 700])?;
    urgent(&client, b"yU")?;
    client.write_all(&[b'z'; 300])?;
    proxy.signal(Signal::SIGCONT)?;
    let mut server = accepted(&listener)?;
    let early = [&[b'x'; 700][..], b"y", &[b'z'; 300]].concat();
    comes(&mut server, &early)?;
    // Now each is a packet, in both directions, and one has nothing else.
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (mut from, mut to) = (from, to.try_clone()?);
        for (before, said) in [(&b"abU"[..], &b"ab"[..]), (b"V", b"")] {
            urgent(from, before)?;
            from.write_all(b"more")?;
            comes(&mut to, &[said, b"more"].concat())?;
        }
    }
    client.shutdown(Shutdown::Write)?;
    ends(&mut server)?;
    server.shutdown(Shutdown::Write)?;
    ends(&mut client)?;
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/ended")? == 1, "{summary}");
    if engine == "kernel" {
        ensure!(
            number(&summary, "/kernel/urgent_left_out")? == 5,
            "{summary}"
        );
        ensure!(
            number(&summary, "/kernel/urgent_in_line")? == 0,
            "{summary}"
        );
    }
    Ok(())
}
