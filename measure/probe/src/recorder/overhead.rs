//! What the probes cost the target, estimated once a second from what they wrote.
use hopscope_event::TscFrequency;
use std::collections::HashMap;
use std::fs;

/// The most that can be told: probes take nine tenths of the time.
pub const SLOWDOWN_MAX_PERCENT: f64 = 900.0;

/// Estimated slowdown of a process since the last call.
#[derive(Debug, Default)]
pub struct Overhead {
    cpu_ns: HashMap<i32, u64>,
}

/// CPU time a thread has had, in ns (Documentation/scheduler/sched-stats.rst, first field).
fn cpu_ns(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

impl Overhead {
    /// Takes the first reading of each thread: process and id.
    pub fn prime(&mut self, tids: impl Iterator<Item = (i32, i32)>) {
        self.cpu_ns
            .extend(tids.filter_map(|(pid, tid)| Some((tid, cpu_ns(pid, tid)?))));
    }

    /// CPU time of these threads since the last call; `new_ns`: what is taken for that of one that is not known yet.
    pub fn ran_ns(&mut self, tids: impl Iterator<Item = (i32, i32)>, new_ns: u64) -> u64 {
        let mut ran = 0;
        for (pid, tid) in tids {
            let Some(now) = cpu_ns(pid, tid) else {
                continue;
            };
            let before = self.cpu_ns.insert(tid, now);
            ran += before.map_or(new_ns, |before| now.saturating_sub(before));
        }
        ran
    }
}

/// Probe time as a percentage of the CPU time that threads which ran for `ran_ns` would have used without it. Each of
/// `records` costs half a pair. `None`: nothing ran, or the kernel does not tell CPU times.
pub fn percent(ran_ns: u64, records: u64, pair_ticks: u64, frequency: TscFrequency) -> Option<f64> {
    let probes = frequency.ns((records * pair_ticks / 2) as i64) as u64;
    (ran_ns > 0).then(|| slowdown_percent(probes, ran_ns))
}

/// What probes took against what is left of the CPU time. The cost of a probe was measured in
/// another place: where it is nearly all of the time, its error is more than what is left.
fn slowdown_percent(probes_ns: u64, ran_ns: u64) -> f64 {
    let rest = ran_ns.saturating_sub(probes_ns);
    if rest == 0 {
        return SLOWDOWN_MAX_PERCENT;
    }
    (100.0 * probes_ns as f64 / rest as f64).min(SLOWDOWN_MAX_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_probe_time_than_time_is_no_number() {
        assert_eq!(slowdown_percent(50, 100), 100.0);
        assert_eq!(slowdown_percent(0, 100), 0.0);
        for probes in [95, 99, 100, 10_000] {
            assert_eq!(slowdown_percent(probes, 100), SLOWDOWN_MAX_PERCENT);
        }
    }
}
