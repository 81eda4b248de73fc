//! A part of the targets' time that probes may take. Functions whose probes are too dear for what they tell are left out:
//! in a first pass, whose records nobody keeps, and while recording.
//!
//! What a function's probes tell is how its own part differs from its caller's; what they take grows with its calls. So those
//! go first whose calls are shortest in themselves: they explain least for what they cost.
use super::overhead::Overhead;
use super::sink::Sink;
use super::tally::{Called, Tally};
use super::{Numbers, Target};
use crate::counters::read_tsc;
use crate::live::LiveError;
use hopscope_event::ring::Visit;
use hopscope_event::{FunctionId, LeftOutEntry, ThreadEntry, TscFrequency};
use hopscope_trace::{RecordBatch, TraceError};
use std::collections::HashSet;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Time of probes in percent of the targets' time without them.
    pub percent: f64,
    /// What a call's probes may take, which is what counts, and what they take at least.
    pub pair_ticks: u64,
    pub least_ticks: u64,
    pub frequency: TscFrequency,
    /// In a first pass, after which the recording begins with long windows.
    pub watched_first: bool,
}

/// How the functions were chosen.
#[derive(Debug, Default)]
pub struct FirstPass {
    pub lasted: Duration,
    /// What probes took in its last window, in the target that it was most of.
    pub percent: Option<f64>,
    pub left_out: Vec<LeftOutEntry>,
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(
        "a module was loaded that may unwind what is measured: {0}; record again, or with --assume-no-exceptions"
    )]
    MayUnwind(String),
    #[error(
        "threads that found no free ring call measured functions {calls_per_s} times a second, which no budget can keep down: record with a larger --threads (at most 1024)"
    )]
    WithoutRing { calls_per_s: u64 },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// What is called most is seen at once, and stays for no longer than that.
const FIRST_WINDOW: Duration = Duration::from_millis(2);
/// Each is twice as long as the one before, up to this.
const LAST_WINDOW: Duration = Duration::from_millis(250);
/// A shorter window sees bursts only: more is allowed in it.
const SURE_AFTER: Duration = Duration::from_millis(64);
/// CPU times are told in steps of a clock tick: shorter windows take the clock's time for them.
const TOLD_AFTER: Duration = Duration::from_millis(16);
/// What is less beyond the budget than this has to be so twice in a row.
const SURELY_BEYOND: f64 = 2.0;
/// The first pass ends with so many last windows in which nothing was left out, …
const CALM_WINDOWS: u32 = 2;
/// … or after this.
const AT_MOST: Duration = Duration::from_secs(5);
const BETWEEN_VISITS: Duration = Duration::from_millis(1);
/// As while recording.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// What is left takes this part of the budget: loads vary.
const FILLED: f64 = 0.9;
/// Of the budget: functions that take less are left out last.
const MATTERS: f64 = 1e-3;

/// Leaves out what is too dear, until what is left fits. The targets' records and counts begin anew afterwards.
///
/// # Errors
/// Something could not be restored, or measured functions may be unwound by now.
pub fn first_pass(
    targets: &mut [Target],
    budget: Budget,
    stop: &dyn Fn() -> bool,
) -> Result<FirstPass, BudgetError> {
    let began = Instant::now();
    let mut left_out = Vec::new();
    let (mut numbers, mut buffer) = (Numbers::default(), Vec::new());
    // Of what came during the attach nobody knows how long it took.
    for target in targets.iter_mut() {
        target.drain(Visit::Live, &mut numbers, &mut buffer, &mut Nowhere)?;
        target.tally.iter_mut().for_each(Tally::clear);
    }
    let mut keeper = Keeper::with_window(budget, targets, FIRST_WINDOW);
    let mut looked = began;
    while keeper.calm < CALM_WINDOWS && began.elapsed() < AT_MOST && !stop() {
        std::thread::sleep(BETWEEN_VISITS);
        hopscope_process::detach_late_stoppers();
        let now = Instant::now();
        let is_look_due = looked.elapsed() >= BETWEEN_LOOKS;
        for target in targets.iter_mut() {
            target.drain(Visit::Live, &mut numbers, &mut buffer, &mut Nowhere)?;
            target.kept();
            if is_look_due {
                target.recycle(&mut numbers, &mut buffer, &mut Nowhere)?;
                target.keep_entries();
                if let Some(who) = target.may_unwind() {
                    return Err(BudgetError::MayUnwind(who));
                }
            }
        }
        if is_look_due {
            looked = Instant::now();
            if !targets.iter().any(Target::is_alive) {
                break;
            }
        }
        keeper.step(targets, now, false, &mut left_out)?;
    }
    targets.iter_mut().for_each(Target::begin_anew);
    Ok(FirstPass {
        lasted: began.elapsed(),
        percent: keeper.percent,
        left_out,
    })
}

