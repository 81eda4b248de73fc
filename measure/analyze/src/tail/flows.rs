//! Which functions are slow for which flows. Bounded.
use super::baseline::Ordinary;
use super::brief::{Brief, Place};
use super::chance::binomial_at_least;
use hopscope_event::StreamIx;
use std::collections::HashMap;

/// Flows that are followed.
const FLOWS_MAX: usize = 1 << 17;
/// Slow: so many standard deviations above the median, and so many times the median.
const SLOW_Z: f64 = 2.5;
const SLOW_RATIO: f64 = 1.3;
/// Reproducible: in so many of the flow's runs, of so many at least.
const SHARE_MIN: f64 = 0.75;
const RUNS_MIN: u32 = 3;
/// ln of the chance that is taken for no chance.
const SURE_LN: f64 = -6.9;

#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: HashMap<(StreamIx, u32), OfFlow>,
    slow_runs: HashMap<Place, u64>,
    runs: u64,
    pub(super) not_followed: u64,
}

#[derive(Debug, Default)]
struct OfFlow {
    runs: u32,
    slow: Vec<(Place, u32)>,
}

/// A flow in whose runs a function is slow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expensive {
    pub(super) flow: (StreamIx, u32),
    pub(super) slow_runs: u32,
    pub(super) runs: u32,
}

impl Flows {
    pub(super) fn add(&mut self, run: &Brief, ordinary: &Ordinary) {
        if !run.complete || run.flows.is_empty() {
            return;
        }
        let batch = ordinary.batch_of(run);
        let slow = run.spent.iter().filter(|s| {
            let expected = ordinary.expected(s.place, batch);
            let ticks = s.ticks as f64;
            ticks > expected.median * SLOW_RATIO && expected.z(ticks) >= SLOW_Z
        });
        let slow: Vec<Place> = slow.map(|s| s.place).collect();
        self.runs += 1;
        for place in &slow {
            *self.slow_runs.entry(*place).or_default() += 1;
        }
        for flow in &run.flows {
            if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(flow) {
                self.not_followed += 1;
                continue;
            }
            let of = self.flows.entry(*flow).or_default();
            of.runs += 1;
            for place in &slow {
                match of.slow.iter_mut().find(|(p, _)| p == place) {
                    Some((_, n)) => *n += 1,
                    None => of.slow.push((*place, 1)),
                }
            }
        }
    }

    /// The flow among these with which this place is slow so reliably that chance does not do it.
    pub(super) fn expensive(&self, place: Place, of: &[(StreamIx, u32)]) -> Option<Expensive> {
        let slow_runs = self.slow_runs.get(&place).copied().unwrap_or(0);
        let anyway = slow_runs as f64 / self.runs.max(1) as f64;
        let several = (self.flows.len().max(1) as f64).ln();
        let judged = of.iter().filter_map(|flow| {
            let its = self.flows.get(flow)?;
            let slow = its.slow.iter().find(|(p, _)| *p == place)?.1;
            let surely = f64::from(slow) >= f64::from(its.runs) * SHARE_MIN
                && its.runs >= RUNS_MIN
                && binomial_at_least(slow.into(), its.runs.into(), anyway) + several < SURE_LN;
            surely.then_some(Expensive {
                flow: *flow,
                slow_runs: slow,
                runs: its.runs,
            })
        });
        let share = |e: &Expensive| f64::from(e.slow_runs) / f64::from(e.runs);
        judged.max_by(|a, b| {
            (share(a), a.runs)
                .partial_cmp(&(share(b), b.runs))
                .expect("finite")
        })
    }

    /// A flow among these in all of whose runs this place was slow, however few.
    pub(super) fn each_time(&self, place: Place, of: &[(StreamIx, u32)]) -> Option<Expensive> {
        of.iter().find_map(|flow| {
            let its = self.flows.get(flow)?;
            let slow_runs = its.slow.iter().find(|(p, _)| *p == place)?.1;
            (slow_runs == its.runs).then_some(Expensive {
                flow: *flow,
                slow_runs,
                runs: its.runs,
            })
        })
    }
}
