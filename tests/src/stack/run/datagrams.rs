//! UDP sockets of unmodified programs on the stack: nc, socat, iperf3, Python, dnsmasq and dig; as servers and as clients.
use super::datagram_tools as tools;
use super::running::{
    Server, cable, frames, frames_at, kernel_has_no_datagrams, left_nothing, on_the_stack, python,
    words,
};
use crate::stack::cable::{KERNEL, KERNEL_V6, STACK, STACK_V6, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::fs::File;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

const PORT: &str = "7";

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Dnsmasq, Iperf, Netcat, Netns, Python3, Socat};
    for how in ["blocking", "epoll", "asyncio"] {
        let name = format!("stack::run_serves_datagrams_with_python_{how}");
        suite.case(name, &[Netns, Python3], move || serves(how));
    }
    for how in ["client", "client_unconnected", "client_asyncio"] {
        let name = format!("stack::run_sends_datagrams_with_python_{how}");
        suite.case(name, &[Netns, Python3], move || sends(how));
    }
    suite.case(
        "stack::run_receives_datagrams_everywhere",
        &[Netns, Python3],
        everywhere,
    );
    suite.case(
        "stack::run_lets_last_datagrams_out",
        &[Netns, Python3],
        last_words,
    );
    suite.case(
        "stack::run_carries_datagrams_of_nc_and_socat",
        &[Netns, Netcat, Socat],
        netcat,
    );
    suite.case(
        "stack::run_carries_datagrams_of_iperf3",
        &[Netns, Iperf],
        iperf,
    );
    suite.case(
        "stack::run_carries_names_of_dnsmasq_and_dig",
        &[Netns, Dnsmasq],
        names,
    );
}

fn count() -> &'static str {
    counts().pick("60", "2000")
}

/// Clients of the kernel's, of all sizes up to several fragments, by IPv4 and IPv6.
fn serves(how: &str) -> Result<()> {
    cable()?;
    for address in [STACK, STACK_V6] {
        let before = frames()?;
        let server = python("datagram_echo.py", &[how, address, PORT]);
        let server = Server::start(&words(&server))?;
        kernel_has_no_datagrams(7)?;
        let client = ["client", address, PORT, count(), "60000"];
        let client = python("datagram_echo.py", &client);
        let out = run(Command::new(&client[0]).args(&client[1..]))?;
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        server.ends()?;
        ensure!(frames()? > before + 200, "frames: {}", frames()? - before);
    }
    Ok(())
}

/// The same, the other way round.
fn sends(how: &str) -> Result<()> {
    cable()?;
    for address in [KERNEL, KERNEL_V6] {
        let before = frames()?;
        let server = python("datagram_echo.py", &["blocking", address, PORT]);
        let mut command = Command::new(&server[0]);
        let server = Target::spawn(command.args(&server[1..]).stdin(Stdio::null()))?;
        let client = python("datagram_echo.py", &[how, address, PORT, count(), "60000"]);
        let out = run(&mut on_the_stack(&["--trace"], &words(&client)))?;
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        left_nothing(&out.stderr)?;
        ensure!(server.wait()?.success(), "the server failed");
        ensure!(frames()? > before + 200, "frames: {}", frames()? - before);
    }
    Ok(())
}

/// A socket at every address is in both, and each datagram is of the stack that has the address. Answers go where they belong.
fn everywhere() -> Result<()> {
    cable()?;
    for (how, local) in [
        ("blocking", "0.0.0.0"),
        ("epoll", "0.0.0.0"),
        ("asyncio", "::"),
    ] {
        let server = python("datagram_echo.py", &[how, local, PORT]);
        let server = Server::start(&words(&server))?;
        tools::ask_everywhere(how)?;
        server.ends()?;
    }
    // In the stack alone where that is asked for.
    let server = python("datagram_echo.py", &["blocking", "0.0.0.0", PORT]);
    let wildcard = &["--trace", "--wildcard=stack"];
    let server = Server::spawn(&mut on_the_stack(wildcard, &words(&server)))?;
    kernel_has_no_datagrams(7)?;
    let client = UdpSocket::bind("0.0.0.0:0")?;
    client.send_to(b"over", (STACK, 7))?;
    server.ends()
}

