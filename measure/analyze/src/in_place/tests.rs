use super::*;
use proptest::prelude::*;

const KNOWN: Known = Known {
    in_a_loop: [45.0; 3],
    most: Some(300.0),
    off: [0.0; 3],
};

/// All of one class.
fn alike(calls: f64) -> [f64; OFF_CLASSES] {
    let mut all = [0.0; OFF_CLASSES];
    all[0] = calls;
    all
}

/// A thread that does calls of `bare` ticks as fast as it can.
#[derive(Clone, Copy)]
struct Busy {
    bare: f64,
    cost: f64,
    /// Of a window, in ticks.
    length: f64,
    /// By which part each window's load differs from the one before it.
    drift: f64,
    /// Largest part by which a window is disturbed by itself.
    noise: f64,
    seed: u64,
}

const BUSY: Busy = Busy {
    bare: 100.0,
    cost: 160.0,
    length: 1e6,
    drift: 0.0,
    noise: 0.0,
    seed: 1,
};

impl Busy {
    fn windows(self, pairs: u32) -> Vec<Window> {
        let mut state = self.seed;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let mut bare = self.bare;
        let mut all = Vec::new();
        for pair in 0..pairs {
            let first = random() < 0.5;
            for on in [first, !first] {
                bare *= 1.0 + self.drift;
                // Equal windows are not quite: the recorder sleeps between them.
                let ticks = self.length * (1.0 + 0.3 * random());
                let of_a_call = bare + if on { self.cost } else { 0.0 };
                let calls = ticks / of_a_call * (1.0 + self.noise * (random() - 0.5));
                let measured = if on { calls } else { 0.0 };
                all.push(Window {
                    thread: 0,
                    pair,
                    on,
                    ticks,
                    calls: alike(calls),
                    measured,
                });
            }
        }
        all
    }
}

fn contains(interval: [f64; 3], cost: f64) -> bool {
    interval[0] <= cost + 1e-6 && cost <= interval[2] + 1e-6
}

#[test]
fn a_known_cost_is_found_in_windows_of_any_length() {
    let found = estimate(&BUSY.windows(20), &KNOWN).unwrap();
    assert_eq!((found.pairs, found.not_switched_percent), (20, 0.0));
    for ticks in found.call_ticks {
        assert!((ticks - 160.0).abs() < 1e-6, "{ticks}");
    }
}

#[test]
fn what_calls_cost_with_their_probes_off_is_added() {
    let known = Known {
        off: [0.0, 3.0, 6.0],
        ..KNOWN
    };
    let found = estimate(&BUSY.windows(20), &known).unwrap();
    assert_eq!(found.call_ticks.map(f64::round), [160.0, 163.0, 166.0]);
}

#[test]
fn a_paced_load_is_no_probe_without_cost() {
    let paced: Vec<Window> = (BUSY.windows(20).into_iter())
        .map(|w| Window {
            calls: alike(w.ticks / 500.0),
            ..w
        })
        .collect();
    let found = estimate(&paced, &KNOWN);
    assert!(matches!(found, Err(Unusable::Paced { .. })), "{found:?}");
}

#[test]
fn an_idle_thread_says_nothing() {
    let idle: Vec<Window> = (BUSY.windows(20).into_iter())
        .map(|w| Window {
            calls: alike(3.0),
            ..w
        })
        .collect();
    assert_eq!(estimate(&idle, &KNOWN), Err(Unusable::TooFew { pairs: 0 }));
    assert!(estimate(&[], &KNOWN).is_err());
}

/// What cannot be switched costs the same in both windows.
#[test]
fn calls_that_stay_on_widen_the_range_or_refuse_it() {
    let staying = |part: f64| {
        let seen = BUSY.cost * (1.0 - part);
        let windows = Busy { cost: seen, ..BUSY }.windows(20).into_iter();
        let windows = windows.map(|w| Window {
            measured: if w.on { w.measured } else { part * w.calls[0] },
            ..w
        });
        estimate(&windows.collect::<Vec<_>>(), &KNOWN)
    };
    let found = staying(0.2).unwrap();
    let [low, middle, high] = found.call_ticks;
    assert!((middle - 160.0).abs() < 1e-6, "{found:?}");
    assert!(low <= 160.0 - 0.2 * (160.0 - 45.0) + 1e-6, "{found:?}");
    assert!(high >= 160.0 + 0.2 * (300.0 - 160.0) - 1e-6, "{found:?}");
    assert!((found.not_switched_percent - 20.0).abs() < 1e-6);
    let found = staying(0.3);
    assert!(
        matches!(found, Err(Unusable::NotSwitched { .. })),
        "{found:?}"
    );
}

