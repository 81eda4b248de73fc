//! Every call of a recording, one by one, as its begin and its end become known. Bounded by the
//! calls that are open at once.
use crate::analysis::Thread;
use crate::balance::{Balance, Fate, Oddities, Orphan};
use crate::batch::Batch;
use crate::counts::{CallCounts, CounterKind};
use crate::pair::{Call, Enter, Gap, Mark, Sink};
use crate::{Correction, Index, Window};
use hopscope_event::{FunctionId, ProbeCost, ThreadIx, Tsc, Value};
use std::collections::{BTreeMap, HashMap};

/// A call that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// Counted from 0 over the recording, in the order in which entries were read.
    pub call: u64,
    pub thread: ThreadIx,
    pub function: FunctionId,
    pub entry: Tsc,
    /// The innermost open call of the same stack, and its function.
    pub parent: Option<u64>,
    pub caller: Option<FunctionId>,
    /// 0 without a known caller.
    pub depth: u32,
    /// Callers may be missing: records before this call were lost.
    pub after_gap: bool,
    /// The call that left by a jump to this one.
    pub tail_of: Option<u64>,
    /// Which of the stacks on which the thread has open calls: 0 but for coroutines and signal
    /// handlers. Numbers of stacks that became empty are used again.
    pub stack: u32,
}

/// Times of a call whose exit was found, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// As measured; negative when the clock ran backwards, then not to be used.
    pub total: i64,
    pub own: i64,
    /// With the median probe cost taken out; `None` where it is not known.
    pub total_corrected: Option<i64>,
    pub own_corrected: Option<i64>,
    /// Measured calls made by it, and by those in turn.
    pub callees: u64,
    pub descendants: u64,
    /// Left by a jump to another function.
    pub tail: bool,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exit(Times),
    /// No exit was found. Calls of a stack that was left are told long after that.
    Unknown(Fate),
}

/// Receives the calls. Each begun call has exactly one end.
pub trait Observer {
    fn begun(&mut self, _: &Begun) {}
    fn ended(&mut self, call: &Begun, end: &End);
    /// What a call counted, right before its end.
    fn counts(&mut self, _call: &Begun, _counts: &CallCounts) {}
    /// What an open call captured, or why there is no value.
    fn value(&mut self, _call: &Begun, _: &Value) {}
    /// An end whose begin is not recorded.
    fn orphan(&mut self, _thread: ThreadIx, _function: FunctionId, _at: Tsc, _: Orphan) {}
    /// Records of the thread are missing between its last stamp and its next one. Comes after the
    /// ends of the calls that it cut.
    fn gap(&mut self, _thread: ThreadIx, _after: Option<Tsc>, _before: Option<Tsc>, _: Gap) {}
}

#[derive(Debug, Default, Clone)]
pub struct Totals {
    /// Calls in the window.
    pub balance: Balance,
    /// Of the selected threads as a whole, whatever the window.
    pub oddities: Oddities,
    pub threads: BTreeMap<ThreadIx, Oddities>,
}

/// Feed it each thread's records in ring order, threads in any interleaving.
#[derive(Debug)]
pub struct Trail {
    index: Index,
    window: Window,
    correction: Option<Correction>,
    threads: HashMap<ThreadIx, OfThread>,
    begun: u64,
    balance: Balance,
}

#[derive(Debug, Default)]
struct OfThread {
    thread: Thread,
    open: Open,
    last: Option<Tsc>,
}

/// Open calls by the number that the pairing carries for each.
#[derive(Debug, Default)]
struct Open {
    places: Vec<Begun>,
    free: Vec<u32>,
    /// Open calls of each stack.
    stacks: Vec<u32>,
}

impl Open {
    fn stack(&mut self, caller: Option<&Begun>) -> u32 {
        let stack = match caller {
            Some(caller) => caller.stack as usize,
            None => match self.stacks.iter().position(|open| *open == 0) {
                Some(empty) => empty,
                None => {
                    self.stacks.push(0);
                    self.stacks.len() - 1
                }
            },
        };
        self.stacks[stack] += 1;
        stack as u32
    }

    fn put(&mut self, call: Begun) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = call;
                place
            }
            None => {
                self.places.push(call);
                self.places.len() as u32 - 1
            }
        }
    }

    fn take(&mut self, place: u32) -> Begun {
        let call = self.places[place as usize];
        self.free.push(place);
        self.stacks[call.stack as usize] -= 1;
        call
    }
}

struct Watch<'a, O> {
    thread: ThreadIx,
    index: &'a Index,
    window: Window,
    correction: Option<&'a Correction>,
    open: &'a mut Open,
    begun: &'a mut u64,
    balance: &'a mut Balance,
    observer: &'a mut O,
}

impl Trail {
    pub fn new(index: Index, window: Window, probe_cost: Option<ProbeCost>) -> Trail {
        Trail {
            index,
            window,
            correction: probe_cost.map(Correction::new),
            threads: HashMap::new(),
            begun: 0,
            balance: Balance::default(),
        }
    }