/// A program that sends and ends at once: nobody knows yet where the peer is, which does not answer before it is asked again.
fn last_words() -> Result<()> {
    cable()?;
    let arp_ignore = "/proc/sys/net/ipv4/conf/far/arp_ignore";
    std::fs::write(arp_ignore, "8")?;
    let peer = UdpSocket::bind((KERNEL, 9))?;
    peer.set_read_timeout(Some(Duration::from_secs(20)))?;
    let before = frames_at("far")?;
    let line = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'last words', ('10.0.0.1', 9))";
    let said = files().join("said");
    let mut command = on_the_stack(&["--trace"], &["/usr/bin/python3", "-c", line]);
    command.stdin(Stdio::null()).stderr(File::create(&said)?);
    let mut program = Target::spawn_now(&mut command)?;
    while frames_at("far")? == before {
        ensure!(program.child().try_wait()?.is_none(), "it asked nobody");
    }
    std::fs::write(arp_ignore, "0")?;
    let status = program.wait()?;
    let said = std::fs::read_to_string(&said)?;
    ensure!(status.success(), "{status}: {said}");
    left_nothing(&said)?;
    let mut text = [0; 100];
    let (len, from) = peer.recv_from(&mut text)?;
    ensure!(&text[..len] == b"last words", "{len} bytes");
    ensure!(from.ip().to_string() == STACK, "{from}");
    Ok(())
}

/// `hopscope stack run … -- PROGRAM` as a shell's words.
fn shown(program: &str) -> String {
    let command = on_the_stack(&[], &["sh", "-c", program]);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    words.collect::<Vec<_>>().join(" ")
}

fn netcat() -> Result<()> {
    cable()?;
    let before = frames()?;
    // Clients on the stack, an echo of the kernel's; nc ends when it has not heard anything for a second.
    let echo = python("datagram_echo.py", &["blocking", KERNEL, PORT]);
    let mut command = Command::new(&echo[0]);
    let echo = Target::spawn(command.args(&echo[1..]).stdin(Stdio::null()))?;
    for program in [
        format!("printf hello | nc -u -w1 {KERNEL} 7"),
        format!("printf hello | nc -u -w1 -s {STACK} {KERNEL} 7"),
        format!("printf hello | socat -t1 - UDP:{KERNEL}:7"),
        format!("printf hello | socat -t1 - UDP-DATAGRAM:{KERNEL}:7,bind={STACK}"),
    ] {
        let out = run(&mut on_the_stack(&[], &["sh", "-c", &program]))?;
        ensure!(
            out.stdout == "hello",
            "{program}: {:?} {}",
            out.stdout,
            out.stderr
        );
    }
    let client = UdpSocket::bind((KERNEL, 0))?;
    client.send_to(b"over", (KERNEL, 7))?;
    ensure!(echo.wait()?.success(), "the server failed");
    // Servers on the stack, clients of the kernel's.
    for server in [
        format!("exec socat UDP-RECVFROM:7,bind={STACK} EXEC:cat"),
        format!("exec socat UDP-LISTEN:7,bind={STACK} EXEC:cat"),
        format!(
            "nc -u -l -w1 {STACK} 7 > {}/heard; cat {0}/heard > /dev/null",
            files().display()
        ),
    ] {
        let mut command = Command::new("sh");
        let server_line = format!("exec {}", shown(&server));
        let mut child = command
            .args(["-c", &server_line])
            .stdin(Stdio::piped())
            .spawn()?;
        // Until it is there, datagrams are refused.
        let client = UdpSocket::bind((KERNEL, 0))?;
        client.set_read_timeout(Some(Duration::from_millis(100)))?;
        let is_nc = server.starts_with("nc");
        let mut back = [0; 100];
        let answered = loop {
            client.send_to(b"hello", (STACK, 7))?;
            let is_back = matches!(client.recv(&mut back), Ok(5)) && &back[..5] == b"hello";
            let is_heard = std::fs::read(files().join("heard"))
                .is_ok_and(|text| is_nc && text.starts_with(b"hello"));
            if is_back || is_heard {
                break true;
            }
            if child.try_wait()?.is_some() {
                break false;
            }
        };
        drop(child.stdin.take());
        if !server.contains("RECVFROM") {
            let id = nix::unistd::Pid::from_raw(child.id() as i32);
            let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        }
        child.wait()?;
        ensure!(answered, "{server}");
    }
    ensure!(frames()? > before + 8, "not over the cable");
    Ok(())
}

fn on_either(stack: bool, words: &[&str]) -> Command {
    if stack {
        return on_the_stack(&[], words);
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn iperf() -> Result<()> {
    cable()?;
    tools::iperf(on_either)
}

fn names() -> Result<()> {
    cable()?;
    tools::names(on_either)
}
