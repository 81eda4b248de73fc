//! Whether the stamps of two recordings are of one clock.
use hopscope_event::RecordingMeta;
use thiserror::Error;

/// What the frequencies of one counter, measured twice, may differ by.
const FREQUENCY_PPM: u64 = 200;
/// What both ways of telling the time may differ by, besides the above: reading three clocks takes
/// time, and realtime is slewed and stepped by the administrator.
const COUNTER_NS: u64 = 5_000_000;
const BOOT_NS: u64 = 2_000_000_000;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ClockMismatch {
    #[error("they were made on different hosts, {0:?} and {1:?}, whose TSCs are unrelated")]
    Host(String, String),
    #[error("the TSC frequency is {0} Hz in one and {1} Hz in the other")]
    Frequency(u64, u64),
    #[error("the host booted about {0} s later for one than for the other, and its TSC was reset")]
    Boot(u64),
    #[error(
        "TSC and clock diverged by {0} ns between them: the host was suspended, or its TSC was set"
    )]
    Counter(u64),
}

/// Whether a stamp of one recording can be compared with one of the other.
///
/// # Errors
/// What tells their clocks apart.
pub fn same_clock(a: &RecordingMeta, b: &RecordingMeta) -> Result<(), ClockMismatch> {
    if a.host != b.host {
        return Err(ClockMismatch::Host(a.host.clone(), b.host.clone()));
    }
    let (fa, fb) = (a.tsc_frequency.0, b.tsc_frequency.0);
    if u128::from(fa.abs_diff(fb)) * 1_000_000 > u128::from(fa) * u128::from(FREQUENCY_PPM) {
        return Err(ClockMismatch::Frequency(fa, fb));
    }
    let booted = |m: &RecordingMeta| m.start.realtime_ns.wrapping_sub(m.start.monotonic_ns) as i64;
    let apart = booted(a).abs_diff(booted(b));
    if apart > BOOT_NS {
        // To the nearest: clocks are read a moment apart, and slewed.
        return Err(ClockMismatch::Boot((apart + 500_000_000) / 1_000_000_000));
    }
    let by_counter = a.tsc_frequency.ns(b.start.tsc - a.start.tsc);
    let by_clock = b.start.monotonic_ns.wrapping_sub(a.start.monotonic_ns) as i64;
    let drift = by_clock.unsigned_abs() / 1_000_000 * FREQUENCY_PPM;
    let apart = by_counter.abs_diff(by_clock);
    if apart > COUNTER_NS + drift {
        return Err(ClockMismatch::Counter(apart));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::{ClockSync, Tsc, TscFrequency};

    fn meta(after_s: u64) -> RecordingMeta {
        RecordingMeta {
            hopscope_version: String::new(),
            command_line: Vec::new(),
            host: "nf".into(),
            kernel: String::new(),
            cpu: String::new(),
            cpus_online: 2,
            tsc_frequency: TscFrequency(2_000_000_000),
            tsc_invariant: true,
            start: ClockSync {
                tsc: Tsc((100 + after_s) * 2_000_000_000),
                monotonic_ns: (100 + after_s) * 1_000_000_000,
                realtime_ns: (5_000_100 + after_s) * 1_000_000_000,
                window_ticks: 100,
            },
            stride: 16,
            ring_records: 1,
            probe_cost: None,
        }
    }

    #[test]
    fn one_host_between_two_boots_has_one_clock() {
        let mut later = meta(3600);
        later.tsc_frequency.0 += 100_000;
        assert_eq!(same_clock(&meta(0), &later), Ok(()));
        assert_eq!(same_clock(&later, &meta(0)), Ok(()));
    }

    #[test]
    fn what_tells_clocks_apart_is_named() {
        let mut other = meta(5);
        other.host = "generator".into();
        assert!(matches!(
            same_clock(&meta(0), &other),
            Err(ClockMismatch::Host(..))
        ));
        let mut other = meta(5);
        other.tsc_frequency = TscFrequency(2_600_000_000);
        assert!(matches!(
            same_clock(&meta(0), &other),
            Err(ClockMismatch::Frequency(..))
        ));
        let mut rebooted = meta(0);
        rebooted.start.realtime_ns += 600_000_000_000;
        assert_eq!(
            same_clock(&meta(0), &rebooted),
            Err(ClockMismatch::Boot(600))
        );
        let mut set = meta(5);
        set.start.tsc.0 -= 1_000_000_000;
        assert_eq!(
            same_clock(&meta(0), &set),
            Err(ClockMismatch::Counter(500_000_000))
        );
    }

    #[test]
    fn a_boot_is_told_to_the_nearest_second() {
        let (a, mut b) = (meta(0), meta(0));
        b.start.realtime_ns += 599_999_000_000;
        assert_eq!(same_clock(&a, &b), Err(ClockMismatch::Boot(600)));
    }
}
