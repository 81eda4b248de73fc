use super::*;
use proptest::prelude::*;

const KINDS: [&str; 9] = [
    "plain",
    "suppress",
    "event-idx",
    "tam:8",
    "batch",
    "ahc:50:64",
    "ahc-window:50:64",
    "coal:8:30",
    "adaptive",
];

fn kinds() -> Vec<PolicyKind> {
    KINDS
        .iter()
        .map(|text| text.parse().expect("a policy"))
        .collect()
}

/// Bursts, each with the time before it, its entries, and whether the peer sleeps.
fn bursts() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    let gap = prop_oneof![0..2_000u64, 0..200_000u64];
    prop::collection::vec((gap, 1..20u32, any::<bool>()), 1..60)
}

const STEP_NS: u64 = 300;

proptest! {
    /// The policy at work is its own shadow: its holds end at their times.
    #[test]
    fn a_shadow_does_what_the_policy_does(bursts in bursts()) {
        for kind in kinds() {
            let mut shadows = Shadows::of([kind]).expect("fair");
            let mut real = Notifier::new(kind).expect("fair");
            let (mut now, mut last) = (Ns(0), Peer::Asleep);
            let due = |real: &mut Notifier, peer, now: Ns| {
                while let Some(until) = real.hold().filter(|until| *until <= now) {
                    real.on(Event::Due { peer }, until);
                }
            };
            for (gap, entries, asleep) in &bursts {
                now = now + Ns(*gap);
                let peer = if *asleep {
Peer::Asleep
} else {
Peer::Awake
};
                for waiting in (0..*entries).rev() {
                    now = now + Ns(STEP_NS);
                    due(&mut real, last, now);
                    real.on(Event::Published { waiting, free: 64, peer }, now);
                    shadows.published(waiting, 64, peer, now);
                    last = peer;
                }
            }
            now = now + Ns::from_us(20_000);
            due(&mut real, last, now);
            let would = shadows.would(now);
            prop_assert_eq!(would[0].policy, kind);
            prop_assert_eq!(&would[0].counts, real.policy().counts());
        }
    }

    /// Nothing is forgotten, whatever the others do, and nothing waits longer than it was held.
    #[test]
    fn each_entry_is_somewhere(bursts in bursts()) {
        let mut shadows = Shadows::of(kinds()).expect("fair");
        let mut now = Ns(0);
        let mut published = 0;
        for (gap, entries, asleep) in bursts {
            now = now + Ns(gap);
            let peer = if asleep { Peer::Asleep } else { Peer::Awake };
            for waiting in (0..entries).rev() {
                // More is said to wait than comes.
                shadows.published(waiting + 1, 64, peer, now);
                published += 1;
            }
            shadows.pause(peer, now);
        }
        let end = now + crate::policy::HOLD_MAX;
        for would in shadows.would(end) {
            prop_assert_eq!(would.counts.published, published);
            prop_assert!(would.waited.0 <= published * would.counts.hold_max.0, "{:?}", would);
        }
        prop_assert!(shadows.all.iter().all(|shadow| shadow.waiting.entries == 0));
    }
}

/// Ten packets, one each microsecond, for a peer that always sleeps.
fn apart(kinds: &[&str], entries: u64) -> Vec<Would> {
    let kinds = kinds
        .iter()
        .map(|text| text.parse::<PolicyKind>().expect("a policy"));
    let mut shadows = Shadows::of(kinds).expect("fair");
    for n in 0..entries {
        shadows.published(0, 64, Peer::Asleep, Ns::from_us(n));
    }
    shadows.would(Ns::from_us(entries + 100))
}

#[test]
fn what_waits_is_summed_up() {
    let would = apart(&["plain", "coal:5:30"], 10);
    let found: Vec<_> = would
        .iter()
        .map(|w| (w.counts.notified, w.waited))
        .collect();
    // Two batches of five, of which the first waits 4 us, the last nothing.
    assert_eq!(found, [(10, Ns(0)), (2, Ns::from_us(20))]);
    assert_eq!(would[1].wait(), Ns(2_000));
}

#[test]
fn advice_weighs_notifications_against_waiting() {
    let of = |kind: &str| kind.parse::<PolicyKind>().expect("a policy");
    let would = apart(&["plain", "coal:5:30", "coal:64:300"], 2_000);
    let to = |advice| match advice {
        Advice::Change { to, .. } => Some(to.policy),
        _ => None,
    };
    let plain = of("plain");
    assert_eq!(to(advise(plain, &would, Ns(3_000))), Some(of("coal:5:30")));
    assert_eq!(
        to(advise(plain, &would, Ns(100_000))),
        Some(of("coal:64:300"))
    );
    assert_eq!(advise(plain, &would, Ns(0)), Advice::Keep { policy: plain });
    // Whoever waits so long already is not told to wait less.
    let slow = of("coal:64:300");
    assert_eq!(advise(slow, &would, Ns(0)), Advice::Keep { policy: slow });
    assert_eq!(
        advise(plain, &apart(&["plain"], 10), Ns(0)),
        Advice::TooFew { published: 10 }
    );
    let said = advise(plain, &would, Ns(3_000)).to_string();
    assert!(
        said.contains("plain notifies 1.000 times a packet; coal:5:30 would 0.200 times"),
        "{said}"
    );
}

fn notified(shadows: &mut Shadows) -> Vec<u64> {
    let would = shadows.would(Ns::from_us(20_000));
    would.iter().map(|would| would.counts.notified).collect()
}

/// One at work woke the peer with the first entry. For a shadow that waited for the second it sleeps on.
#[test]
fn who_was_woken_by_another_still_sleeps_here() {
    for woken in [true, false] {
        let kinds =
            ["event-idx", "batch"].map(|text| text.parse::<PolicyKind>().expect("a policy"));
        let mut shadows = Shadows::of(kinds).expect("fair");
        let first = if woken { Peer::Asleep } else { Peer::Awake };
        shadows.published(1, 64, first, Ns(100));
        shadows.settled(woken, Ns(100));
        shadows.published(0, 64, Peer::Awake, Ns(200));
        shadows.settled(false, Ns(200));
        assert_eq!(notified(&mut shadows), [u64::from(woken); 2]);
    }
}

/// An index asks once: until the one at work has announced too, the ring says the same of each entry.
#[test]
fn who_was_told_by_its_index_is_not_told_again() {
    for (index, calls) in [(true, 1), (false, 3)] {
        let mut shadows = Shadows::of(["event-idx".parse().expect("a policy")]).expect("fair");
        shadows.asked_by_index(index);
        for n in 0..3 {
            shadows.published(2 - n, 64, Peer::Asleep, Ns(n.into()));
        }
        shadows.settled(true, Ns(3));
        assert_eq!(notified(&mut shadows), [calls]);
        shadows.published(0, 64, Peer::Asleep, Ns(4));
        assert_eq!(notified(&mut shadows), [calls + 1]);
    }
}
