//! A run, as small as the search needs it.
use super::off_cpu::OffCpuSpans;
use crate::run::{OutsideCall, Run, RunIx};
use hopscope_event::{FunctionId, StreamIx, ThreadIx, Tsc};

/// Where time goes within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Function(FunctionId),
    /// Between the calls that a polling loop makes: not measured more closely.
    Loop,
}

/// Flows of a run's packets that are remembered; of more it is said that there were more.
pub(super) const FLOWS_OF_RUN: usize = 16;

/// Calls outside of runs that are remembered before a run: the longest.
pub(super) const OUTSIDE_OF_RUN: usize = 4;

/// From the end of the span before (or the run's start) to `end`, `place` was the innermost call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) end: Tsc,
    pub(super) place: Place,
}

/// All of a place's time in a run, without that in which its thread was preempted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    pub(super) place: Place,
    pub(super) ticks: i64,
    pub(super) calls: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Brief {
    pub(super) ix: RunIx,
    pub(super) thread: ThreadIx,
    pub(super) start: Tsc,
    pub(super) end: Tsc,
    /// When the run before it on its thread ended.
    pub(super) previous_end: Option<Tsc>,
    pub(super) complete: bool,
    pub(super) spans: Vec<Span>,
    /// Ascending by place.
    pub(super) spent: Vec<Spent>,
    pub(super) preempted: i64,
    /// What its thread called since the run before it, outside of any run: the longest.
    pub(super) outside: Vec<OutsideCall>,
    /// As captured.
    pub(super) captured: Option<u32>,
    /// Packets joined to it.
    pub(super) packets: u32,
    pub(super) first_sent: Option<Tsc>,
    pub(super) flows: Vec<(StreamIx, u32)>,
    pub(super) more_flows: bool,
    /// Sum of the logarithms (base 2, plus 1) of how many packets ago each one's flow came last.
    pub(super) reuse_log: f64,
    pub(super) reused: u32,
}

impl Brief {
    pub(super) fn of(run: &Run, captured: Option<u32>, off: &OffCpuSpans) -> Brief {
        let spans = spans(run);
        let mut spent: Vec<Spent> = Vec::with_capacity(8);
        let mut at = run.start;
        let mut preempted = 0;
        let some = off.is_known(run.thread);
        for span in &spans {
            let off = match some {
                true => off.preempted_ticks(run.thread, at, span.end),
                false => 0,
            };
            preempted += off;
            entry(&mut spent, span.place).ticks += span.end - at - off;
            at = span.end;
        }
        for call in &run.calls {
            entry(&mut spent, Place::Function(call.function)).calls += 1;
        }
        spent.sort_unstable_by_key(|s| s.place);
        Brief {
            ix: run.ix,
            thread: run.thread,
            start: run.start,
            end: at,
            previous_end: None,
            complete: run.complete,
            spans,
            spent,
            preempted,
            outside: longest(&run.outside),
            captured,
            packets: 0,
            first_sent: None,
            flows: Vec::new(),
            more_flows: false,
            reuse_log: 0.0,
            reused: 0,
        }
    }

    pub(super) fn ticks(&self) -> i64 {
        self.end - self.start
    }

    /// What the functions called outside of runs took of the time from `from` to its begin.
    pub(super) fn outside_since(&self, from: Tsc) -> Vec<(FunctionId, i64)> {
        let mut sums: Vec<(FunctionId, i64)> = Vec::new();
        let since = self.outside.iter().flat_map(|c| c.within(from, self.start));
        for (function, ticks) in since {
            match sums.iter_mut().find(|(f, _)| *f == function) {
                Some((_, sum)) => *sum += ticks,
                None => sums.push((function, ticks)),
            }
        }
        sums
    }

    pub(super) fn calls_of(&self, place: Place) -> u32 {
        let at = self.spent.binary_search_by_key(&place, |s| s.place);
        at.map_or(0, |at| self.spent[at].calls)
    }
}

fn longest(outside: &[OutsideCall]) -> Vec<OutsideCall> {
    let mut calls = outside.to_vec();
    calls.sort_by_key(|c| std::cmp::Reverse(c.exit - c.entry));
    calls.truncate(OUTSIDE_OF_RUN);
    calls
}

