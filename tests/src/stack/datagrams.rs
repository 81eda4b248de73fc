//! Echo and discard over UDP, asked by programs of others.
use super::cable::{KERNEL, STACK, STACK_V6, Way, namespace};
use super::serving::{Serving, counter};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, hopscope};
use serde_json::Value;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netcat, Netns, Socat};
    for way in [Way::Packet, Way::PacketWhole, Way::Xdp, Way::TapQueues] {
        let name = format!("stack::datagrams_come_back_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || echo(way));
    }
    suite.case(
        "stack::datagrams_of_nc_and_socat",
        &[Netns, Netcat, Socat],
        programs,
    );
    suite.case("stack::datagrams_of_servers", &[Netns], servers);
    suite.case("stack::datagrams_are_discarded", &[Netns], discard);
}

fn echo(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let serving = Serving::start(way, &["--app=echo", "--addr=10.0.0.3/24"])?;
    // From the address that was asked: a connected socket takes no other's. Of all sizes, fragments among them.
    for (local, address) in [
        ("0.0.0.0:0", STACK),
        ("0.0.0.0:0", "10.0.0.3"),
        ("[::]:0", STACK_V6),
    ] {
        let socket = UdpSocket::bind(local)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        socket.connect((address, 7))?;
        for size in [0, 1, 100, 1_472, 1_473, 9_000, 30_000] {
            let text: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            socket.send(&text)?;
            let mut back = vec![0; 65_536];
            let len = socket
                .recv(&mut back)
                .with_context(|| format!("{size} to {address}"))?;
            ensure!(back[..len] == text, "{size} to {address}: {len} bytes");
        }
    }
    let target = format!("{STACK}:7");
    let requests = counts().pick("1000", "100000");
    let words = [
        "load", "udp", "rr", &target, "--closed", "-c", requests, "-n", "4", "--json",
    ];
    let out = hopscope(&words)?.expect_code(0)?;
    let summary: Value = serde_json::from_str(out.stdout.lines().last().context("no line")?)?;
    ensure!(
        summary["corrupt"] == 0 && summary["failed"] == 0,
        "{summary}"
    );
    let summary = serving.stop()?;
    let app = &summary["app"];
    ensure!(
        app["datagrams_received"] == app["datagrams_sent"],
        "{summary}"
    );
    ensure!(app["datagrams_sent"].as_u64() >= Some(1_021), "{summary}");
    ensure!(
        counter(&summary, "/counters/Udp/InErrors") == 0,
        "{summary}"
    );
    Ok(())
}

fn programs() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo"])?;
    // nc ends when it has not heard anything for a second.
    for script in [
        format!("printf 'a datagram' | nc -u -w1 {STACK} 7"),
        format!("printf 'a datagram' | socat -t1 - UDP4:{STACK}:7"),
    ] {
        let out = run(Command::new("sh").args(["-c", &script]))?;
        ensure!(
            out.stdout == "a datagram",
            "{script}: {:?} {}",
            out.stdout,
            out.stderr
        );
    }
    serving.stop()?;
    Ok(())
}

/// Echoes of echoes would never end: what a server's port sends is not answered.
fn servers() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo"])?;
    let server = UdpSocket::bind((KERNEL, 7))?;
    server.send_to(b"looping", (STACK, 7))?;
    // What comes after it is answered: nothing came back before.
    let client = UdpSocket::bind((KERNEL, 0))?;
    client.set_read_timeout(Some(Duration::from_secs(20)))?;
    client.send_to(b"asked", (STACK, 7))?;
    let mut back = [0; 100];
    let (len, _) = client.recv_from(&mut back)?;
    ensure!(&back[..len] == b"asked", "{len}");
    server.set_nonblocking(true)?;
    ensure!(
        server.recv_from(&mut back).is_err(),
        "a server was answered"
    );
    let summary = serving.stop()?;
    ensure!(summary["app"]["datagrams_refused"] == 1, "{summary}");
    ensure!(summary["app"]["datagrams_sent"] == 1, "{summary}");
    Ok(())
}

fn discard() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=discard"])?;
    let socket = UdpSocket::bind((KERNEL, 0))?;
    socket.connect((STACK, 9))?;
    for _ in 0..50 {
        socket.send(&[1; 100])?;
    }
    // Where there is nobody, the stack says so.
    let nobody = UdpSocket::bind((KERNEL, 0))?;
    nobody.set_read_timeout(Some(Duration::from_secs(20)))?;
    nobody.connect((STACK, 10))?;
    nobody.send(b"x")?;
    let refused = nobody.recv(&mut [0; 10]).err().context("answered")?;
    ensure!(
        refused.kind() == std::io::ErrorKind::ConnectionRefused,
        "{refused}"
    );
    let summary = serving.stop()?;
    ensure!(summary["app"]["datagrams_received"] == 50, "{summary}");
    ensure!(summary["app"]["bytes_received"] == 5_000, "{summary}");
    ensure!(summary["app"]["datagrams_sent"] == 0, "{summary}");
    Ok(())
}