/// Looks at windows one after the other.
pub(super) struct Keeper {
    budget: Budget,
    window: Duration,
    since: Instant,
    overheads: Vec<Overhead>,
    /// Of the target where it was most, in the last window.
    percent: Option<f64>,
    /// Last windows in which nothing was left out.
    calm: u32,
    /// By target: whether it was a little beyond the budget in the last window.
    beyond: Vec<bool>,
    /// By target: calls of threads without a ring, up to the last window.
    without_ring: Vec<u64>,
}

impl Keeper {
    /// Of a recording that begins.
    pub(super) fn new(budget: Budget, targets: &[Target]) -> Keeper {
        let first = if budget.watched_first {
            LAST_WINDOW
        } else {
            FIRST_WINDOW
        };
        Keeper::with_window(budget, targets, first)
    }

    fn with_window(budget: Budget, targets: &[Target], window: Duration) -> Keeper {
        let primed = |target: &Target| {
            let mut overhead = Overhead::default();
            let tids = target
                .installed
                .threads
                .iter()
                .map(|(tid, _)| (target.installed.pid, *tid));
            overhead.prime(tids);
            overhead
        };
        Keeper {
            budget,
            window,
            since: Instant::now(),
            overheads: targets.iter().map(primed).collect(),
            percent: None,
            calm: 0,
            beyond: vec![false; targets.len()],
            without_ring: targets.iter().map(Target::calls_unmeasured).collect(),
        }
    }

    /// Adds what was left out, if a window is over. `now`: before the rings were drained.
    ///
    /// # Errors
    /// A target could not be stopped or written to, or what takes too much cannot be left out. What was left out of
    /// others before is added all the same.
    pub(super) fn step(
        &mut self,
        targets: &mut [Target],
        now: Instant,
        is_recording: bool,
        left_out: &mut Vec<LeftOutEntry>,
    ) -> Result<(), BudgetError> {
        let span = now.saturating_duration_since(self.since);
        if span < self.window {
            return Ok(());
        }
        let (before, mut most) = (left_out.len(), None);
        let budget = self.budget.in_a_window_of(span);
        for (n, target) in targets.iter_mut().enumerate() {
            let called = target.called();
            target.tally.iter_mut().for_each(Tally::clear);
            let seen = Seen::of(target, &called, &mut self.overheads[n], &self.budget, span);
            most = seen.percent().into_iter().chain(most).reduce(f64::max);
            let unmeasured = target.calls_unmeasured();
            let without_ring = unmeasured - self.without_ring[n].min(unmeasured);
            self.without_ring[n] = unmeasured;
            if budget.ns_of(without_ring.saturating_mul(2)) as f64
                > seen.bare_ns() * budget.percent / 100.0
            {
                let calls_per_s = (without_ring as f64 / span.as_secs_f64()) as u64;
                return Err(BudgetError::WithoutRing { calls_per_s });
            }
            let too_dear = seen.too_dear(&called, &budget, target.never_left_out());
            let is_sure = span < SURE_AFTER
                || self.beyond[n]
                || seen
                    .percent()
                    .is_none_or(|p| p > SURELY_BEYOND * budget.percent);
            self.beyond[n] = !too_dear.is_empty() && !is_sure;
            if too_dear.is_empty() || !is_sure {
                continue;
            }
            target.leave_out(&too_dear)?;
            // No probe has run since.
            let at = is_recording.then(read_tsc);
            let theirs = called.iter().filter(|(id, _)| too_dear.contains(id));
            left_out.extend(theirs.map(|(id, called)| LeftOutEntry {
                function: *id,
                process: target.process,
                at,
                calls_per_s: (called.calls as f64 / span.as_secs_f64()).round() as u64,
                percent: 100.0 * budget.ns(called) as f64 / seen.bare_ns(),
                own_ticks: called.own_ticks_each(),
            }));
        }
        self.percent = most;
        let is_calm = left_out.len() == before && !self.beyond.contains(&true);
        self.calm = match is_calm && self.window == LAST_WINDOW {
            true => self.calm + 1,
            false => 0,
        };
        self.window = (self.window * 2).min(LAST_WINDOW);
        self.since = now;
        Ok(())
    }
}