fn entry(spent: &mut Vec<Spent>, place: Place) -> &mut Spent {
    let at = spent.iter().position(|s| s.place == place);
    let at = at.unwrap_or_else(|| {
        spent.push(Spent {
            place,
            ticks: 0,
            calls: 0,
        });
        spent.len() - 1
    });
    &mut spent[at]
}

/// Cuts a run into stretches with one innermost call each. They cover it without gap or overlap
/// even where stamps run backwards: a call never begins before, nor ends after, what is around it.
fn spans(run: &Run) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::with_capacity(run.calls.len() * 2 + 1);
    let mut open: Vec<(Place, Tsc)> = Vec::new();
    let mut at = run.start;
    let end = run.end.max(run.start);
    let mut until = |to: Tsc, place: Place, at: &mut Tsc| {
        let to = to.min(end);
        if to <= *at {
            return;
        }
        *at = to;
        match spans.last_mut() {
            Some(last) if last.place == place => last.end = to,
            _ => spans.push(Span { end: to, place }),
        }
    };
    for call in &run.calls {
        while let Some(&(place, exit)) = open.last()
            && open.len() > usize::from(call.depth)
        {
            until(exit.min(call.entry.max(at)), place, &mut at);
            open.pop();
        }
        let around = open.last().map_or(Place::Loop, |o| o.0);
        until(call.entry, around, &mut at);
        open.push((Place::Function(call.function), call.exit));
    }
    while let Some((place, exit)) = open.pop() {
        until(exit, place, &mut at);
    }
    until(end, Place::Loop, &mut at);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunCall;
    use hopscope_event::OffCpu;

    fn call(function: u32, depth: u16, entry: u64, exit: u64) -> RunCall {
        RunCall {
            function: FunctionId(function),
            depth,
            parent: None,
            entry: Tsc(entry),
            exit: Tsc(exit),
            fused: false,
            own_ticks: 0,
            own_corrected: 0,
            off_cpu_ticks: 0,
        }
    }

    fn run(start: u64, end: u64, calls: Vec<RunCall>) -> Run {
        Run {
            ix: RunIx(0),
            thread: ThreadIx(0),
            root: FunctionId(0),
            start: Tsc(start),
            end: Tsc(end),
            complete: true,
            calls,
            values: Vec::new(),
            off_cpu_ticks: 0,
            calls_left_out: 0,
            outside: Vec::new(),
        }
    }

    fn ticks(brief: &Brief) -> Vec<(Place, i64)> {
        brief.spent.iter().map(|s| (s.place, s.ticks)).collect()
    }

    #[test]
    fn every_tick_has_one_innermost_call() {
        let calls = vec![
            call(0, 0, 100, 200),
            call(1, 1, 110, 150),
            call(2, 2, 120, 130),
        ];
        let calls = [calls, vec![call(1, 1, 160, 170)]].concat();
        let brief = Brief::of(&run(100, 200, calls), None, &OffCpuSpans::default());
        let f = |n| Place::Function(FunctionId(n));
        assert_eq!(ticks(&brief), [(f(0), 50), (f(1), 40), (f(2), 10)]);
        assert_eq!(brief.calls_of(f(1)), 2);
    }

    #[test]
    fn a_polling_loop_has_time_of_its_own_and_preemption_is_nobodys() {
        let calls = vec![call(0, 0, 100, 120), call(1, 0, 130, 150)];
        let mut off = OffCpuSpans::default();
        let span = |a, b, preempted| OffCpu {
            out: Tsc(a),
            back: Tsc(b),
            preempted,
        };
        off.extend(ThreadIx(0), [span(110, 125, true), span(140, 145, false)]);
        let brief = Brief::of(&run(100, 160, calls), None, &off);
        let f = |n| Place::Function(FunctionId(n));
        assert_eq!(ticks(&brief), [(f(0), 10), (f(1), 20), (Place::Loop, 15)]);
        assert_eq!(brief.preempted, 15);
    }

    #[test]
    fn stamps_that_run_backwards_still_cover_the_run_once() {
        let calls = vec![
            call(0, 0, 100, 140),
            call(1, 1, 90, 180),
            call(2, 1, 120, 110),
        ];
        let brief = Brief::of(&run(100, 150, calls), None, &OffCpuSpans::default());
        let sum: i64 = brief.spent.iter().map(|s| s.ticks).sum();
        assert_eq!(sum, 50);
        assert!(brief.spent.iter().all(|s| s.ticks >= 0));
    }
}