/// 1,000 packets of 800 ticks and 4 calls in each window, whatever they cost; the rest are polls.
#[test]
fn polls_at_the_pace_of_a_load_are_recognized() {
    let windows = BUSY.windows(20).into_iter().map(|w| {
        let cost = if w.on { BUSY.cost } else { 0.0 };
        let packets = 1_000.0 * (800.0 + 4.0 * cost);
        let ticks = 3e6;
        let polls = (ticks - packets) / (30.0 + cost);
        let mut calls = alike(polls);
        calls[1] = 4_000.0;
        let measured = if w.on { polls + 4_000.0 } else { 0.0 };
        Window {
            ticks,
            calls,
            measured,
            ..w
        }
    });
    let found = estimate(&windows.collect::<Vec<_>>(), &KNOWN);
    assert!(
        matches!(found, Err(Unusable::OtherCalls { .. })),
        "{found:?}"
    );
}

/// For a third of the windows the thread did something else, as fast as it could.
#[test]
fn pauses_in_some_windows_do_not_move_the_median() {
    let mut windows = BUSY.windows(30);
    for window in windows.iter_mut().step_by(7) {
        window.calls[0] *= 0.6;
    }
    let found = estimate(&windows, &KNOWN);
    match found {
        Ok(found) => assert!(contains(found.call_ticks, 160.0), "{found:?}"),
        Err(why) => assert!(matches!(why, Unusable::NotSteady { .. }), "{why:?}"),
    }
}

#[test]
fn a_load_that_jumps_about_is_refused() {
    let wild = Busy {
        noise: 1.8,
        cost: 20.0,
        bare: 1000.0,
        ..BUSY
    };
    let found = estimate(&wild.windows(20), &KNOWN);
    assert!(found.is_err(), "{found:?}");
}

/// Two threads with other calls: the mean is of all calls.
#[test]
fn threads_weigh_as_their_calls() {
    let quick = Busy {
        bare: 50.0,
        cost: 50.0,
        ..BUSY
    };
    let slow = Busy {
        bare: 700.0,
        cost: 300.0,
        ..BUSY
    };
    let mut windows = quick.windows(20);
    let others = slow.windows(20).into_iter();
    windows.extend(others.map(|w| Window { thread: 1, ..w }));
    // Of each tick with probes on: 1/100 calls of one and 1/1,000 of the other.
    let mean = (50.0 / 100.0 + 300.0 / 1000.0) / (1.0 / 100.0 + 1.0 / 1000.0);
    let [_, middle, _] = estimate(&windows, &KNOWN).unwrap().call_ticks;
    assert!((middle - mean).abs() < 1.0, "{middle} of {mean}");
}

#[test]
fn the_interval_is_that_of_the_median() {
    // Tables of the sign test: 6 of 6, 2nd of 9, 6th of 20.
    assert_eq!([6, 9, 20].map(outside), [0, 1, 5]);
    // Either side of where the exact chances end; and where they are below what a float holds.
    assert_eq!([400, 401, 3_000].map(outside), [179, 180, 1_446]);
}

proptest! {
    /// Whatever the drift within bounds: the true cost is in the interval, but for a few percent where
    /// noise is the rule.
    #[test]
    fn drift_is_in_both_windows_of_a_pair(
        bare in 30.0..3000.0f64, part in 0.2..5.0f64, drift in -0.002..0.002f64, seed in 1..1000u64,
    ) {
        let busy = Busy { bare, cost: bare * part + 30.0, drift, seed, length: 1e7, ..BUSY };
        if let Ok(Found { call_ticks: [_, middle, _], .. }) = estimate(&busy.windows(40), &KNOWN) {
            prop_assert!((middle / busy.cost - 1.0).abs() < 0.15, "{middle} of {}", busy.cost);
        }
    }
}
