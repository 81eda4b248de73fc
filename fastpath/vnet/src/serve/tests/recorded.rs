//! Recorded handshakes, said to the whole back end: with memory and doorbells as they were, and each answer to the
//! byte. QEMU's was recorded with another back end, which offered less and knew no status.
use super::descriptors::{Bell, borrowed, memory};
use super::framing::{message, send};
use super::port::Handle;
use super::*;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

const QEMU: &str = include_str!("../../vhost/tests/qemu.txt");
const DPDK_SPLIT: &str = include_str!("../../vhost/tests/dpdk_split.txt");
const DPDK_PACKED: &str = include_str!("../../vhost/tests/dpdk_packed.txt");

struct Line<'a> {
    from_front_end: bool,
    request: u32,
    flags: u32,
    payload: Vec<u8>,
    text: &'a str,
}

fn line(text: &str) -> Line<'_> {
    let words: Vec<&str> = text.split(' ').collect();
    let hex = words[3].trim_matches('-');
    let byte = |n| u8::from_str_radix(&hex[n..n + 2], 16).expect("hexadecimal");
    Line {
        from_front_end: words[0] == ">",
        request: words[1].parse().expect("a number"),
        flags: u32::from_str_radix(&words[2][2..], 16).expect("hexadecimal"),
        payload: (0..hex.len()).step_by(2).map(byte).collect(),
        text,
    }
}

/// A file for each region: as long as the region reaches.
fn files(table: &[u8]) -> Vec<File> {
    let word = |at: usize| u64::from_ne_bytes(table[at..at + 8].try_into().expect("eight"));
    let regions = (0..word(0) as u32 as usize).map(|n| 8 + 32 * n);
    regions
        .map(|at| memory(word(at + 8) + word(at + 24)))
        .collect()
}

/// What was said of queues, and how many answers were compared.
fn replay(name: &str, text: &str, compared: &[u32]) -> (Vec<String>, usize) {
    let file = format!("hopscope-recorded-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(file);
    let batch = "batch".parse().expect("a policy");
    let plan = BackEndPlan {
        socket: path.clone(),
        client: false,
        ports: vec![Box::new(Handle::default().port())],
        segments: true,
        control: None,
        shadows: true,
        kicks: Kicks::EventIdx,
        rx_calls: batch,
        tx_calls: batch,
        events: None,
    };
    let mut server = Server::start(plan).expect("a socket");
    let mut socket = UnixStream::connect(&path).expect("it listens");
    socket.set_nonblocking(true).expect("a socket");
    let bell = Bell::new();
    let mut said = Vec::new();
    let mut say = |notice: Notice<'_>| match notice {
        Notice::Queue { n, size, taken } => said.push(format!("{n}: {size} {taken}")),
        Notice::Connected => {}
        wrong => panic!("{name}: {wrong:?}"),
    };
    server.step_once(&mut say).expect("a connection");
    let mut answered = 0;
    let lines: Vec<Line<'_>> = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(line)
        .collect();
    for (n, line) in lines.iter().enumerate().filter(|(_, l)| l.from_front_end) {
        let files = if line.request == 5 {
            files(&line.payload)
        } else {
            Vec::new()
        };
        let mut numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        if matches!(line.request, 12..=14) && line.payload[1] & 1 == 0 {
            numbers.push(borrowed(&bell).as_raw_fd());
        }
        send(
            &socket,
            &message(line.request, line.flags, &line.payload),
            &numbers,
        )
        .expect("room");
        server.step_once(&mut say).expect("a fair message");
        let mut answer = [0; 300];
        let answer = match socket.read(&mut answer) {
            Ok(len) => &answer[..len],
            Err(_) => &[],
        };
        let next = lines.get(n + 1).filter(|next| !next.from_front_end);
        let recorded = next.map(|next| message(next.request, next.flags, &next.payload));
        if compared.is_empty() || compared.contains(&line.request) {
            assert_eq!(
                answer,
                recorded.unwrap_or_default(),
                "{name}: {}",
                line.text
            );
            answered += usize::from(!answer.is_empty());
        } else {
            assert_eq!(
                answer.is_empty(),
                recorded.is_none(),
                "{name}: {}",
                line.text
            );
        }
    }
    drop(socket);
    let counts = server.end(&mut |_| {}).expect("a port that works");
    assert_eq!(counts.broken_off, 0);
    (said, answered)
}

#[test]
fn dpdks_split_rings() {
    let (queues, answered) = replay("split", DPDK_SPLIT, &[]);
    let each = "256 mrg_rxbuf indirect_desc version_1";
    assert_eq!(queues, [format!("0: {each}"), format!("1: {each}")]);
    assert_eq!(answered, 9);
}

/// Its bases have the wrap counter in bit 15 alone, and it is given both.
#[test]
fn dpdks_packed_rings() {
    let (queues, answered) = replay("packed", DPDK_PACKED, &[]);
    let each = "256 mrg_rxbuf indirect_desc version_1 ring_packed";
    assert_eq!(queues, [format!("0: {each}"), format!("1: {each}")]);
    assert_eq!(answered, 9);
}

#[test]
fn qemus() {
    // What was offered, how many queues, and the status are the recorder's.
    let (queues, answered) = replay("qemu", QEMU, &[5, 8, 9, 10, 12, 13, 14, 15, 16, 18]);
    assert!(queues.len() >= 2 && answered > 0, "{queues:?}, {answered}");
}