    /// Takes the next records of a thread.
    pub fn feed(&mut self, batch: &Batch<'_>, observer: &mut impl Observer) {
        let of = self.threads.entry(batch.thread).or_default();
        let mut watch = Watch {
            thread: batch.thread,
            index: &self.index,
            window: self.window,
            correction: self.correction.as_ref(),
            open: &mut of.open,
            begun: &mut self.begun,
            balance: &mut self.balance,
            observer,
        };
        let gap = of.thread.continues(batch);
        of.thread.pairer.gap(gap, &mut watch);
        if gap.lost > 0 || gap.torn > 0 || gap.discontinuous {
            let next = batch.stamps().next();
            watch.observer.gap(batch.thread, of.last, next, gap);
        }
        of.thread.pairer.feed_batch(batch, &mut watch);
        of.last = batch.stamps().next_back().or(of.last);
    }

    /// The recording ends here.
    pub fn finish(self, observer: &mut impl Observer) -> Totals {
        let mut totals = Totals {
            balance: self.balance,
            ..Totals::default()
        };
        let mut begun = self.begun;
        let threads: BTreeMap<_, _> = self.threads.into_iter().collect();
        for (ix, mut of) in threads {
            let mut watch = Watch {
                thread: ix,
                index: &self.index,
                window: self.window,
                correction: self.correction.as_ref(),
                open: &mut of.open,
                begun: &mut begun,
                balance: &mut totals.balance,
                observer,
            };
            let oddities = of.thread.pairer.finish(&mut watch);
            totals.oddities += oddities;
            totals.threads.insert(ix, oddities);
        }
        totals
    }
}

impl<O: Observer> Watch<'_, O> {
    fn end(&mut self, mark: Mark, end: &End, count: impl Fn(&mut Balance)) {
        let call = self.open.take(mark.node);
        if self.window.contains(call.entry.0) {
            count(self.balance);
            self.observer.ended(&call, end);
        }
    }
}

impl<O: Observer> Sink for Watch<'_, O> {
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        let place = |mark: Mark| self.open.places[mark.node as usize];
        // Its place is free by now, but nothing has taken it yet.
        let tail_of = enter.tail_of.map(|mark| place(mark).call);
        let caller = enter.open.last().map(|frame| place(frame.mark()));
        let call = Begun {
            call: *self.begun,
            thread: self.thread,
            function: enter.function,
            entry: Tsc(enter.tsc),
            parent: caller.map(|c| c.call),
            caller: caller.map(|c| c.function),
            depth: caller.map_or(0, |c| c.depth.saturating_add(1)),
            after_gap: enter.after_gap || caller.is_some_and(|c| c.after_gap),
            tail_of,
            stack: self.open.stack(caller.as_ref()),
        };
        *self.begun += 1;
        if self.window.contains(enter.tsc) {
            self.balance.entries += 1;
            self.observer.begun(&call);
        }
        Mark {
            node: self.open.put(call),
            ..Mark::default()
        }
    }

    fn call(&mut self, call: &Call) {
        let own = call.inclusive.wrapping_sub(call.callee_ticks);
        let correction = self.correction;
        let times = Times {
            total: call.inclusive,
            own,
            total_corrected: correction
                .map(|c| c.inclusive(call.inclusive, call.fused, call.descendants)),
            own_corrected: correction.map(|c| c.own(own, call.fused, call.callees)),
            callees: call.callees.calls,
            descendants: call.descendants.calls,
            tail: call.tail,
        };
        let tail = call.tail;
        self.end(call.mark, &End::Exit(times), |b| match tail {
            true => b.tail_exits += 1,
            false => b.exits += 1,
        });
    }

    fn counts(&mut self, call: &Call, counts: &CallCounts) {
        let call = self.open.places[call.mark.node as usize];
        if self.window.contains(call.entry.0) {
            self.observer.counts(&call, counts);
        }
    }

    fn counter(&self, number: u8) -> Option<CounterKind> {
        self.index.counter(number)
    }

    fn fate(&mut self, _: FunctionId, mark: Mark, _: u64, fate: Fate) {
        self.end(mark, &End::Unknown(fate), |b| b.add_fate(fate));
    }

    fn orphan(&mut self, function: FunctionId, tsc: u64, orphan: Orphan) {
        if self.window.contains(tsc) {
            self.balance.add_orphan(orphan);
            self.observer
                .orphan(self.thread, function, Tsc(tsc), orphan);
        }
    }

    fn value(&mut self, _: FunctionId, mark: Mark, _: u64, value: &Value) {
        let call = self.open.places[mark.node as usize];
        if self.window.contains(call.entry.0) {
            self.observer.value(&call, value);
        }
    }

    fn known(&self, function: FunctionId) -> bool {
        self.index.module(function).is_some()
    }
}
