//! Both ends in one thread, one step at a time: every kick, call and batch exactly.
use super::*;
use crate::Ns;
use crate::end::{Back, Front};
use crate::policy::{BATCH_BUCKETS, PolicyKind};
use proptest::prelude::*;

/// A driver that sends, a device that takes, and two doorbells with counters.
struct Pair {
    memory: Memory,
    front: Front,
    back: Back,
    now: Ns,
    to_send: u32,
    kicks: u32,
    calls: u32,
    device_awake: bool,
    interrupt: bool,
    served: Vec<u32>,
    reclaimed: u32,
    /// Ring full: the driver sleeps until it is called.
    stopped: bool,
}

impl Pair {
    fn new(kick: &str, call: &str, size: u16, event_idx: bool, packed: bool) -> Pair {
        let kind = |text: &str| text.parse::<PolicyKind>().expect("a policy");
        let memory = memory();
        let (mut driver, mut device) = if packed {
            packed_ends(&memory, size, features(event_idx))
        } else {
            split_ends(&memory, size, features(event_idx))
        };
        driver.enable_notification(&memory, 0).expect("in memory");
        device.enable_notification(&memory, 0).expect("in memory");
        Pair {
            front: Front::new(driver, kind(kick)).expect("fair"),
            back: Back::new(device, kind(call)).expect("fair"),
            memory,
            now: Ns(0),
            to_send: 0,
            kicks: 0,
            calls: 0,
            device_awake: false,
            interrupt: false,
            served: Vec::new(),
            reclaimed: 0,
            stopped: false,
        }
    }

    fn rung(&mut self, kick: bool) {
        self.kicks += u32::from(kick);
        self.device_awake |= kick;
    }

    fn called(&mut self, call: bool) {
        self.calls += u32::from(call);
        self.interrupt |= call;
    }

    /// The driver's next step; false when it has none.
    fn drive(&mut self) -> bool {
        if self.interrupt {
            self.interrupt = false;
            self.front
                .queue
                .disable_notification(&self.memory)
                .expect("in memory");
            while {
                while self
                    .front
                    .queue
                    .next_used(&self.memory)
                    .expect("fair")
                    .is_some()
                {
                    self.reclaimed += 1;
                }
                self.front
                    .queue
                    .enable_notification(&self.memory, 0)
                    .expect("fair")
            } {}
            self.stopped = false;
            return true;
        }
        if self.front.notifier().due(self.now) {
            let kick = self.front.due(&self.memory, self.now).expect("fair");
            self.rung(kick);
            return true;
        }
        if self.stopped || self.to_send == 0 {
            return false;
        }
        if self.front.queue.free_descriptors() == 0 {
            // Sleeps until called, unless something came back meanwhile.
            self.stopped = !self
                .front
                .queue
                .enable_notification(&self.memory, 0)
                .expect("fair");
            self.interrupt |= !self.stopped;
            return true;
        }
        self.to_send -= 1;
        let number = self.served.len() as u32 + self.to_send;
        let segment = [buffer(0, 60 + number % 3, false)];
        let kick = self
            .front
            .add(&self.memory, &segment, self.to_send, self.now);
        self.rung(kick.expect("free").kick);
        true
    }

    /// The device's next step: one entry, or going to sleep.
    fn serve(&mut self) -> bool {
        if self.back.notifier().due(self.now) {
            let call = self.back.due(&self.memory, self.now).expect("fair");
            self.called(call);
            return true;
        }
        if !self.device_awake {
            return false;
        }
        self.back
            .queue
            .disable_notification(&self.memory)
            .expect("in memory");
        match self.back.pop(&self.memory).expect("fair") {
            Some(chain) => {
                self.served.push(chain.segments[0].len);
                let call = self.back.done(&self.memory, chain.id, 0, true, self.now);
                self.called(call.expect("in memory"));
            }
            None => {
                self.device_awake = self
                    .back
                    .queue
                    .enable_notification(&self.memory, 0)
                    .expect("fair")
            }
        }
        true
    }

    /// Nothing moves: time goes on to the next hold's end; false when there is none.
    fn pass_time(&mut self) -> bool {
        let holds = [self.front.notifier().hold(), self.back.notifier().hold()];
        match holds.into_iter().flatten().min() {
            Some(until) => {
                self.now = self.now.max(until);
                true
            }
            None => false,
        }
    }

    /// A burst is added whole, then the device works it off, then the driver takes it back.
    fn burst(&mut self, packets: u32) {
        self.to_send += packets;
        while self.drive() || self.serve() || self.pass_time() {}
    }
}

