//! What exceeds the ordinary within one run.
use super::baseline::Ordinary;
use super::brief::{Brief, Place};
use super::history::History;
use crate::run::RunIx;

/// Runs before and after that tell a slow stretch from a slow run.
const AROUND: usize = 16;
/// So many times the ordinary, at the median of the runs around, is a slow stretch.
const SLOWER: f64 = 1.2;
/// So many times what the runs around took longer is no part of a slow stretch.
const OWN_BEYOND: i64 = 4;

/// What a part of a packet's latency leads back to. Equal ones are one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Blame {
    /// More time than ordinary in a place of this run.
    Slow(RunIx, Place),
    /// More time than ordinary in this function, called outside of runs before this one.
    Outside(RunIx, Place),
    /// This run and those around it took longer in several functions.
    Slower(RunIx),
    /// Preempted in this run.
    PreemptedIn(RunIx),
    /// Preempted before this run began, with its packets there.
    PreemptedBefore(RunIx),
    /// Nothing was under way, the packets of this run were there, and it did not begin.
    Gathered(RunIx),
    /// The same, and meanwhile its thread slept although it had been awake with packets there.
    Held(RunIx),
    /// The same, and its thread had been asleep since before its packets came.
    WokenLate(RunIx),
    /// Ordinary runs were under way; the first of the busy period is named.
    Ordinary(RunIx),
    /// After this run.
    WayOut(RunIx),
    Generator,
    NotWhole(RunIx),
    HistoryCut,
}

impl Blame {
    /// Blames of the same kind add up when the greatest is looked for.
    pub(super) fn kind(self) -> (u8, Option<Place>) {
        match self {
            Blame::Slow(_, place) | Blame::Outside(_, place) => (0, Some(place)),
            Blame::Slower(_) => (1, None),
            Blame::PreemptedIn(_) | Blame::PreemptedBefore(_) => (2, None),
            Blame::Gathered(_) => (3, None),
            Blame::Held(_) => (9, None),
            Blame::WokenLate(_) => (10, None),
            Blame::Ordinary(_) => (4, None),
            Blame::WayOut(_) => (5, None),
            Blame::Generator => (6, None),
            Blame::NotWhole(_) => (7, None),
            Blame::HistoryCut => (8, None),
        }
    }
}

/// How much slower the runs around one were.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlowStretch {
    pub(super) ratio: f64,
    /// Geometric mean of how many packets ago a packet's flow came last; 0: not known.
    pub(super) reuse: f64,
}

/// What a run took beyond what is ordinary for its batch, by what took it.
pub(super) fn excess(run: &Brief, history: &History, ordinary: &Ordinary) -> Vec<(Blame, i64)> {
    let mut blames = Vec::with_capacity(4);
    if run.preempted > 0 {
        blames.push((Blame::PreemptedIn(run.ix), run.preempted));
    }
    let batch = ordinary.batch_of(run);
    let expected = ordinary.expected_run(run, batch);
    let worked = run.ticks() - run.preempted;
    let over = worked - expected as i64;
    if over <= 0 {
        return blames;
    }
    if !run.complete {
        blames.push((Blame::NotWhole(run.ix), over));
        return blames;
    }
    let stretch = match over as f64 > expected * (SLOWER - 1.0) {
        true => slow_stretch(run, history, ordinary),
        false => None,
    };
    // What the runs around took longer as well; what goes far beyond it is this run's own.
    let shared = stretch
        .map_or(0, |s| ((s.ratio - 1.0) * expected) as i64)
        .min(over);
    if shared > 0 && over <= shared * OWN_BEYOND {
        blames.push((Blame::Slower(run.ix), over));
        return blames;
    }
    if shared > 0 {
        blames.push((Blame::Slower(run.ix), shared));
    }
    let over = over - shared;
    // Each place its own excess, but no more in all than the run's: what one took longer another
    // may have taken less.
    let of = |s: &super::brief::Spent| s.ticks - ordinary.expected(s.place, batch).median as i64;
    let longer: i64 = run.spent.iter().map(|s| of(s).max(0)).sum();
    for spent in &run.spent {
        let its = of(spent).max(0);
        let scaled = (i128::from(its) * i128::from(over) / i128::from(longer.max(1))) as i64;
        if scaled > 0 {
            blames.push((Blame::Slow(run.ix, spent.place), scaled.min(its)));
        }
    }
    blames
}

fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether the runs around were slower as well, in more than one place.
pub(super) fn slow_stretch(
    run: &Brief,
    history: &History,
    ordinary: &Ordinary,
) -> Option<SlowStretch> {
    let near: Vec<&Brief> = history.around(run, AROUND).filter(|r| r.complete).collect();
    if near.len() < AROUND {
        return None;
    }
    let ratio_of = |r: &&Brief| {
        let expected = ordinary.expected_run(r, ordinary.batch_of(r));
        (r.ticks() - r.preempted) as f64 / expected.max(1.0)
    };
    let mut ratios: Vec<f64> = near.iter().map(ratio_of).collect();
    let ratio = median(&mut ratios);
    if ratio < SLOWER {
        return None;
    }
    let slower = |place: Place| {
        let mut ratios: Vec<f64> = Vec::with_capacity(near.len());
        for r in &near {
            if let Ok(at) = r.spent.binary_search_by_key(&place, |s| s.place) {
                let expected = ordinary.when_called(place, ordinary.batch_of(r)).median;
                ratios.push(r.spent[at].ticks as f64 / expected.max(1.0));
            }
        }
        median(&mut ratios) >= SLOWER
    };
    let places = run.spent.iter().filter(|s| slower(s.place)).count();
    let (log, n) = near
        .iter()
        .fold((run.reuse_log, run.reused), |(log, n), r| {
            (log + r.reuse_log, n + r.reused)
        });
    let reuse = match n {
        0 => 0.0,
        n => (log / f64::from(n) - 1.0).exp2(),
    };
    (places >= 2).then_some(SlowStretch { ratio, reuse })
}
