//! Whatever happens in whatever order: no entry is forgotten, no wait is without an end.
use super::*;
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = PolicyKind> {
    let limit = prop_oneof![1..4u32, 1..u32::MAX];
    let time = (0..=HOLD_MAX.0).prop_map(Ns);
    prop_oneof![
        Just(PolicyKind::Plain),
        Just(PolicyKind::Suppress),
        Just(PolicyKind::EventIdx),
        Just(PolicyKind::Adaptive),
        limit.clone().prop_map(|limit| PolicyKind::Tam { limit }),
        limit.clone().prop_map(|limit| PolicyKind::Batch { limit }),
        (time.clone(), limit.clone()).prop_map(|(time, limit)| PolicyKind::Ahc { time, limit }),
        (time.clone(), limit.clone())
            .prop_map(|(time, limit)| PolicyKind::AhcWindow { time, limit }),
        (limit, time).prop_map(|(packets, time)| PolicyKind::Coalesce { packets, time }),
    ]
}

fn peer() -> impl Strategy<Value = Peer> {
    prop_oneof![Just(Peer::Asleep), Just(Peer::Awake)]
}

/// An event and the time since the one before.
fn event() -> impl Strategy<Value = (u64, Event)> {
    let published = (0..4u32, 0..4u32, peer()).prop_map(|(waiting, free, peer)| Event::Published {
        waiting,
        free,
        peer,
    });
    let notified = (any::<u64>(), any::<bool>()).prop_map(|(cost, woke)| Event::Notified {
        cost: Ns(cost),
        woke,
    });
    let due = peer().prop_map(|peer| Event::Due { peer });
    let gap = prop_oneof![0..10u64, 0..1_000_000u64, any::<u64>()];
    (gap, prop_oneof![4 => published, 1 => due, 1 => notified])
}

/// A rule that wishes what it likes, and promises nothing.
struct Wild(Vec<Wish>);

impl Rule for Wild {
    fn wish(&mut self, _: Seen) -> Wish {
        self.0.rotate_left(1);
        self.0[0]
    }
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let wish = prop_oneof![
        1 => Just(Wish::Force),
        1 => Just(Wish::Ask),
        4 => Just(Wish::Batch),
        4 => any::<u64>().prop_map(|until| Wish::Wait(Ns(until))),
    ];
    prop::collection::vec(wish, 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_forgotten(kind in kind(), events in prop::collection::vec(event(), 1..200)) {
        check(Policy::new(kind).expect("a fair policy"), events)?;
    }

    #[test]
    fn no_rule_can_stall_a_queue(
        wishes in wishes(), events in prop::collection::vec(event(), 1..200)
    ) {
        check(Policy::with_rule(Box::new(Wild(wishes))), events)?;
    }
}

fn check(mut policy: Policy, events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let mut now = Ns(0);
    let mut oldest = None;
    for (gap, event) in events {
        now = now + Ns(gap);
        if matches!(event, Event::Published { .. }) {
            oldest = oldest.or(Some(now));
        }
        let action = policy.on(event, now);
        match action {
            Action::Notify | Action::Rest => {
                prop_assert_eq!(policy.unannounced(), 0);
                oldest = None;
            }
            // Only while another one is there and fits.
            Action::More => {
                let follows = matches!(
                    event,
                    Event::Published {
                        waiting: 1..,
                        free: 1..,
                        ..
                    }
                );
                prop_assert!(follows, "{:?} after {:?}", action, event);
            }
            Action::Hold { until } => {
                let bound = oldest.expect("something is held") + HOLD_MAX;
                prop_assert!(
                    until <= bound || until == now,
                    "{:?} after {:?}",
                    action,
                    event
                );
                // With a full ring only the peer can move.
                let full = matches!(event, Event::Published { free: 0, .. });
                prop_assert!(!full, "{:?} with a full ring", action);
            }
        }
        // A peer that asks for it is notified of what is not held back.
        if let (Action::Rest, Event::Published { peer, .. }) = (action, event) {
            prop_assert_eq!(peer, Peer::Awake);
        }
    }
    // The end of the longest hold announces what is left.
    if policy.unannounced() > 0 {
        let end = oldest.expect("unannounced") + HOLD_MAX;
        let peer = Peer::Asleep;
        let action = policy.on(Event::Due { peer }, end.max(now));
        prop_assert_eq!(action, Action::Notify);
    }
    let counts = policy.counts();
    prop_assert_eq!(counts.batches.iter().sum::<u64>(), counts.notified);
    Ok(())
}
