//! Real packets, captured by tcpdump on the loopback device: tcpdump's own answer to an expression is
//! that of the filter and, from the network header, that of the kernel. Needs root, as capturing does.
use super::{expressions, kernel};
use crate::filter::{Filter, Link, REACH, Verdict};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

const LAST: &[u8] = b"hopscope: the last packet";
/// <https://www.tcpdump.org/linktypes.html>
const LINKTYPE_ETHERNET: u32 = 1;
const LINKTYPE_RAW: u32 = 101;

#[test]
fn tcpdump_says_the_same() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("SKIP: no tcpdump");
        return;
    }
    let Some(runner) = kernel::runner("real") else {
        return;
    };
    let frames = capture();
    let packets: Vec<&[u8]> = frames.iter().map(|frame| &frame[14..]).collect();
    let whole: Vec<(Vec<u8>, u32)> = packets
        .iter()
        .map(|packet| (packet.to_vec(), packet.len() as u32))
        .collect();
    let mut matched = 0;
    for expression in expressions::NETWORK {
        let filter = Filter::compile(expression, Link::Network).unwrap();
        let theirs = chosen(expression, LINKTYPE_RAW, &packets);
        let ours: Vec<usize> = (0..packets.len())
            .filter(|at| filter.matches(packets[*at], whole[*at].1))
            .collect();
        assert_eq!(ours, theirs, "{expression}");
        for ((at, packet), verdict) in packets
            .iter()
            .enumerate()
            .zip(kernel::verdicts(&runner, &filter, &whole))
        {
            match verdict {
                Verdict::CutOff => assert!(packet.len() > REACH as usize, "{expression}"),
                known => assert_eq!(
                    known == Verdict::Match,
                    theirs.contains(&at),
                    "{expression}"
                ),
            }
        }
        matched += theirs.len();
    }
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    for expression in expressions::ETHERNET {
        let filter = Filter::compile(expression, Link::Ethernet).unwrap();
        let ours: Vec<usize> = (0..frames.len())
            .filter(|at| filter.matches(frames[*at], frames[*at].len() as u32))
            .collect();
        assert_eq!(
            ours,
            chosen(expression, LINKTYPE_ETHERNET, &frames),
            "{expression}"
        );
    }
    assert!(matched > packets.len(), "hardly anything matched");
    std::fs::remove_file(runner).unwrap();
}

/// Ethernet frames of a TCP connection and a few datagrams, over IPv4 and, where there is one, IPv6.
fn capture() -> Vec<Vec<u8>> {
    let addresses = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    let ends: Vec<(TcpListener, UdpSocket)> = addresses
        .into_iter()
        .filter_map(|ip| {
            Some((
                TcpListener::bind((ip, 0)).ok()?,
                UdpSocket::bind((ip, 0)).ok()?,
            ))
        })
        .collect();
    let ports: Vec<String> = ends
        .iter()
        .flat_map(|(tcp, udp)| {
            [
                tcp.local_addr().unwrap().port(),
                udp.local_addr().unwrap().port(),
            ]
        })
        .map(|port| format!("port {port}"))
        .collect();
    let mut tcpdump = Command::new("tcpdump")
        .args([
            "-i",
            "lo",
            "-s",
            "2000",
            "-U",
            "--immediate-mode",
            "-w",
            "-",
        ])
        .arg(ports.join(" or "))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(tcpdump.stderr.take().unwrap()).lines();
    let listens = said.any(|line| line.unwrap().contains("listening on"));
    assert!(listens, "tcpdump ended");

    for (listener, udp) in &ends {
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        for bytes in [1, 30, 1000] {
            near.write_all(&vec![b'x'; bytes]).unwrap();
            far.read_exact(&mut vec![0; bytes]).unwrap();
        }
        far.write_all(b"GET /").unwrap();
        drop(far);
        near.read_to_end(&mut Vec::new()).unwrap();
        udp.send_to(b"short", udp.local_addr().unwrap()).unwrap();
        udp.send_to(&[7; 600], udp.local_addr().unwrap()).unwrap();
    }
    let (_, udp) = &ends[0];
    udp.send_to(LAST, udp.local_addr().unwrap()).unwrap();

    let mut stream = tcpdump.stdout.take().unwrap();
    stream.read_exact(&mut [0; 24]).unwrap();
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while !frames.last().is_some_and(|frame| frame.ends_with(LAST)) {
        frames.push(record(&mut stream).expect("more packets").1);
    }
    tcpdump.kill().unwrap();
    tcpdump.wait().unwrap();
    frames
}

/// The packets that `tcpdump -r` writes again, by their index, which is their time.
fn chosen(expression: &str, linktype: u32, packets: &[&[u8]]) -> Vec<usize> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, linktype]);
    for (at, packet) in packets.iter().enumerate() {
        let len = packet.len() as u32;
        file.extend(words(&[at as u32, 0, len, len]));
        file.extend_from_slice(packet);
    }
    let mut tcpdump = Command::new("tcpdump")
        .args(["-r", "-", "-w", "-"])
        .args(Some(expression).filter(|expression| !expression.is_empty()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = tcpdump.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&file));
    let out = tcpdump.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success(), "{expression}: {}", out.status);
    let mut rest = &out.stdout[24..];
    std::iter::from_fn(|| record(&mut rest))
        .map(|(seconds, _)| seconds as usize)
        .collect()
}

/// Time in seconds and bytes of the next packet of a capture file.
fn record(from: &mut impl Read) -> Option<(u32, Vec<u8>)> {
    let mut header = [0; 16];
    from.read_exact(&mut header).ok()?;
    let word = |at| u32::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
    let mut bytes = vec![0; word(8) as usize];
    from.read_exact(&mut bytes).ok()?;
    Some((word(0), bytes))
}
