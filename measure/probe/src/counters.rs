//! The machine's clocks. One of the few places with `unsafe`: reading the TSC is an intrinsic.
use hopscope_event::{ClockSync, Tsc, TscFrequency};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{Duration, Instant};

pub fn read_tsc() -> Tsc {
    // SAFETY: rdtsc exists on every x86-64 CPU and only reads a counter; CR4.TSD is not set by
    // Linux unless a process asked for it (prctl PR_SET_TSC), and hopscope does not.
    Tsc(unsafe { core::arch::x86_64::_rdtsc() })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let t = clock_gettime(clock).expect("clocks that every Linux has");
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}

/// Three clocks at one instant: the tightest of a few tries.
pub fn clock_sync() -> ClockSync {
    (0..8)
        .map(|_| {
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
        })
        .min_by_key(|sync| sync.window_ticks)
        .expect("eight tries")
}

/// Ticks per second against CLOCK_MONOTONIC over 50 ms: good to about 10 parts per million.
pub fn measure_frequency() -> TscFrequency {
    let from = clock_sync();
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    let to = clock_sync();
    let ticks = (to.tsc - from.tsc) as u128;
    let ns = (to.monotonic_ns - from.monotonic_ns).max(1) as u128;
    TscFrequency((ticks * 1_000_000_000 / ns) as u64)
}

/// Whether the kernel says that the TSC runs evenly through all states of the CPU.
pub fn tsc_is_invariant() -> bool {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info
        .lines()
        .find(|l| l.starts_with("flags"))
        .unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|f| flags.split(' ').any(|g| g == *f))
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
