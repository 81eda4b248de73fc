//! The time that a generator goes by: the counter that probes read. An argument everywhere, so
//! that proofs run on one that they turn themselves.
use hopscope_event::{ClockSync, Tsc, TscFrequency};
use hopscope_netio::clock::tsc_now;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

pub trait Clock {
    fn now(&self) -> Tsc;
}

/// The processor's.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Tsc {
        tsc_now()
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("clocks that every Linux has");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Three clocks at one instant: the tightest of a few tries.
pub fn sync() -> ClockSync {
    let read = |_| {
        let before = tsc_now();
        let monotonic_ns = nanoseconds(ClockId::CLOCK_MONOTONIC);
        let realtime_ns = nanoseconds(ClockId::CLOCK_REALTIME);
        let window_ticks = (tsc_now() - before) as u64;
        ClockSync {
            tsc: before + window_ticks / 2,
            monotonic_ns,
            realtime_ns,
            window_ticks,
        }
    };
    let tries = (0..8).map(read);
    tries.min_by_key(|sync| sync.window_ticks).expect("eight")
}

/// Ticks a second against CLOCK_MONOTONIC over 50 ms: good to about 10 parts per million.
pub fn frequency() -> TscFrequency {
    let from = sync();
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    let to = sync();
    let ticks = (to.tsc - from.tsc) as u128;
    let ns = (to.monotonic_ns - from.monotonic_ns).max(1) as u128;
    TscFrequency((ticks * 1_000_000_000 / ns) as u64)
}

/// Ticks of a duration, rounded down.
pub fn ticks(frequency: TscFrequency, time: Duration) -> u64 {
    (time.as_nanos() * u128::from(frequency.0) / 1_000_000_000) as u64
}
