//! What the packets of each flow cost the runs that handled them, separated from the other packets of the runs.
//!
//! A run's time is all that is known of its packets. It is divided among them in proportion to what their
//! flows cost, and what flows cost is the mean of these shares: repeated, so that a flow which is cheap
//! in runs of its own is not charged for the expensive one that it shares other runs with. Flows that
//! always come together cannot be told apart and share alike.
use super::Joined;
use crate::packet::Match;
use hopscope_event::StreamIx;
use std::collections::HashMap;

/// Repetitions: shares change by less than a hundredth then, unless flows nearly always come together.
const ROUNDS: usize = 40;

/// Of one flow, over its packets with a single possible, whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnWork {
    pub packets: u64,
    /// Median and sum of its packets' shares of their runs, in ticks. Without what the thread was known to
    /// be off its processor.
    pub p50_ticks: i64,
    pub sum_ticks: i64,
}

struct OfRun {
    ticks: f64,
    /// What its packets' flows cost, together.
    together: f64,
}

/// By stream and flow; flows without such a packet are not in it.
pub fn own_work(joined: &Joined) -> HashMap<(StreamIx, u32), OwnWork> {
    let mut flows: HashMap<(StreamIx, u32), u32> = HashMap::new();
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for packet in &joined.packets {
        let sure = matches!(
            packet.matched,
            Match::Sequence | Match::Order { ambiguous_among: 1 }
        );
        let Some(run) = packet.run.filter(|_| sure) else {
            continue;
        };
        if joined.spans.get(run.0 as usize).is_some_and(|r| r.complete) {
            let next = flows.len() as u32;
            let flow = *flows
                .entry((packet.stream, packet.stamp.flow))
                .or_insert(next);
            pairs.push((run.0 as u32, flow));
        }
    }
    let span = |r: &super::RunSpan| (r.end - r.start - r.off_cpu_ticks as i64).max(1) as f64;
    let of_run = |r| OfRun {
        ticks: span(r),
        together: 0.0,
    };
    let mut runs: Vec<OfRun> = joined.spans.iter().map(of_run).collect();
    let mut cost = vec![1.0f64; flows.len()];
    let mut count = vec![0u64; flows.len()];
    pairs
        .iter()
        .for_each(|(_, flow)| count[*flow as usize] += 1);
    let share = |runs: &[OfRun], cost: &[f64], (run, flow): (u32, u32)| {
        let run = &runs[run as usize];
        run.ticks * cost[flow as usize] / run.together.max(f64::MIN_POSITIVE)
    };
    let together = |runs: &mut [OfRun], cost: &[f64]| {
        runs.iter_mut().for_each(|r| r.together = 0.0);
        for (run, flow) in &pairs {
            runs[*run as usize].together += cost[*flow as usize];
        }
    };
    for _ in 0..ROUNDS {
        together(&mut runs, &cost);
        let mut sums = vec![0.0; cost.len()];
        for pair in &pairs {
            sums[pair.1 as usize] += share(&runs, &cost, *pair);
        }
        let means = sums.into_iter().zip(&count);
        cost = means.map(|(sum, n)| sum / *n as f64).collect();
    }
    together(&mut runs, &cost);
    let mut shares: Vec<(u32, i64)> = pairs
        .iter()
        .map(|pair| (pair.1, share(&runs, &cost, *pair) as i64))
        .collect();
    shares.sort_unstable();
    let mut own = vec![OwnWork::default(); flows.len()];
    for of in shares.chunk_by(|a, b| a.0 == b.0) {
        own[of[0].0 as usize] = OwnWork {
            packets: of.len() as u64,
            p50_ticks: of[(of.len() - 1) / 2].1,
            sum_ticks: of.iter().map(|(_, ticks)| ticks).sum(),
        };
    }
    let named = flows.into_iter();
    named.map(|(flow, at)| (flow, own[at as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::RunSpan;
    use crate::{Packet, RunIx};
    use hopscope_event::{Stamp, ThreadIx, Tsc};

    const EXPENSIVE: u32 = 7;

    /// Runs with the flows of their packets: 100 ticks each, 5,000 of the expensive one.
    fn joined(runs: &[&[u32]]) -> Joined {
        let mut joined = Joined {
            packets: Vec::new(),
            spans: Vec::new(),
            counts: Default::default(),
        };
        for (ix, flows) in runs.iter().enumerate() {
            let cost = |f: &u32| if *f == EXPENSIVE { 5_000 } else { 100 };
            let ticks: u64 = flows.iter().map(cost).sum();
            joined.spans.push(RunSpan {
                start: Tsc(0),
                end: Tsc(ticks),
                thread: ThreadIx(0),
                complete: true,
                off_cpu_ticks: 0,
            });
            joined.packets.extend(flows.iter().map(|flow| Packet {
                stream: StreamIx(0),
                stamp: Stamp {
                    flow: *flow,
                    ..Stamp::default()
                },
                run: Some(RunIx(ix as u64)),
                matched: Match::Sequence,
            }));
        }
        joined
    }

    #[test]
    fn a_flow_is_not_charged_for_the_one_beside_it() {
        // Flow 1 shares most of its runs with the expensive one, and flow 2 all but one.
        let runs: [&[u32]; 6] = [&[1, 7], &[1], &[1, 7, 2], &[7], &[2, 7], &[2, 1]];
        let own = own_work(&joined(&runs));
        let of = |flow: u32| own[&(StreamIx(0), flow)];
        assert!(
            (4_800..=5_200).contains(&of(EXPENSIVE).p50_ticks),
            "{own:?}"
        );
        assert!(of(1).p50_ticks < 200 && of(2).p50_ticks < 200, "{own:?}");
        let sum: i64 = own.values().map(|o| o.sum_ticks).sum();
        let spans: i64 = joined(&runs).spans.iter().map(|r| r.end - r.start).sum();
        assert!((spans - 20..=spans).contains(&sum), "{sum} of {spans}");
    }

    #[test]
    fn packets_with_several_possible_runs_count_for_none() {
        let mut joined = joined(&[&[1], &[EXPENSIVE]]);
        joined.packets[1].matched = Match::Order { ambiguous_among: 2 };
        let own = own_work(&joined);
        assert_eq!(own.len(), 1);
        assert_eq!(own[&(StreamIx(0), 1)].packets, 1);
    }
}