/// How many batches of 2^n … 2^(n+1)-1 entries there were: n, and the number.
type Batches = &'static [(usize, u64)];

/// Bursts of 16 through a ring of 64, 100 times: every kick and every call, by what it announced.
#[test]
fn kicks_and_calls_by_policy() {
    const ONES: Batches = &[(0, 1_600)];
    const BURSTS: Batches = &[(4, 100)];
    for (kick, call, event_idx, kicks, calls) in [
        ("plain", "plain", true, ONES, ONES),
        // The device does not run before the burst is in the ring: a flag comes too late.
        ("suppress", "suppress", false, ONES, ONES),
        // The first packet passes the index. The driver takes each call at once and asks anew.
        ("event-idx", "event-idx", true, &[(0, 100)], ONES),
        ("event-idx", "batch", true, &[(0, 100)], BURSTS),
        ("tam", "batch", false, BURSTS, BURSTS),
        ("tam", "batch", true, BURSTS, BURSTS),
        ("tam:4", "batch:4", false, &[(2, 400)], &[(2, 400)]),
        ("batch:4", "batch:4", true, &[(2, 100)], &[(2, 400)]),
        ("ahc:50:64", "batch", true, BURSTS, BURSTS),
        // Five, five, five, and one at the end of the time.
        ("ahc:50:5", "batch", true, &[(0, 100), (2, 300)], BURSTS),
        ("coal:8:100", "coal:8:100", false, &[(3, 200)], &[(3, 200)]),
        ("adaptive", "adaptive", true, BURSTS, BURSTS),
    ] {
        for packed in [false, true] {
            let mut pair = Pair::new(kick, call, 64, event_idx, packed);
            for _ in 0..100 {
                pair.burst(16);
            }
            let name = format!("{kick} {call} {event_idx} {packed}");
            let through = (pair.served.len(), pair.reclaimed);
            assert_eq!(through, (1_600, 1_600), "{name}");
            let rung = [pair.kicks, pair.calls].map(u64::from);
            let counts = [
                pair.front.notifier().policy().counts().batches,
                pair.back.notifier().policy().counts().batches,
            ];
            assert_eq!(counts, [kicks, calls].map(histogram), "{name}");
            assert_eq!(
                counts.map(|batches| batches.iter().sum::<u64>()),
                rung,
                "{name}"
            );
        }
    }
}

fn histogram(batches: Batches) -> [u64; BATCH_BUCKETS] {
    let mut all = [0; BATCH_BUCKETS];
    for (bucket, number) in batches {
        all[*bucket] = *number;
    }
    all
}

#[test]
fn a_full_ring_is_kicked_and_goes_on() {
    for packed in [false, true] {
        let mut pair = Pair::new("tam", "batch", 64, true, packed);
        pair.burst(100);
        assert_eq!((pair.kicks, pair.calls), (2, 2));
        let counts = pair.front.notifier().policy().counts();
        // Batches of 64 and of 36.
        assert_eq!((counts.batches[6], counts.batches[5]), (1, 1));
        assert_eq!((counts.full, counts.announced), (1, 100));
    }
}

fn any_policy() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "plain",
        "suppress",
        "event-idx",
        "tam",
        "tam:3",
        "batch",
        "batch:3",
        "ahc:50:64",
        "ahc:10:2",
        "ahc-window:50:8",
        "coal:8:100",
        "coal:0:5",
        "coal:3:0",
        "adaptive",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Steps in any order, packets at any time: when nothing can move any more, all came through. A lost
    /// notification, or a driver and a device that wait for each other, would leave some.
    #[test]
    fn no_order_of_steps_leaves_a_packet(
        kick in any_policy(), call in any_policy(), event_idx in any::<bool>(), packed in any::<bool>(),
        size in prop::sample::select(vec![1u16, 2, 4, 16]),
        steps in prop::collection::vec((0..4u8, 0..30u64), 0..300),
    ) {
        let mut pair = Pair::new(kick, call, size, event_idx, packed);
        let mut sent = 0;
        for (step, gap) in steps {
            pair.now = pair.now + Ns(gap * 1_000);
            match step {
                0 => {
                    pair.to_send += gap as u32 % 4;
                    sent += gap as u32 % 4;
                }
                1 | 2 => { pair.drive(); }
                _ => { pair.serve(); }
            }
        }
        while pair.drive() || pair.serve() || pair.pass_time() {}
        prop_assert_eq!(pair.served.len() as u32, sent);
        prop_assert_eq!(pair.reclaimed, sent);
    }
}

mod observed;
