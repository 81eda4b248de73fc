//! Who does not read holds back who writes, and gets everything in order when it reads after all.
use super::ENGINES;
use super::proxy::{Proxy, accepted, upstream};
use crate::splice_echo::bounds::{BOUND, CHUNK, End, byte, flood};
use crate::splice_echo::server::Server;
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Result, bail, ensure};
use hopscope_tests::Suite;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

pub(super) fn register(suite: &mut Suite) {
    for engine in ENGINES {
        let case = |name: &str| format!("splice_proxy::{name}::{engine}");
        suite.case(case("the_upstream_does_not_read"), KERNEL, move || {
            up(engine)
        });
        suite.case(case("the_client_does_not_read"), KERNEL, move || {
            down(engine)
        });
        suite.case(case("nobody_reads"), KERNEL, move || both(engine));
        suite.case(case("nobody_reads_the_other"), KERNEL, move || {
            in_turn(engine)
        });
    }
}

fn held_back(stream: &mut TcpStream) -> Result<usize> {
    let (sent, end) = flood(stream)?;
    match end {
        End::HeldBack => ensure!(sent < BOUND, "held back after {sent} B"),
        End::Reset => bail!("reset after {sent} B"),
        End::Never => bail!("{sent} B were taken"),
    }
    stream.set_nonblocking(false)?;
    stream.shutdown(Shutdown::Write)?;
    Ok(sent)
}

fn reads_all(stream: &mut TcpStream, sent: usize) -> Result<()> {
    let mut got = 0;
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        let right = buffer[..n].iter().enumerate();
        let mut right = right.map(|(at, found)| *found == byte(got + at));
        ensure!(right.all(|right| right), "other bytes after {got}");
        got += n;
    }
    ensure!(got == sent, "{got} B of {sent} came");
    Ok(())
}

/// The kernel's part, and then user space's.
fn was_taken_over(engine: &str, proxy: Proxy, counter: &str) -> Result<()> {
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/ended")? == 1, "{summary}");
    if engine == "kernel" {
        ensure!(number(&summary, counter)? > 0, "{summary}");
        ensure!(number(&summary, "/kernel/over_limit")? == 0, "{summary}");
    }
    Ok(())
}

fn up(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    let mut client = proxy.client()?;
    let mut server = accepted(&listener)?;
    let sent = held_back(&mut client)?;
    reads_all(&mut server, sent)?;
    drop(server);
    ensure!(client.read(&mut [0])? == 0, "no end");
    was_taken_over(engine, proxy, "/kernel/reader_is_slow")
}

fn down(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    let mut client = proxy.client()?;
    client.write_all(b"x")?;
    let mut server = accepted(&listener)?;
    server.read_exact(&mut [0])?;
    let sent = held_back(&mut server)?;
    reads_all(&mut client, sent)?;
    drop(client);
    ensure!(server.read(&mut [0])? == 0, "no end");
    was_taken_over(engine, proxy, "/kernel/reader_is_slow")
}

/// A client of an echo that only writes: what waits does so in both directions, and where the kernel has
/// it nobody is charged for it. The writer is held back all the same.
fn both(engine: &str) -> Result<()> {
    network::own()?;
    let echo = Server::start(&["--mode", "user", "--listen", "127.0.0.1:0"])?;
    let proxy = Proxy::start(engine, echo.address, &[])?;
    let mut client = proxy.client()?;
    let sent = match held_back(&mut client) {
        Ok(sent) => sent,
        Err(error) => bail!("{error}: {}", proxy.finish()?),
    };
    reads_all(&mut client, sent)?;
    drop(client);
    was_taken_over(engine, proxy, "/kernel/reader_is_slow")
}

/// First what goes to the client stands still, then the client writes: its bytes wait behind those where
/// the kernel has them, and are charged to nobody. TCP takes little here, so that they stay there.
fn in_turn(engine: &str) -> Result<()> {
    network::own()?;
    std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 16384")?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    let mut client = proxy.client()?;
    let mut server = accepted(&listener)?;
    let down = held_back(&mut server)?;
    let up = match held_back(&mut client) {
        Ok(up) => up,
        Err(error) => bail!("{error}: {}", proxy.finish()?),
    };
    reads_all(&mut client, down)?;
    reads_all(&mut server, up)?;
    drop((client, server));
    was_taken_over(engine, proxy, "/kernel/sender_held_back")
}