/// One target in one window.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// CPU time of its measured threads, with what probes took of it.
    ran_ns: u64,
    probes_ns: u64,
    /// Of these, what they took at least.
    least_ns: u64,
}

impl Seen {
    fn of(
        target: &Target,
        called: &[(FunctionId, Called)],
        overhead: &mut Overhead,
        budget: &Budget,
        span: Duration,
    ) -> Seen {
        let span_ns = span.as_nanos() as u64;
        let told = overhead.ran_ns(target.tids(), span_ns);
        let at_most = span_ns * target.tids().count() as u64;
        let records: u64 = called.iter().map(|(_, called)| called.records).sum();
        let least_ticks = records * budget.least_ticks / 2;
        let least_ns = budget.frequency.ns(least_ticks as i64) as u64;
        Seen {
            ran_ns: ran_ns(span, told, at_most, least_ns),
            probes_ns: budget.ns_of(records),
            least_ns,
        }
    }

    /// Without probes; a tenth at least, as what a probe takes was measured elsewhere.
    fn bare_ns(&self) -> f64 {
        let rest = self.ran_ns.saturating_sub(self.least_ns);
        rest.max(self.ran_ns / 10).max(1) as f64
    }

    fn percent(&self) -> Option<f64> {
        (self.ran_ns > 0).then(|| 100.0 * self.probes_ns as f64 / self.bare_ns())
    }

    /// The shortest calls first, until the others fit; what takes next to nothing last.
    fn too_dear(
        &self,
        called: &[(FunctionId, Called)],
        budget: &Budget,
        never: &HashSet<FunctionId>,
    ) -> HashSet<FunctionId> {
        let room_ns = self.bare_ns() * budget.percent / 100.0;
        let mut taken_ns = self.probes_ns as f64;
        if taken_ns <= room_ns {
            return HashSet::new();
        }
        let ns = |called: &Called| budget.ns(called) as f64;
        let mut may_go: Vec<_> = called
            .iter()
            .filter(|(id, _)| !never.contains(id))
            .collect();
        may_go.sort_by_key(|(id, called)| (ns(called) < room_ns * MATTERS, called.worth(), *id));
        let mut gone = Vec::new();
        for (id, called) in may_go {
            if taken_ns <= room_ns * FILLED {
                break;
            }
            taken_ns -= ns(called);
            gone.push((*id, ns(called)));
        }
        // Of those, what fits beside the others after all.
        for (_, ns) in gone.iter_mut().rev() {
            if taken_ns + *ns <= room_ns * FILLED {
                taken_ns += std::mem::replace(ns, 0.0);
            }
        }
        let gone = gone.iter().filter(|(_, ns)| *ns > 0.0);
        gone.map(|(id, _)| *id).collect()
    }
}

