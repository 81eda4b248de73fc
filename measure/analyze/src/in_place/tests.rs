use super::*;
use proptest::prelude::*;

const LOOP: f64 = 45.0;
const EXACT: [f64; 3] = [0.0; 3];

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
                    calls,
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
    let ([low, middle, high], pairs) = estimate(&BUSY.windows(20), LOOP, EXACT).unwrap();
    assert_eq!(pairs, 20);
    for ticks in [low, middle, high] {
        assert!((ticks - 160.0).abs() < 1e-6, "{ticks}");
    }
}

#[test]
fn what_calls_cost_with_their_probes_off_is_added() {
    let (found, _) = estimate(&BUSY.windows(20), LOOP, [0.0, 3.0, 6.0]).unwrap();
    assert_eq!(found.map(f64::round), [160.0, 163.0, 166.0]);
}

#[test]
fn a_paced_load_is_no_probe_without_cost() {
    let paced: Vec<Window> = (BUSY.windows(20).into_iter())
        .map(|w| Window {
            calls: w.ticks / 500.0,
            ..w
        })
        .collect();
    let found = estimate(&paced, LOOP, EXACT);
    assert!(matches!(found, Err(Unusable::Paced { .. })), "{found:?}");
}

#[test]
fn an_idle_thread_says_nothing() {
    let idle: Vec<Window> = (BUSY.windows(20).into_iter())
        .map(|w| Window { calls: 3.0, ..w })
        .collect();
    assert_eq!(
        estimate(&idle, LOOP, EXACT),
        Err(Unusable::TooFew { pairs: 0 })
    );
    assert!(estimate(&[], LOOP, EXACT).is_err());
}

#[test]
fn calls_that_stay_on_are_seen() {
    let on: Vec<Window> = (BUSY.windows(20).into_iter())
        .map(|w| Window {
            measured: w.calls * 0.1,
            ..w
        })
        .collect();
    let found = estimate(&on, LOOP, EXACT);
    assert!(
        matches!(found, Err(Unusable::NotSwitched { .. })),
        "{found:?}"
    );
}

/// For a third of the windows the thread did something else, as fast as it could.
#[test]
fn pauses_in_some_windows_do_not_move_the_median() {
    let mut windows = BUSY.windows(30);
    for window in windows.iter_mut().step_by(7) {
        window.calls *= 0.6;
    }
    let found = estimate(&windows, LOOP, EXACT);
    match found {
        Ok((found, _)) => assert!(contains(found, 160.0), "{found:?}"),
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
    let found = estimate(&wild.windows(20), LOOP, EXACT);
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
    let ([_, middle, _], _) = estimate(&windows, LOOP, EXACT).unwrap();
    assert!((middle - mean).abs() < 1.0, "{middle} of {mean}");
}

#[test]
fn the_interval_is_that_of_the_median() {
    // Tables of the sign test: 6 of 6, 2nd of 9, 6th of 20.
    assert_eq!([6, 9, 20].map(outside), [0, 1, 5]);
}

proptest! {
    /// Whatever the drift within bounds: the true cost is in the interval, but for a few percent where
    /// noise is the rule.
    #[test]
    fn drift_is_in_both_windows_of_a_pair(
        bare in 30.0..3000.0f64, part in 0.2..5.0f64, drift in -0.002..0.002f64, seed in 1..1000u64,
    ) {
        let busy = Busy { bare, cost: bare * part + 30.0, drift, seed, length: 1e7, ..BUSY };
        if let Ok(([_, middle, _], _)) = estimate(&busy.windows(40), LOOP, EXACT) {
            prop_assert!((middle / busy.cost - 1.0).abs() < 0.15, "{middle} of {}", busy.cost);
        }
    }
}
