//! What each policy does, step by step.
use super::*;
use Action::{Hold, More, Notify, Rest};
use Peer::{Asleep, Awake};

fn published(waiting: u32, free: u32, peer: Peer) -> Event {
    Event::Published {
        waiting,
        free,
        peer,
    }
}

/// Events with the time of each in ns, and the actions that must follow.
fn expect(text: &str, steps: &[(u64, Event, Action)]) {
    let mut policy = policy(text);
    for (n, (at, event, action)) in steps.iter().enumerate() {
        let did = policy.on(*event, Ns(*at));
        assert_eq!(did, *action, "{text}, step {n}: {event:?}");
    }
}

#[test]
fn plain_notifies_each_whatever_the_peer_asks() {
    let steps = [
        (0, published(9, 9, Asleep), Notify),
        (1, published(0, 9, Awake), Notify),
        (2, published(0, 0, Awake), Notify),
    ];
    expect("plain", &steps);
}

#[test]
fn suppression_and_event_index_ask_the_peer() {
    let steps = [
        (0, published(9, 9, Asleep), Notify),
        (1, published(9, 9, Awake), Rest),
        (2, published(0, 0, Asleep), Notify),
    ];
    expect("suppress", &steps);
    expect("event-idx", &steps);
}

#[test]
fn tam_notifies_once_for_what_waits() {
    let steps = [
        (0, published(2, 9, Asleep), More),
        (1, published(1, 8, Asleep), More),
        (2, published(0, 7, Asleep), Notify),
        // One alone is not held back: there is no timer.
        (9, published(0, 7, Asleep), Notify),
        // The original tests no suppression.
        (10, published(0, 7, Awake), Notify),
    ];
    expect("tam", &steps);
}

#[test]
fn tam_notifies_at_a_full_ring_and_at_its_limit() {
    let full = [
        (0, published(5, 1, Asleep), More),
        (1, published(4, 0, Awake), Notify),
    ];
    expect("tam", &full);
    let limit = [
        (0, published(5, 9, Asleep), More),
        (1, published(4, 8, Asleep), Notify),
        (2, published(3, 7, Asleep), More),
        (3, published(2, 6, Asleep), Notify),
    ];
    expect("tam:2", &limit);
}

#[test]
fn batch_is_tam_that_asks() {
    let steps = [
        (0, published(1, 9, Awake), More),
        (1, published(0, 8, Awake), Rest),
        (2, published(1, 9, Asleep), More),
        (3, published(0, 8, Asleep), Notify),
        (4, published(1, 0, Awake), Rest),
        (5, published(1, 0, Asleep), Notify),
    ];
    expect("batch", &steps);
}

#[test]
fn ahc_kicks_at_its_time_or_its_limit() {
    let due = Event::Due { peer: Awake };
    let steps = [
        (0, published(0, 9, Asleep), Hold { until: Ns(50_000) }),
        (1_000, published(0, 8, Asleep), Hold { until: Ns(50_000) }),
        (49_999, due, Hold { until: Ns(50_000) }),
        (50_000, due, Notify),
        (60_000, published(0, 9, Asleep), Hold { until: Ns(110_000) }),
        (60_001, published(1, 8, Asleep), More),
        (60_002, published(0, 7, Asleep), Notify),
    ];
    expect("ahc:50:3", &steps);
}

#[test]
fn ahc_does_not_wait_with_a_full_ring() {
    expect("ahc:50:64", &[(0, published(3, 0, Asleep), Notify)]);
}

#[test]
fn ahc_window_waits_only_where_its_limit_fills_in_time() {
    let mut policy = policy("ahc-window:50:4");
    // 2.5 entries in 50 us: less than its limit of 4. No time.
    let action = |policy: &mut Policy, at| policy.on(published(0, 9, Asleep), Ns(at));
    for n in 0..20 {
        assert_eq!(action(&mut policy, n * 20_000), Notify, "{n}");
    }
    // One each microsecond: 4 take 4 us. The window that ends in the midst of the change counts both.
    let mut holds = Vec::new();
    for n in 0..400 {
        let at = 1_000_000 + n * 1_000;
        if let Hold { until } = action(&mut policy, at) {
            holds.push(until.0 - at);
        }
    }
    assert_eq!(holds[..4], [4_000, 3_000, 2_000, 4_000]);
    assert!(holds.len() > 200, "{}", holds.len());
}

