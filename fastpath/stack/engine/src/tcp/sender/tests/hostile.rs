//! What a peer can say: SACK blocks of nonsense, dropped bytes, divided and optimistic ACKs.
use super::super::types::AckOutcome;
use super::super::*;
use super::path::{FIRST, MSS};
use crate::config::TcpConfig;
use crate::tcp::seq::SeqRange;
use crate::{Counters, Ns};
use proptest::prelude::*;

struct Peer {
    sender: Sender,
    now: Ns,
    counters: Counters,
}

impl Peer {
    /// Has `segments` in flight.
    fn new(segments: u32) -> Peer {
        Peer::with(segments, true)
    }

    fn with(segments: u32, sack: bool) -> Peer {
        let config = SenderConfig::new(
            &TcpConfig {
                initial_window: segments,
                ..TcpConfig::default()
            },
            MSS,
            sack,
            Ns::from_ms(1),
        );
        let now = Ns::from_ms(1000);
        let mut peer = Peer {
            sender: Sender::new(&config, FIRST, now),
            now,
            counters: Counters::default(),
        };
        peer.sender.handshake_rtt(now, Some(Ns::from_ms(1)), 0);
        peer.send(segments);
        peer
    }

    fn send(&mut self, segments: u32) {
        let range = SeqRange::of(self.sender.snd_nxt(), segments * MSS);
        self.sender
            .sent(self.now, range, SentKind::Fresh, &mut self.counters);
    }

    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> AckOutcome {
        let sack: Vec<SeqRange> = blocks
            .iter()
            .map(|(start, end)| SeqRange::new(FIRST + *start, FIRST + *end))
            .collect();
        self.now = self.now + Ns::from_us(100);
        let ack = Ack {
            ack: FIRST + ack,
            sack: &sack,
            ts_echo: None,
            carries_data: false,
            changes_window: false,
            unsent_bytes: 0,
        };
        self.sender.acknowledged(self.now, &ack, &mut self.counters)
    }

    fn sacked_bytes(&self) -> u32 {
        self.sender.board.sacked().bytes()
    }
}

/// SackScoreboardRobustness.
#[test]
fn rfc2018_sack_blocks_of_nonsense_change_nothing() {
    let mut peer = Peer::new(10);
    let beyond = [(5 * MSS, 11 * MSS)];
    let reversed = [(5 * MSS, 4 * MSS)];
    let empty = [(5 * MSS, 5 * MSS)];
    let far = [(1 << 31, (1 << 31) + 5)];
    for blocks in [beyond, reversed, empty, far] {
        peer.ack(MSS, &blocks);
        assert_eq!(peer.sacked_bytes(), 0, "{blocks:?}");
    }
    assert_eq!(peer.counters.sack_discard, 4);
    assert!(peer.sender.board.lost().is_empty());
}

#[test]
fn rfc2018_overlapping_and_repeated_blocks_count_once() {
    let mut peer = Peer::new(10);
    let outcome = peer.ack(
        0,
        &[(4 * MSS, 6 * MSS), (5 * MSS, 7 * MSS), (4 * MSS, 7 * MSS)],
    );
    assert_eq!(outcome.delivered_bytes, 3 * MSS);
    assert_eq!(peer.ack(0, &[(4 * MSS, 7 * MSS)]).delivered_bytes, 0);
    assert_eq!(peer.sacked_bytes(), 3 * MSS);
}

#[test]
fn rfc2018_8_a_receiver_that_drops_what_it_sacked() {
    let mut peer = Peer::new(10);
    peer.ack(0, &[(2 * MSS, 10 * MSS)]);
    // The first two come; what was SACKed does not follow.
    peer.ack(2 * MSS, &[]);
    while let Some((_, at)) = peer.sender.timer() {
        peer.now = at;
        if peer.sender.on_timer(at, &mut peer.counters) == TimerAction::TimedOut {
            break;
        }
    }
    assert_eq!(peer.counters.sack_reneging, 1);
    assert_eq!(peer.sacked_bytes(), 0);
    let again = peer.sender.next_retransmission(64_000);
    assert_eq!(again, Some(SeqRange::of(FIRST + 2 * MSS, MSS)));
}

