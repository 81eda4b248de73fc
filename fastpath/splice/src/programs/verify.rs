//! What `--verify` has found: `struct wrong` and `struct watched` of `bpf/contract.h`.
use super::{Count, Counts, End};
use hopscope_bpf::object;
use libbpf_rs::{MapCore, MapFlags};
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};

/// `struct tuple` of `bpf/tuple.h`
const NAME_BYTES: usize = 36;
const WRONG_BYTES: usize = 64;
const WATCHED_BYTES: usize = 152;
/// Of `struct watched`: where the end's cookie is.
const COOKIE: usize = 40;
/// How often a value is read until it is not changed meanwhile.
const READS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchKind {
    /// As many, and others.
    Others,
    /// More than were sent.
    More,
    /// The reader was told that there are no more.
    Missing,
}

/// A direction of a connection in which not the bytes arrived that were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub by_server: bool,
    pub sent: u64,
    pub received: u64,
    pub kind: MismatchKind,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = if self.by_server {
            (self.server, self.client)
        } else {
            (self.client, self.server)
        };
        let what = match self.kind {
            MismatchKind::Others => "other bytes arrived",
            MismatchKind::More => "more arrived than was sent",
            MismatchKind::Missing => "bytes are missing",
        };
        let (sent, received) = (self.sent, self.received);
        write!(
            f,
            "MISMATCH: {from} to {to}: {what} ({sent} bytes sent, {received} received)"
        )
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(half)
}

fn address(bytes: &[u8], at: usize, port_at: usize) -> SocketAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    let port = u16::from_ne_bytes([bytes[port_at], bytes[port_at + 1]]);
    SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), port)
}

fn wrong(bytes: &[u8]) -> Option<Mismatch> {
    let bytes = bytes.get(..WRONG_BYTES)?;
    Some(Mismatch {
        client: address(bytes, 0, 32),
        server: address(bytes, 16, 34),
        by_server: half(bytes, NAME_BYTES) != 0,
        sent: word(bytes, 40),
        received: word(bytes, 48),
        kind: match word(bytes, 56) {
            0 => MismatchKind::Others,
            1 => MismatchKind::More,
            _ => MismatchKind::Missing,
        },
    })
}

/// Each is given out once.
pub(super) fn take_wrong(map: &impl MapCore) -> Vec<Mismatch> {
    object::take_entries(map, |_, value| wrong(value))
}

/// `struct way`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    bytes: u64,
    sum: u64,
    rest: u64,
    calls: u32,
    doubts: u32,
}

impl Way {
    const IS_AT_END: u32 = 32;
    const IS_SHUT: u32 = 64;

    fn at(bytes: &[u8], at: usize) -> Way {
        Way {
            bytes: word(bytes, at),
            sum: word(bytes, at + 8),
            rest: word(bytes, at + 16),
            calls: half(bytes, at + 24),
            doubts: half(bytes, at + 28),
        }
    }

    fn has_doubts(&self) -> bool {
        self.doubts & !(Way::IS_AT_END | Way::IS_SHUT) != 0
    }
}

/// Everything that was sent so far has been received, and is the same. What is different is no verdict:
/// a call may be about to end.
fn is_same(sent: &Way, received: &Way) -> bool {
    !sent.has_doubts()
        && !received.has_doubts()
        && sent.calls == 0
        && (sent.bytes, sent.sum, sent.rest) == (received.bytes, received.sum, received.rest)
}

fn watched(map: &impl MapCore, key: &[u8]) -> Option<Vec<u8>> {
    let read = || {
        let found = map.lookup(key, MapFlags::ANY).ok()??;
        (found.len() >= WATCHED_BYTES).then_some(found)
    };
    let mut last = read()?;
    for _ in 0..READS {
        let again = read()?;
        if again == last {
            return Some(again);
        }
        last = again;
    }
    None
}

/// What one end has sent, the other one has received, with nothing on its way: what is less then is lost.
fn is_lost(sent: &Way, received: &Way) -> bool {
    !sent.has_doubts()
        && !received.has_doubts()
        && (sent.calls, received.calls) == (0, 0)
        && sent.bytes > received.bytes
}

/// All that took TCP is read, and nothing lies in the receiver's queue: sequence numbers count the same bytes at both
/// ends (RFC 9293 section 3.4).
fn is_at_rest(from: &End, to: &End) -> bool {
    from.written == to.copied && !to.is(End::QUEUED)
}