/// CPU time in a window: as told, unless that cannot be. What ran less than its probes took at least was told of late, or
/// wrote its records before.
fn ran_ns(span: Duration, told: u64, at_most: u64, least_ns: u64) -> u64 {
    match span < TOLD_AFTER || told < least_ns {
        true => at_most,
        false => told,
    }
}

impl Budget {
    fn ns(&self, called: &Called) -> u64 {
        self.ns_of(called.records)
    }

    fn ns_of(&self, records: u64) -> u64 {
        self.frequency.ns((records * self.pair_ticks / 2) as i64) as u64
    }

    /// A short window may see a burst: the shorter, the more is allowed.
    fn in_a_window_of(&self, span: Duration) -> Budget {
        let more = SURE_AFTER.as_secs_f64() / span.as_secs_f64();
        Budget {
            percent: self.percent * if span < SURE_AFTER { 1.0 + more } else { 1.0 },
            ..*self
        }
    }
}

/// Keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn thread(&mut self, _: &ThreadEntry) -> Result<(), TraceError> {
        Ok(())
    }

    fn records(&mut self, _: RecordBatch<'_>) -> Result<(), TraceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_told_of_late_is_that_of_the_clock() {
        let ran = |ms, told| ran_ns(Duration::from_millis(ms), told, 1000, 30);
        assert_eq!(ran(20, 500), 500);
        assert_eq!(ran(20, 30), 30);
        assert_eq!([ran(20, 0), ran(20, 29), ran(8, 500)], [1000; 3]);
    }

    const BUDGET: Budget = Budget {
        percent: 5.0,
        pair_ticks: 50,
        least_ticks: 50,
        frequency: TscFrequency(1_000_000_000),
        watched_first: true,
    };

    fn called(id: u32, calls: u64, own_ticks: u64) -> (FunctionId, Called) {
        let called = Called {
            calls,
            records: 2 * calls,
            ended: calls,
            own_ticks: calls * own_ticks,
            ..Called::default()
        };
        (FunctionId(id), called)
    }

    fn too_dear(ran_ms: u64, called: &[(FunctionId, Called)]) -> Vec<u32> {
        let probes_ns = called.iter().map(|(_, called)| BUDGET.ns(called)).sum();
        let seen = Seen {
            ran_ns: ran_ms * 1_000_000,
            probes_ns,
            least_ns: probes_ns,
        };
        let never = HashSet::from([FunctionId(9)]);
        let too_dear = seen.too_dear(called, &BUDGET, &never);
        let mut ids: Vec<u32> = too_dear.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn within_the_budget_everything_stays() {
        // 50 ms of probes beside 1000.
        assert!(too_dear(1050, &[called(0, 900_000, 20), called(1, 100_000, 900)]).is_empty());
    }

    #[test]
    fn the_shortest_calls_go_first() {
        let all = [
            called(0, 10_000_000, 20),
            called(1, 2_000_000, 100),
            called(2, 100_000, 5000),
            called(3, 10, 10),
        ];
        // The third fits, and of the short ones that which takes nothing.
        assert_eq!(too_dear(2000, &all), [0, 1]);
    }

    #[test]
    fn what_takes_next_to_nothing_stays_however_short() {
        let mut all = vec![called(0, 10_000_000, 900)];
        all.extend((10..500).map(|id| called(id, 20, 10)));
        assert_eq!(too_dear(2000, &all), [0]);
    }

    #[test]
    fn what_is_needed_stays() {
        assert!(too_dear(2000, &[called(9, 10_000_000, 20)]).is_empty());
    }

    #[test]
    fn a_call_that_never_ends_is_long() {
        let mut main = called(0, 1, 0);
        main.1.ended = 0;
        assert_eq!(too_dear(600, &[main, called(1, 10_000_000, 20)]), [1]);
    }

    #[test]
    fn a_short_window_is_believed_less() {
        let short = BUDGET.in_a_window_of(Duration::from_millis(2));
        assert_eq!(short.percent, 5.0 * 33.0);
        assert_eq!(BUDGET.in_a_window_of(LAST_WINDOW).percent, 5.0);
    }
}
