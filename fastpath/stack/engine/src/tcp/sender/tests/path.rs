//! A sender and a receiver with a path between them, in virtual time.
use super::super::*;
use super::receiver::{AckSegment, Receiver};
use crate::config::TcpConfig;
use crate::tcp::seq::{Seq, SeqRange};
use crate::{Counters, Ns};
use std::collections::BTreeMap;

pub(super) const MSS: u32 = 1000;
pub(super) const FIRST: Seq = Seq(u32::MAX - 100_000);

/// What becomes of one transmitted segment. `nth` counts all transmissions from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transmitted {
    pub(super) nth: u64,
    /// Segment number in the stream.
    pub(super) segment: u32,
    pub(super) kind: SentKind,
    /// Of this segment.
    pub(super) transmission: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Arrives,
    Lost,
    Late(Ns),
    Twice,
}

enum Event {
    Data(SeqRange, Ns),
    Ack(AckSegment),
}

pub(super) struct Options {
    pub(super) config: TcpConfig,
    pub(super) one_way: Ns,
    pub(super) bits_per_s: u64,
    pub(super) queue_bytes: u64,
    pub(super) ack_delay: Ns,
    /// Of one frame.
    pub(super) gso_bytes: u32,
    pub(super) window_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            config: TcpConfig::default(),
            one_way: Ns::from_us(500),
            bits_per_s: 10_000_000_000,
            queue_bytes: 10_000_000,
            ack_delay: Ns::from_ms(40),
            gso_bytes: 64_000,
            window_bytes: 4 << 20,
        }
    }
}

pub(super) struct Path {
    pub(super) now: Ns,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) counters: Counters,
    options: Options,
    pub(super) unsent: u64,
    events: BTreeMap<(Ns, u64), Event>,
    nth_event: u64,
    nth: u64,
    transmissions: BTreeMap<u32, u32>,
    link_free: Ns,
    fate: Box<dyn FnMut(Transmitted) -> Fate>,
    ack_lost: Box<dyn FnMut(u64) -> bool>,
    acks: u64,
    pub(super) sent_log: Vec<(Ns, Transmitted)>,
    /// After each event, which takes time by the window.
    pub(super) checked: bool,
}

impl Path {
    pub(super) fn new(options: Options, fate: impl FnMut(Transmitted) -> Fate + 'static) -> Path {
        let config = SenderConfig::new(&options.config, MSS, options.config.sack, Ns::from_ms(1));
        let now = Ns::from_ms(1000);
        let mut sender = Sender::new(&config, FIRST, now);
        sender.handshake_rtt(now, Some(options.one_way + options.one_way), 0);
        Path {
            now,
            sender,
            receiver: Receiver::new(
                FIRST,
                options.config.sack,
                options.config.timestamps,
                options.ack_delay,
                MSS,
            ),
            counters: Counters::default(),
            options,
            unsent: 0,
            events: BTreeMap::new(),
            nth_event: 0,
            nth: 0,
            transmissions: BTreeMap::new(),
            link_free: now,
            fate: Box::new(fate),
            ack_lost: Box::new(|_| false),
            acks: 0,
            sent_log: Vec::new(),
            checked: true,
        }
    }

    pub(super) fn lose_acks(&mut self, lost: impl FnMut(u64) -> bool + 'static) {
        self.ack_lost = Box::new(lost);
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.unsent += bytes;
        self.transmit();
    }

    /// Until all is acknowledged, or `until`.
    pub(super) fn run(&mut self, until: Ns) {
        while !(self.unsent == 0 && self.sender.flight_bytes() == 0) && self.step(until) {}
    }

    pub(super) fn run_for(&mut self, time: Ns) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    pub(super) fn done(&self) -> bool {
        self.unsent == 0 && self.sender.flight_bytes() == 0
    }

    fn step(&mut self, until: Ns) -> bool {
        let event = self.events.first_key_value().map(|(k, _)| k.0);
        let timer = self.sender.timer().map(|t| t.1);
        let next = [event, timer, self.receiver.ack_at];
        let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(at);
        if self.receiver.ack_at.is_some_and(|a| a <= self.now) {
            if let Some(ack) = self.receiver.delayed(self.now) {
                self.send_ack(ack);
            }
        } else if event.is_some_and(|e| e <= self.now) {
            match self.events.pop_first().unwrap().1 {
                Event::Data(range, stamp) => {
                    if let Some(ack) = self.receiver.receive(self.now, range, stamp) {
                        self.send_ack(ack);
                    }
                }
                Event::Ack(ack) => self.take_ack(&ack),
            }
        } else {
            self.timer();
        }
        self.transmit();
        if self.checked {
            self.check();
        }
        true
    }

