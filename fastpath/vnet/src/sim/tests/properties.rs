//! Whatever the policies, costs and loads: nothing is lost, nothing stalls, nothing is held too long.
use super::super::*;
use crate::Ns;
use crate::policy::HOLD_MAX;
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = PolicyKind> {
    let limit = 1..2_000u32;
    let time = (0..200_000u64).prop_map(Ns);
    prop_oneof![
        Just(PolicyKind::Plain),
        Just(PolicyKind::Suppress),
        Just(PolicyKind::EventIdx),
        Just(PolicyKind::Adaptive),
        limit.clone().prop_map(|limit| PolicyKind::Tam { limit }),
        limit.clone().prop_map(|limit| PolicyKind::Batch { limit }),
        (time.clone(), limit.clone()).prop_map(|(time, limit)| PolicyKind::Ahc { time, limit }),
        (time.clone(), limit).prop_map(|(time, limit)| PolicyKind::AhcWindow { time, limit }),
        (0..2_000u32, time).prop_map(|(packets, time)| PolicyKind::Coalesce { packets, time }),
    ]
}

fn costs() -> impl Strategy<Value = Costs> {
    let ns = |from| (from..8_000u64).prop_map(Ns);
    (ns(1), ns(0), ns(0), ns(1), ns(0), ns(0)).prop_map(
        |(publish, kick, wake, serve, call, interrupt)| Costs {
            publish,
            kick,
            wake,
            serve,
            call,
            interrupt,
        },
    )
}

prop_compose! {
    fn any_setup()(
        kick in kind(), call in kind(), index in any::<bool>(),
        defer in prop::option::of((1..100u32, 0..100u64)), costs in costs(),
        mpps in prop_oneof![0.001..0.1f64, 0.1..10.0f64], burst in 1..64u32,
        // Small rings are full all the time.
        ring in prop_oneof![1..8u32, 8..2_000u32], packets in 1..600u32, seed in any::<u64>(),
    ) -> Setup {
        let suppression = if index { Suppression::Index } else { Suppression::Flag };
        let defer = defer.filter(|_| index).map(|(entries, us)| super::defer(entries, us));
        Setup { kick, call, suppression, defer, costs, load: Load { mpps, burst }, ring, packets, seed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_and_holds_bounded(setup in any_setup()) {
        let outcome = run(&setup).expect("a fair setup");
        prop_assert!(outcome.conserved(), "{outcome:?}");
        let packets = outcome.packets;
        for counts in [outcome.kick_counts, outcome.call_counts] {
            prop_assert_eq!(counts.published, packets);
            prop_assert_eq!(counts.batches.iter().sum::<u64>(), counts.notified);
            prop_assert!(counts.announced <= packets);
            prop_assert!(counts.notified + counts.suppressed <= packets);
        }
        prop_assert_eq!(outcome.kick_counts.notified, outcome.kicks);
        prop_assert_eq!(outcome.call_counts.notified, outcome.calls);
        // An end that is in the midst of a step, waking up included, when the hold is over finishes it first.
        let Costs { publish, kick, wake, serve, call, interrupt } = setup.costs;
        let step = [publish, kick, wake, serve, call, interrupt].into_iter().max().unwrap_or_default();
        let bound = |kind| hold_bound(kind) + step;
        prop_assert!(outcome.kick_counts.hold_max <= bound(setup.kick), "{outcome:?}");
        prop_assert!(outcome.call_counts.hold_max <= bound(setup.call), "{outcome:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bits(setup in any_setup()) {
        prop_assert_eq!(run(&setup), run(&setup));
    }
}

/// What each policy promises. The adaptive one: the measured price, here below 8 us.
fn hold_bound(kind: PolicyKind) -> Ns {
    match kind {
        PolicyKind::Ahc { time, .. }
        | PolicyKind::AhcWindow { time, .. }
        | PolicyKind::Coalesce { time, .. } => time.min(HOLD_MAX),
        PolicyKind::Adaptive => Ns(8_000),
        _ => Ns(0),
    }
}