/// A connection whose ends are not both closed, as it is in the map.
struct Open {
    server: Vec<u8>,
    client: Option<Vec<u8>>,
}

fn open(map: &impl MapCore) -> Vec<Open> {
    let keys: Vec<_> = map.keys().collect();
    let servers = keys.iter().filter_map(|key| watched(map, key));
    servers
        .filter(|server| half(server, NAME_BYTES) != 0)
        .map(|server| Open {
            client: watched(map, &server[48..56]),
            server,
        })
        .collect()
}

/// Adds what is known of connections that are open, and says of which bytes are lost. `ends` looks at them: what
/// changes meanwhile is no verdict.
pub(super) fn add_open(
    map: &impl MapCore,
    counts: &mut Counts,
    ends: impl Fn() -> Vec<End>,
) -> Vec<Mismatch> {
    let before = ends();
    let all = open(map);
    let after = ends();
    let end = |line: &[u8]| {
        let cookie = word(line, COOKIE);
        let found = before.iter().find(|end| end.cookie == cookie)?;
        after.contains(found).then_some(found)
    };
    let mut wrong = Vec::new();
    for Open { server, client } in &all {
        let Some(client) = client else {
            counts.add(Count::UnverifiedOpen, 2);
            continue;
        };
        for (from, to) in [(client, server), (server, client)] {
            let (sent, received) = (Way::at(from, 88), Way::at(to, 120));
            let is_at_rest = || match (end(from), end(to)) {
                (Some(from), Some(to)) => is_at_rest(from, to),
                _ => false,
            };
            if is_same(&sent, &received) {
                counts.add(Count::VerifiedOpen, 1);
                counts.add(Count::VerifiedBytes, sent.bytes);
            } else if is_lost(&sent, &received) && is_at_rest() {
                counts.add(Count::Mismatched, 1);
                wrong.push(Mismatch {
                    client: address(server, 0, 32),
                    server: address(server, 16, 34),
                    by_server: std::ptr::eq(from, server),
                    sent: sent.bytes,
                    received: received.bytes,
                    kind: MismatchKind::Missing,
                });
            } else {
                counts.add(Count::UnverifiedOpen, 1);
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(bytes: u64, sum: u64) -> Way {
        Way {
            bytes,
            sum,
            rest: 0,
            calls: 0,
            doubts: Way::IS_AT_END,
        }
    }

    #[test]
    fn what_is_in_doubt_or_on_its_way_is_not_the_same() {
        let one = way(10, 7);
        assert!(is_same(&one, &one));
        assert!(!is_same(&one, &way(10, 8)));
        assert!(!is_same(&one, &way(9, 7)));
        assert!(!is_same(&Way { calls: 1, ..one }, &one));
        assert!(!is_same(&one, &Way { doubts: 1, ..one }));
        assert!(!is_same(&Way { doubts: 16, ..one }, &one));
    }

    #[test]
    fn only_what_is_nowhere_is_lost() {
        let (sent, received) = (way(10, 7), way(9, 6));
        assert!(is_lost(&sent, &received));
        assert!(!is_lost(&received, &sent));
        let calls = Way {
            calls: 1,
            ..received
        };
        assert!(!is_lost(&sent, &calls));
        let from = End {
            written: 5,
            ..End::default()
        };
        let to = End {
            copied: 5,
            ..End::default()
        };
        assert!(is_at_rest(&from, &to));
        assert!(!is_at_rest(&from, &End { copied: 4, ..to }));
        let flags = End::QUEUED;
        assert!(!is_at_rest(&from, &End { flags, ..to }));
    }

    #[test]
    fn a_mismatch_names_its_connection_and_direction() {
        let mut bytes = [0; WRONG_BYTES];
        for at in [0, 16] {
            bytes[at + 10..at + 16].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]);
        }
        bytes[32..34].copy_from_slice(&40000u16.to_ne_bytes());
        bytes[34..36].copy_from_slice(&6379u16.to_ne_bytes());
        bytes[36] = 1;
        bytes[40] = 9;
        bytes[48] = 8;
        bytes[56] = 2;
        assert_eq!(
            wrong(&bytes).map(|found| found.to_string()).as_deref(),
            Some(
                "MISMATCH: 127.0.0.1:6379 to 127.0.0.1:40000: bytes are missing (9 bytes sent, 8 received)"
            )
        );
    }
}
