//! The answer to a stat, as far as it is drawn.
use super::error::StatError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
pub struct Reading {
    pub(super) up_ns: u64,
    pub(super) connected: bool,
    pub(super) connections: u64,
    pub(super) pairs: Vec<Pair>,
}

#[derive(Deserialize)]
pub(super) struct Pair {
    pub(super) rx: Queue,
    pub(super) tx: Queue,
    pub(super) port: Port,
}

#[derive(Deserialize)]
pub(super) struct Port {
    pub(super) receive_dropped: u64,
    pub(super) send_failed: u64,
}

#[derive(Deserialize)]
pub(super) struct Queue {
    pub(super) kicks: u64,
    pub(super) kicks_seen: u64,
    pub(super) calls: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) chains: u64,
    pub(super) waits: u64,
    pub(super) alarms: u64,
    pub(super) looks: u64,
    pub(super) found: u64,
    pub(super) emptied: u64,
    pub(super) drops: BTreeMap<String, u64>,
    pub(super) policy: String,
    pub(super) kick_policy: String,
    pub(super) policies: Vec<ByPolicy>,
    pub(super) sojourn: Option<Times>,
    pub(super) ring_full: Option<u64>,
    pub(super) ring: Option<Value>,
    pub(super) shadows: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct ByPolicy {
    pub(super) policy: String,
    pub(super) published: u64,
    pub(super) notified: u64,
    pub(super) suppressed: u64,
    pub(super) announced: u64,
    pub(super) batches: Vec<u64>,
    pub(super) hold: Times,
}

#[derive(Deserialize, Default, Clone)]
pub(super) struct Times {
    pub(super) count: u64,
    pub(super) sum_ns: u64,
    /// Upper ends in nanoseconds, and how many.
    pub(super) cells: Vec<(u64, u64)>,
}

impl Reading {
    /// # Errors
    /// The answer is not one that this version of hopscope gives.
    pub fn of(answer: &Value) -> Result<Reading, StatError> {
        Reading::deserialize(answer).map_err(StatError::Version)
    }

    /// Of each queue its pair and direction, those that the guest sends by first.
    pub(super) fn queues(&self) -> impl Iterator<Item = (u64, &'static str, &Queue)> {
        self.pairs
            .iter()
            .zip(0..)
            .flat_map(|(pair, n)| [(n, "tx", &pair.tx), (n, "rx", &pair.rx)])
    }
}

impl Queue {
    pub(super) fn sum(&self, of: impl Fn(&ByPolicy) -> u64) -> u64 {
        self.policies.iter().map(of).sum()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }

    /// Of all policies together.
    pub(super) fn hold(&self) -> Times {
        let mut cells = BTreeMap::new();
        for (end, count) in self.policies.iter().flat_map(|one| &one.hold.cells) {
            *cells.entry(*end).or_insert(0) += count;
        }
        Times {
            count: self.sum(|one| one.hold.count),
            sum_ns: self.sum(|one| one.hold.sum_ns),
            cells: cells.into_iter().collect(),
        }
    }
}

impl Times {
    /// What came since `before`.
    pub(super) fn since(&self, before: &Times) -> Times {
        let earlier: BTreeMap<u64, u64> = before.cells.iter().copied().collect();
        let left = |(end, count): &(u64, u64)| {
            let count = count.saturating_sub(earlier.get(end).copied().unwrap_or(0));
            (count > 0).then_some((*end, count))
        };
        Times {
            count: self.count.saturating_sub(before.count),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
            cells: self.cells.iter().filter_map(left).collect(),
        }
    }

    /// The upper end of the cell that this part of them reaches.
    pub(super) fn quantile(&self, part: f64) -> Option<u64> {
        let rank = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        self.cells.iter().find_map(|(end, count)| {
            so_far += count;
            (so_far >= rank).then_some(*end)
        })
    }

    /// Those of at most `ns`, by cells that are below it as a whole.
    pub(super) fn up_to(&self, ns: u64) -> u64 {
        let below = self.cells.iter().filter(|(end, _)| *end <= ns);
        below.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let times = |cells: &[(u64, u64)]| Times {
            count: cells.iter().map(|(_, count)| count).sum(),
            sum_ns: cells.iter().map(|(end, count)| end * count).sum(),
            cells: cells.to_vec(),
        };
        let between = times(&[(10, 5), (20, 5), (30, 2)]).since(&times(&[(10, 5), (20, 1)]));
        assert_eq!((between.count, between.sum_ns), (6, 140));
        assert_eq!(between.cells, [(20, 4), (30, 2)]);
        assert_eq!(between.quantile(0.5), Some(20));
        assert_eq!(between.quantile(0.99), Some(30));
        assert_eq!(Times::default().quantile(0.5), None);
        assert_eq!((between.up_to(29), between.up_to(30)), (4, 6));
    }
}