    fn take_ack(&mut self, ack: &AckSegment) {
        if ack.ack.before(self.sender.snd_una()) {
            return;
        }
        let ack = Ack {
            ack: ack.ack,
            sack: &ack.sack,
            ts_echo: ack.ts_echo,
            carries_data: false,
            changes_window: false,
            unsent_bytes: self.unsent.min(1 << 30) as u32,
        };
        self.sender.acknowledged(self.now, &ack, &mut self.counters);
    }

    fn timer(&mut self) {
        match self.sender.on_timer(self.now, &mut self.counters) {
            TimerAction::Probe { last } => {
                let new = self.unsent.min(u64::from(MSS)) as u32;
                if new > 0 {
                    let range = SeqRange::of(self.sender.snd_nxt(), new);
                    self.unsent -= u64::from(new);
                    self.put(range, SentKind::TailProbe);
                } else {
                    self.put(last, SentKind::TailProbe);
                }
            }
            TimerAction::Nothing | TimerAction::Retransmit | TimerAction::TimedOut => {}
        }
    }

    fn transmit(&mut self) {
        while let Some(range) = self.sender.next_retransmission(self.options.gso_bytes) {
            self.put(range, SentKind::Retransmission);
        }
        loop {
            let room = self
                .options
                .window_bytes
                .saturating_sub(self.sender.flight_bytes());
            let want = self.unsent.min(u64::from(room)) as u32;
            let bytes = self
                .sender
                .sendable_new(self.now, want)
                .min(self.options.gso_bytes);
            if bytes == 0 {
                break;
            }
            self.unsent -= u64::from(bytes);
            let range = SeqRange::of(self.sender.snd_nxt(), bytes);
            self.put(range, SentKind::Fresh);
        }
    }

    /// A frame, cut into segments by the device.
    fn put(&mut self, range: SeqRange, kind: SentKind) {
        self.sender.sent(self.now, range, kind, &mut self.counters);
        let mut start = range.start;
        while start.before(range.end) {
            let segment = SeqRange::new(start, (start + MSS).earlier(range.end));
            self.put_segment(segment, kind);
            start = segment.end;
        }
    }

    fn put_segment(&mut self, range: SeqRange, kind: SentKind) {
        let segment = (range.start - FIRST) / MSS;
        let times = self.transmissions.entry(segment).or_default();
        let transmitted = Transmitted {
            nth: self.nth,
            segment,
            kind,
            transmission: *times,
        };
        *times += 1;
        self.nth += 1;
        self.sent_log.push((self.now, transmitted));
        let bits = u64::from(range.len() + 54) * 8;
        let free = self.link_free.max(self.now);
        let queued =
            free.since(self.now).0 as u128 * self.options.bits_per_s as u128 / 8_000_000_000;
        if queued as u64 > self.options.queue_bytes {
            return;
        }
        self.link_free = free + Ns(bits * 1_000_000_000 / self.options.bits_per_s);
        let at = self.link_free + self.options.one_way;
        let stamp = self.now;
        match (self.fate)(transmitted) {
            Fate::Lost => {}
            Fate::Arrives => self.push(at, Event::Data(range, stamp)),
            Fate::Late(by) => self.push(at + by, Event::Data(range, stamp)),
            Fate::Twice => {
                self.push(at, Event::Data(range, stamp));
                self.push(at, Event::Data(range, stamp));
            }
        }
    }

    fn send_ack(&mut self, ack: AckSegment) {
        self.acks += 1;
        if !(self.ack_lost)(self.acks - 1) {
            self.push(self.now + self.options.one_way, Event::Ack(ack));
        }
    }

    fn push(&mut self, at: Ns, event: Event) {
        self.events.insert((at, self.nth_event), event);
        self.nth_event += 1;
    }

    /// What holds after each event.
    fn check(&self) {
        let sender = &self.sender;
        if sender.flight_bytes() > 0 {
            let timers = &sender.timers;
            assert!(
                timers.retransmission.is_some() != timers.probe.is_some(),
                "{timers:?}"
            );
        } else {
            assert_eq!(sender.timer(), None);
        }
        let total: u32 = sender.board.entries().map(|e| e.bytes).sum();
        assert_eq!(total, sender.flight_bytes());
        let bytes = |again: bool| {
            let flying = sender
                .board
                .entries()
                .filter(|e| e.state == super::super::entry::EntryState::InFlight);
            let of = flying.filter(|e| e.retransmitted || !again);
            of.map(|e| e.bytes).sum::<u32>()
        };
        let board = &sender.board;
        assert_eq!(bytes(false), board.in_flight_bytes());
        assert_eq!(bytes(true), board.retransmitted_in_flight_bytes());
    }
}