#[test]
fn coalescing_takes_whichever_comes_first_and_asks() {
    let due = |peer| Event::Due { peer };
    let steps = [
        (0, published(0, 9, Asleep), Hold { until: Ns(10_000) }),
        (1, published(0, 9, Asleep), Notify),
        (2, published(0, 9, Asleep), Hold { until: Ns(10_002) }),
        (10_002, due(Asleep), Notify),
        (20_000, published(0, 9, Asleep), Hold { until: Ns(30_000) }),
        (30_000, due(Awake), Rest),
    ];
    expect("coal:2:10", &steps);
    // No parameters, as after a reset: each.
    expect("coal:0:0", &[(0, published(7, 9, Asleep), Notify)]);
    // Packets alone would wait for ever for the second.
    expect("coal:2:0", &[(0, published(0, 9, Asleep), Notify)]);
    let time_alone = [
        (0, published(0, 9, Asleep), Hold { until: Ns(10_000) }),
        (9_999, published(0, 9, Asleep), Hold { until: Ns(10_000) }),
    ];
    expect("coal:0:10", &time_alone);
}

#[test]
fn adaptive_holds_back_for_the_measured_price_while_gaps_are_shorter() {
    let notified = |cost| Event::Notified {
        cost: Ns(cost),
        woke: true,
    };
    let asleep = published(0, 9, Asleep);
    let steps = [
        // The first: no gap is known.
        (0, asleep, Notify),
        (0, notified(3_000), Rest),
        // A gap of 1 us, shorter than 3 us.
        (1_000, asleep, Hold { until: Ns(4_000) }),
        (1_500, asleep, Hold { until: Ns(4_000) }),
        (4_000, Event::Due { peer: Asleep }, Notify),
        // 3,000 + (11,000 - 3,000) / 8.
        (4_000, notified(11_000), Rest),
        (4_500, asleep, Hold { until: Ns(8_500) }),
        (4_600, published(0, 9, Awake), Rest),
        // What woke nobody says nothing of the price.
        (
            4_600,
            Event::Notified {
                cost: Ns(1),
                woke: false,
            },
            Rest,
        ),
        (4_700, asleep, Hold { until: Ns(8_700) }),
        (4_800, published(0, 0, Asleep), Notify),
        // Who was held back waits no longer than the price, whatever comes behind.
        (4_900, asleep, Hold { until: Ns(8_900) }),
        (8_899, published(5, 9, Asleep), More),
        (8_900, published(4, 9, Asleep), Notify),
        // A long gap: the average is above the price.
        (1_000_000, asleep, Notify),
        (1_000_500, asleep, Notify),
    ];
    expect("adaptive", &steps);
}

#[test]
fn adaptive_holds_nothing_back_while_notifications_take_less_than_half_of_the_time() {
    let notified = Event::Notified {
        cost: Ns(3_000),
        woke: true,
    };
    let (asleep, awake) = (published(0, 9, Asleep), published(0, 9, Awake));
    let mut steps = vec![(0, asleep, Notify), (0, notified, Rest)];
    // All 3 us went to the first entry: with gaps of 1 us, 20 later it is 3 us x (7/8)^20 for each.
    steps.extend((1..=20).map(|us| (us * 1_000, awake, Rest)));
    steps.push((21_000, asleep, Notify));
    // One of two is notified: more than half.
    for us in [22, 24, 26, 28] {
        steps.push((us * 1_000, notified, Rest));
        steps.push((us * 1_000, awake, Rest));
        steps.push((us * 1_000 + 1_000, awake, Rest));
    }
    let until = Ns(33_000);
    steps.push((30_000, asleep, Hold { until }));
    expect("adaptive", &steps);
}

#[test]
fn adaptive_publishes_what_waits_for_eight_prices() {
    let steps = [
        (0, published(99, 99, Asleep), More),
        // Prices of 3 us, eight of them.
        (23_999, published(98, 98, Asleep), More),
        (24_000, published(97, 97, Asleep), Notify),
        (24_001, published(96, 96, Awake), Rest),
        // Nothing waits any more, and the batch took longer than the price.
        (30_000, published(1, 96, Asleep), More),
        (33_001, published(0, 95, Asleep), Notify),
    ];
    expect("adaptive", &steps);
}

#[test]
fn a_lost_processor_is_no_price() {
    let mut policy = policy("adaptive");
    for _ in 0..100 {
        let report = Event::Notified {
            cost: Ns(1_000_000_000),
            woke: true,
        };
        policy.on(report, Ns(0));
    }
    assert!(policy.bound() <= Ns(50_000), "{:?}", policy.bound());
}
