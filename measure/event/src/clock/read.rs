//! The machine's clocks, read in one place: what one part of hopscope stamps is compared with what
//! another stamps.
use super::{ClockSync, RawSync, Tsc, TscFrequency};
use core::time::Duration;
use nix::time::{ClockId, clock_gettime};

/// The time stamp counter now, without a system call. Not ordered against loads and stores around
/// it.
#[inline]
#[allow(unsafe_code)]
pub fn read_tsc() -> Tsc {
    // SAFETY: rdtsc exists on every x86-64 processor and only reads a counter; CR4.TSD is not set
    // by Linux unless a process asked for it (prctl PR_SET_TSC), and hopscope does not.
    Tsc(unsafe { core::arch::x86_64::_rdtsc() })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("clocks that every Linux has");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// `CLOCK_MONOTONIC` now, as the kernel's programs read it.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// Three clocks at one instant: the tightest of a few tries.
pub fn clock_sync() -> ClockSync {
    let read = |_| {
        let before = read_tsc();
        let monotonic_ns = nanoseconds(ClockId::CLOCK_MONOTONIC);
        let realtime_ns = nanoseconds(ClockId::CLOCK_REALTIME);
        let window_ticks = (read_tsc() - before) as u64;
        ClockSync {
            tsc: before + window_ticks / 2,
            monotonic_ns,
            realtime_ns,
            window_ticks,
        }
    };
    let tries = (0..8).map(read);
    tries
        .min_by_key(|sync| sync.window_ticks)
        .expect("eight tries")
}

/// Two clocks at one instant: the tightest of a few tries.
pub fn raw_sync() -> RawSync {
    let read = |_| {
        let before = read_tsc();
        let raw_ns = nanoseconds(ClockId::CLOCK_MONOTONIC_RAW);
        let window_ticks = (read_tsc() - before) as u64;
        RawSync {
            tsc: before + window_ticks / 2,
            raw_ns,
            window_ticks,
        }
    };
    let tries = (0..8).map(read);
    tries
        .min_by_key(|sync| sync.window_ticks)
        .expect("eight tries")
}

/// Ticks per second against `CLOCK_MONOTONIC` over 50 ms: good to about 10 parts per million.
pub fn measure_frequency() -> TscFrequency {
    let from = clock_sync();
    let enough_ns = from.monotonic_ns + Duration::from_millis(50).as_nanos() as u64;
    while nanoseconds(ClockId::CLOCK_MONOTONIC) < enough_ns {
        core::hint::spin_loop();
    }
    let to = clock_sync();
    let ticks = (to.tsc - from.tsc) as u128;
    let ns = (to.monotonic_ns - from.monotonic_ns).max(1) as u128;
    TscFrequency((ticks * 1_000_000_000 / ns) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequency_agrees_with_a_longer_look() {
        let from = clock_sync();
        let f = measure_frequency();
        let to = clock_sync();
        let ns = f.ns(to.tsc - from.tsc) as f64;
        let said = (to.monotonic_ns - from.monotonic_ns) as f64;
        assert!((ns / said - 1.0).abs() < 1e-3, "{ns} {said}");
    }
}
