use super::table::{MAX_ENTRIES, MAX_INCOMPLETE};
use super::*;
use crate::frame::TxFrame;
use std::net::Ipv4Addr;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const REPLY: Evidence = Evidence::Answers {
    solicited: true,
    overrides: true,
};
const ANNOUNCEMENT: Evidence = Evidence::Answers {
    solicited: false,
    overrides: true,
};

fn host(i: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + i))
}

fn frame(byte: u8, len: usize) -> Frame {
    let meta = TxFrame {
        len,
        checksum: None,
        segmentation: None,
        socket: None,
        payload_bytes: 0,
    };
    Frame {
        bytes: vec![byte; len],
        meta,
    }
}

struct Under {
    neighbors: Neighbors,
    counters: Counters,
    now: Ns,
}

impl Under {
    fn test() -> Under {
        Under {
            neighbors: Neighbors::new(7),
            counters: Counters::default(),
            now: Ns(0),
        }
    }

    fn resolve(&mut self, i: u32) -> (Option<Mac>, Hop) {
        let mut hop = Hop::default();
        let mac = self
            .neighbors
            .resolve(self.now, host(i), &mut hop, &mut self.counters);
        (mac, hop)
    }

    fn learn(&mut self, i: u32, mac: Mac, evidence: Evidence) {
        self.neighbors
            .learn(self.now, host(i), mac, evidence, &mut self.counters);
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now + Ns::from_ms(ms);
        self.neighbors.advance(self.now, &mut self.counters);
    }

    fn solicitations(&mut self) -> Vec<Solicitation> {
        std::iter::from_fn(|| self.neighbors.next_solicitation()).collect()
    }

    /// Resolved and used, its reachability over, probing or about to.
    fn reachable(&mut self, i: u32) -> Hop {
        let (_, hop) = self.resolve(i);
        self.learn(i, MAC, REPLY);
        self.solicitations();
        hop
    }
}

#[test]
fn rfc4861_7_2_2_three_solicitations_then_failure() {
    let mut under = Under::test();
    let (mac, hop) = under.resolve(1);
    assert_eq!(mac, None);
    under
        .neighbors
        .wait(hop, frame(1, 100), &mut under.counters);
    let one = [Solicitation {
        target: host(1),
        unicast: None,
    }];
    assert_eq!(under.solicitations(), one);
    for _ in 0..2 {
        under.pass(999);
        assert_eq!(under.solicitations(), []);
        under.pass(1);
        assert_eq!(under.solicitations(), one);
    }
    assert_eq!(under.neighbors.failed.len(), 0);
    under.pass(1_000);
    assert_eq!(under.neighbors.failed.len(), 1);
    assert_eq!(under.counters.neighbor_failed, 1);
    assert_eq!(
        (under.neighbors.poll_at(), under.neighbors.waiting_bytes),
        (None, 0)
    );
    // The next packet asks again; the old place is nobody's.
    assert_eq!(under.neighbors.cached(under.now, hop), None);
    under.resolve(1);
    assert_eq!(under.solicitations(), one);
}

