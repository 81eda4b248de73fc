//! Cells, exactly; conservation, bounds and repetition for all.
use super::*;
use crate::Ns;

mod cells;
mod properties;

fn setup(kick: &str, call: &str, mpps: f64, burst: u32) -> Setup {
    Setup {
        kick: kick.parse().expect("a policy"),
        call: call.parse().expect("a policy"),
        suppression: Suppression::Flag,
        defer: None,
        costs: Costs::default(),
        load: Load { mpps, burst },
        ring: 1_024,
        packets: 20_000,
        seed: 1,
    }
}

fn defer(entries: u32, us: u64) -> Defer {
    Defer {
        entries,
        time: Ns::from_us(us),
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    let good = setup("tam", "batch", 1.0, 1);
    let refusal = |change: fn(&mut Setup)| {
        let mut bad = good;
        change(&mut bad);
        run(&bad).expect_err("refused").to_string()
    };
    for (said, change) in [
        ("a ring of 0", (|s| s.ring = 0) as fn(&mut Setup)),
        ("a ring of 40000", |s| s.ring = 40_000),
        ("0 packets", |s| s.packets = 0),
        ("NaN Mpps", |s| s.load.mpps = f64::NAN),
        ("0 Mpps", |s| s.load.mpps = 0.0),
        ("bursts of 0", |s| s.load.burst = 0),
        ("no time", |s| s.costs.publish = Ns(0)),
        ("by the event index only", |s| s.defer = Some(defer(4, 20))),
        ("deferred by 0 entries", |s| {
            s.suppression = Suppression::Index;
            s.defer = Some(defer(0, 20));
        }),
        ("and 10001 us", |s| {
            s.suppression = Suppression::Index;
            s.defer = Some(defer(4, 10_001));
        }),
        ("waking of", |s| s.costs.wake = Ns(u64::MAX)),
        ("limit of 0", |s| s.kick = PolicyKind::Tam { limit: 0 }),
    ] {
        let line = refusal(change);
        assert!(line.contains(said), "{said}: {line}");
    }
}
