//! What is noted of an end, on real rings; and policies that change while entries are held back.
use super::*;
use crate::shadow::{Shadows, Would};

fn kind(text: &str) -> PolicyKind {
    text.parse().expect("a policy")
}

impl Pair {
    /// Policies that think beside that of the device.
    fn watched(mut self, kinds: &[&str], event_idx: bool) -> Pair {
        let shadows = Shadows::of(kinds.iter().map(|text| kind(text)));
        let mut shadows = Box::new(shadows.expect("fair"));
        shadows.asked_by_index(event_idx);
        self.back.watch.shadows = Some(shadows);
        self
    }

    fn would(&mut self) -> Vec<Would> {
        let now = self.now;
        let shadows = self.back.watch.shadows.as_mut();
        shadows.map_or_else(Vec::new, |shadows| shadows.would(now))
    }

    fn change(&mut self, call: &str) {
        let (memory, now) = (&self.memory, self.now);
        let changed = self.back.change(memory, kind(call), now);
        let (call, _) = changed.expect("fair");
        self.called(call);
        assert_eq!(self.back.notifier().policy().unannounced(), 0);
    }
}

const CALLS: [&str; 8] = [
    "plain",
    "event-idx",
    "tam:4",
    "batch",
    "batch:4",
    "ahc:50:5",
    "coal:8:100",
    "adaptive",
];

/// What the shadow of the policy at work says is what that policy did, to the last batch.
#[test]
fn the_policy_at_work_is_its_own_shadow() {
    for call in CALLS {
        for (packed, event_idx) in [(false, true), (true, true), (false, false), (true, false)] {
            let mut pair = Pair::new("tam", call, 64, event_idx, packed).watched(&CALLS, event_idx);
            for size in 0..100 {
                pair.now = pair.now + Ns(700);
                pair.burst(1 + size % 19);
            }
            let name = format!("{call} {packed} {event_idx}");
            let counts = *pair.back.notifier().policy().counts();
            let would = pair.would();
            let own = would.iter().find(|would| would.policy == kind(call));
            let own = own.expect("among them");
            assert_eq!(own.counts, counts, "{name}");
            let did = pair.back.watch.shadows.as_ref().expect("some").did();
            let said = [did.published, did.notified, did.suppressed];
            let counted = [counts.published, counts.notified, counts.suppressed];
            assert_eq!((said, did.waited), (counted, own.waited), "{name}");
            let announced = counts.notified + counts.suppressed;
            assert_eq!(pair.back.watch.hold.count(), announced, "{name}");
            assert!(pair.back.watch.hold.max() >= counts.hold_max, "{name}");
        }
    }
}

/// What is said of one that sends less is what it sends once it is at work.
#[test]
fn who_would_send_less_does() {
    let calls = |call, event_idx| {
        let mut pair = Pair::new("tam", call, 64, event_idx, false).watched(&CALLS, event_idx);
        (0..100).for_each(|_| pair.burst(16));
        (u64::from(pair.calls), pair.would())
    };
    for event_idx in [false, true] {
        let (_, would) = calls("event-idx", event_idx);
        for less in ["batch", "batch:4", "tam:4"] {
            let said = would.iter().find(|would| would.policy == kind(less));
            let said = said.map(|would| would.counts.notified);
            assert_eq!(said, Some(calls(less, event_idx).0), "{less} {event_idx}");
        }
    }
}

/// Nothing that one policy held back is forgotten by the next.
#[test]
fn a_policy_that_goes_lets_go() {
    for packed in [false, true] {
        let mut pair = Pair::new("plain", "ahc:5000:64", 16, true, packed);
        pair.to_send = 3;
        while pair.drive() || pair.serve() {}
        assert_eq!((pair.calls, pair.reclaimed), (0, 0), "held back");
        pair.change("batch");
        while pair.drive() || pair.serve() {}
        assert_eq!((pair.calls, pair.reclaimed), (1, 3));
        assert_eq!(pair.back.watch.hold.count(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// As [`no_order_of_steps_leaves_a_packet`], with another policy at any time.
    #[test]
    fn no_change_of_policy_leaves_a_packet(
        call in any_policy(), event_idx in any::<bool>(), packed in any::<bool>(),
        size in prop::sample::select(vec![1u16, 2, 4, 16]),
        steps in prop::collection::vec((0..5u8, 0..30u64, any_policy()), 0..300),
    ) {
        let mut pair = Pair::new("event-idx", call, size, event_idx, packed).watched(&CALLS, event_idx);
        let mut sent = 0;
        for (step, gap, next) in steps {
            pair.now = pair.now + Ns(gap * 1_000);
            match step {
                0 => {
                    pair.to_send += gap as u32 % 4;
                    sent += gap as u32 % 4;
                }
                1 | 2 => { pair.drive(); }
                3 => { pair.serve(); }
                _ => pair.change(next),
            }
        }
        while pair.drive() || pair.serve() || pair.pass_time() {}
        prop_assert_eq!(pair.served.len() as u32, sent);
        prop_assert_eq!(pair.reclaimed, sent);
        for would in pair.would() {
            prop_assert_eq!(would.counts.published, u64::from(sent));
        }
    }
}