/// What was sent twice makes duplicates right after the recovery: of them no other begins.
#[test]
fn rfc6582_3_2_step_1_duplicates_of_a_recovery_start_no_other() {
    let mut peer = Peer::with(10, false);
    for _ in 0..3 {
        peer.ack(0, &[]);
    }
    assert_eq!(peer.counters.reno_recovery, 1);
    peer.send(4);
    peer.ack(10 * MSS, &[]);
    for _ in 0..5 {
        peer.ack(10 * MSS, &[]);
    }
    assert_eq!(peer.counters.reno_recovery, 1);
    peer.ack(11 * MSS, &[]);
    for _ in 0..3 {
        peer.ack(11 * MSS, &[]);
    }
    assert_eq!(peer.counters.reno_recovery, 2);
}

#[test]
fn rfc3465_divided_acks_grow_cwnd_no_faster() {
    let mut whole = Peer::new(10);
    whole.ack(5 * MSS, &[]);
    let mut divided = Peer::new(10);
    for bytes in (10..=5 * MSS).step_by(10) {
        divided.ack(bytes, &[]);
    }
    assert_eq!(divided.sender.cwnd(), whole.sender.cwnd());
}

#[test]
fn rfc5681_acks_of_what_was_not_sent_are_counted_and_ignored() {
    let mut peer = Peer::new(10);
    assert_eq!(peer.ack(11 * MSS, &[]), AckOutcome::default());
    assert_eq!(peer.counters.optimistic_acks, 1);
    assert_eq!(peer.sender.snd_una(), FIRST);
}

/// Each entry costs memory: blocks of single bytes may cut them only so far.
#[test]
fn single_bytes_sacked_do_not_fill_memory() {
    let mut peer = Peer::new(40);
    for byte in (1..20 * MSS).step_by(2) {
        peer.ack(0, &[(byte, byte + 1)]);
    }
    assert!(peer.sender.board.len() < 200, "{}", peer.sender.board.len());
}

proptest! {
    /// Whatever comes: nothing panics, the accounts agree, and a timer runs while something is in flight.
    #[test]
    fn any_acks_and_timers(ops in prop::collection::vec((0u8..8, 0u32..60_000, 0u32..60_000, 0u32..3_000), 1..120), rack: bool, sack: bool) {
        let config = SenderConfig::new(
            &TcpConfig { rack, ..TcpConfig::lan() }, MSS, sack, Ns::from_ms(1));
        let mut now = Ns::from_ms(1000);
        let mut counters = Counters::default();
        let mut sender = Sender::new(&config, FIRST, now);
        for (op, a, b, late) in ops {
            now = now + Ns::from_us(u64::from(late));
            match op {
                0 | 1 => {
                    let bytes = sender.sendable_new(now, a);
                    sender.sent(now, SeqRange::of(sender.snd_nxt(), bytes), SentKind::Fresh, &mut counters);
                }
                2 => {
                    if let Some(range) = sender.next_retransmission(a.max(1)) {
                        sender.sent(now, range, SentKind::Retransmission, &mut counters);
                    }
                }
                3 => if let TimerAction::Probe { last } = sender.on_timer(now, &mut counters) {
                    sender.sent(now, last, SentKind::TailProbe, &mut counters);
                },
                4 => {
                    if let Some((_, at)) = sender.timer() {
                        now = now.max(at);
                    }
                }
                _ => {
                    let una = sender.snd_una();
                    let sack = [SeqRange::new(una + a, una + b), SeqRange::new(una + b, una + a + late)];
                    let ack = Ack {
                        ack: una + if op == 5 { late } else { 0 },
                        sack: &sack,
                        ts_echo: (op == 6).then_some(Ns(now.0 / 2)),
                        carries_data: false,
                        changes_window: false,
                        unsent_bytes: a,
                    };
                    sender.acknowledged(now, &ack, &mut counters);
                }
            }
            let entries: u32 = sender.board.entries().map(|e| e.bytes).sum();
            prop_assert_eq!(entries, sender.flight_bytes());
            let of = |state| sender.board.entries().filter(|e| e.state == state).map(|e| e.bytes).sum::<u32>();
            use super::super::entry::EntryState;
            prop_assert_eq!(of(EntryState::InFlight), sender.board.in_flight_bytes());
            prop_assert_eq!(of(EntryState::Sacked), sender.board.sacked().bytes());
            prop_assert_eq!(of(EntryState::Lost), sender.board.lost().bytes());
            let sacked: u32 = sender.board.entries().filter(|e| e.state == EntryState::Sacked).map(|e| u32::from(e.segments)).sum();
            prop_assert_eq!(sacked, sender.board.sacked_segments());
            prop_assert_eq!(sender.flight_bytes() > 0, sender.timers.retransmission.is_some() || sender.timers.probe.is_some());
        }
    }
}