#[test]
fn rfc4861_7_2_5_waiting_packets_go_to_the_answer() {
    let mut under = Under::test();
    let (_, hop) = under.resolve(1);
    under
        .neighbors
        .wait(hop, frame(1, 100), &mut under.counters);
    under
        .neighbors
        .wait(hop, frame(2, 100), &mut under.counters);
    under.learn(1, MAC, REPLY);
    let resolved: Vec<_> = under.neighbors.resolved.drain(..).collect();
    assert_eq!(
        resolved.iter().map(|f| f.bytes[6]).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(resolved.iter().all(|f| f.bytes[..6] == MAC.0));
    assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    assert_eq!(under.neighbors.waiting_bytes, 0);
}

#[test]
fn rfc4861_7_3_3_stale_delay_probe() {
    let mut under = Under::test();
    let hop = under.reachable(1);
    under.pass(45_000);
    assert_eq!(
        under.neighbors.poll_at(),
        None,
        "no timer while nobody sends"
    );
    assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    under.pass(5_000);
    let probe = [Solicitation {
        target: host(1),
        unicast: Some(MAC),
    }];
    assert_eq!(under.solicitations(), probe);
    under.pass(1_000);
    assert_eq!(under.solicitations(), probe);
    assert_eq!(
        under.neighbors.cached(under.now, hop),
        Some(MAC),
        "while probing"
    );
    under.learn(1, MAC, REPLY);
    under.pass(10_000);
    assert_eq!(under.solicitations(), []);
    // And without an answer it is gone.
    under.pass(45_000);
    under.neighbors.cached(under.now, hop);
    for _ in 0..4 {
        under.pass(5_000);
    }
    assert_eq!(under.neighbors.cached(under.now, hop), None);
}

#[test]
fn rfc4861_7_3_1_progress_above_needs_no_probes() {
    let mut under = Under::test();
    let hop = under.reachable(1);
    for _ in 0..100 {
        under.pass(10_000);
        assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
        under.neighbors.confirm(under.now, hop);
    }
    assert_eq!(under.solicitations(), []);
    under.neighbors.confirm(under.now, Hop::default());
}

#[test]
fn an_answer_to_nothing_makes_no_entry() {
    let mut under = Under::test();
    under.learn(1, MAC, REPLY);
    under.learn(2, MAC, ANNOUNCEMENT);
    assert_eq!(under.neighbors.table.entries.len(), 0);
}

#[test]
fn a_second_answer_has_to_wait() {
    let mut under = Under::test();
    let hop = under.reachable(1);
    under.learn(1, OTHER, REPLY);
    assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    assert_eq!(under.counters.neighbor_conflicts, 1);
    // A host that took the address over announces itself later.
    under.pass(1_000);
    under.learn(1, OTHER, ANNOUNCEMENT);
    assert_eq!(under.neighbors.cached(under.now, hop), Some(OTHER));
}

#[test]
fn rfc4861_7_2_5_without_override_another_address_is_not_taken() {
    let mut under = Under::test();
    let hop = under.reachable(1);
    under.pass(2_000);
    under.learn(
        1,
        OTHER,
        Evidence::Answers {
            solicited: true,
            overrides: false,
        },
    );
    assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    // It is probed, as RFC 4861 wants it to be.
    under.pass(5_000);
    assert_eq!(under.solicitations().len(), 1);
}

#[test]
fn waiting_packets_are_bounded() {
    let mut under = Under::test();
    let (_, hop) = under.resolve(0);
    for i in 0..1_000 {
        under
            .neighbors
            .wait(hop, frame(i as u8, 100), &mut under.counters);
    }
    assert_eq!(under.counters.neighbor_queue_drop, 1_000 - 128);
    for i in 1..100 {
        let (_, hop) = under.resolve(i);
        for _ in 0..4 {
            under
                .neighbors
                .wait(hop, frame(1, 60_000), &mut under.counters);
        }
    }
    assert!(under.neighbors.waiting_bytes <= MAX_WAITING_BYTES);
    assert!(under.neighbors.waiting_bytes > MAX_WAITING_BYTES - 60_000);
    for _ in 0..3 {
        under.pass(1_000);
    }
    assert_eq!(under.neighbors.waiting_bytes, 0);
}

#[test]
fn floods_do_not_push_out_who_answers() {
    let mut under = Under::test();
    let hops: Vec<Hop> = (0..100).map(|i| under.reachable(i)).collect();
    // Hosts that want to send to us, and spoofed ones that we would answer.
    for i in 1_000..10_000 {
        under.learn(i, OTHER, Evidence::Wants);
        under.resolve(i + 100_000);
    }
    assert!(under.neighbors.table.entries.len() <= MAX_ENTRIES);
    let incomplete = under
        .neighbors
        .table
        .entries
        .iter()
        .filter(|e| e.state == State::Incomplete);
    assert!(incomplete.count() <= MAX_INCOMPLETE);
    for hop in hops {
        assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    }
    assert!(under.counters.neighbor_evicted > 0);
    // And a host that answers finds a place in the flood.
    let hop = under.reachable(200);
    assert_eq!(under.neighbors.cached(under.now, hop), Some(MAC));
    for _ in 0..3 {
        under.pass(1_000);
    }
    assert_eq!(
        under
            .neighbors
            .table
            .entries
            .iter()
            .filter(|e| e.state == State::Incomplete)
            .count(),
        0
    );
}
