//! Random programs whose coroutines go from thread to thread, with the truth of each call.
use super::{CO, FUNCTIONS, NATIVE, Seen, Timed, index, seen};
use RecordKind::{Entry, Exit};
use hopscope_analyze::OwnedBatch;
use hopscope_analyze::trail::Totals;
use hopscope_event::{FunctionId, Record, RecordKind, ThreadIx};
use proptest::prelude::*;
use std::collections::HashMap;

/// What a thread does next.
#[derive(Debug, Clone)]
pub enum Act {
    Call(u32),
    Return,
    /// Goes to this coroutine, when no thread is on it; else stays.
    Go(usize),
    /// Goes back to its own stack.
    Home,
    /// Its coroutine is given up, and begins anew; so does what a later thread begins there.
    Abandon,
    /// Leaves this many calls by a jump.
    Jump(usize),
    /// The recorder has come to the ring of the next thread.
    Visit,
    /// Up to so many of the oldest records that it has not read are overwritten.
    Overwrite(usize),
}

pub const THREADS: usize = 4;
pub const COROUTINES: usize = 5;

#[derive(Clone, Copy)]
pub struct Open {
    pub function: u32,
    pub rsp: u32,
    pub entry: u64,
    pub callees: u64,
}

pub struct World {
    pub clock: u64,
    /// Those of the threads come first.
    pub stacks: Vec<Vec<Open>>,
    pub on: [usize; THREADS],
    /// Coroutines stay with a thread.
    pub pinned: bool,
    /// Bytes from a call to its callee.
    pub frame: u32,
    pub unread: Vec<Vec<Record>>,
    pub next: [u64; THREADS],
    pub lost: [u64; THREADS],
    pub file: Vec<OwnedBatch>,
    pub visited: usize,
    pub calls: Vec<Timed>,
    pub began_on: HashMap<u64, usize>,
    pub moved: u64,
}

impl World {
    fn base(stack: usize) -> u32 {
        match stack < THREADS {
            true => NATIVE - stack as u32 * 0x80_0000,
            false => CO + (stack - THREADS) as u32 * 0x40_0000,
        }
    }

    fn record(&mut self, thread: usize, kind: RecordKind, function: u32, rsp: u32) -> u64 {
        self.clock += 10;
        let record = Record::new(self.clock, FunctionId(function), kind, rsp);
        self.unread[thread].push(record);
        self.clock
    }

    fn act(&mut self, thread: usize, act: &Act) {
        let stack = self.on[thread];
        match act {
            Act::Call(function) => {
                let depth = self.stacks[stack].len() as u32;
                let rsp = World::base(stack) - depth * self.frame;
                let entry = self.record(thread, Entry, *function, rsp);
                self.began_on.insert(entry, thread);
                self.stacks[stack].push(Open {
                    function: *function,
                    rsp,
                    entry,
                    callees: 0,
                });
            }
            Act::Return => {
                if let Some(open) = self.stacks[stack].pop() {
                    let exit = self.record(thread, Exit, open.function, open.rsp);
                    self.moved += u64::from(self.began_on[&open.entry] != thread);
                    let caller = self.stacks[stack].last_mut();
                    self.calls.push(Timed {
                        entry: open.entry,
                        function: open.function,
                        exit,
                        callees: open.callees,
                        caller: caller.map(|c| {
                            c.callees += 1;
                            c.function
                        }),
                    });
                }
            }
            Act::Go(to) => {
                let to = THREADS + to;
                let its = !self.pinned || to % THREADS == thread;
                if its && !self.on.contains(&to) {
                    self.on[thread] = to;
                }
            }
            Act::Home => self.on[thread] = thread,
            Act::Abandon if stack >= THREADS => self.stacks[stack].clear(),
            Act::Jump(calls) => {
                for _ in 0..*calls {
                    let left = self.stacks[stack].pop();
                    if let (Some(left), Some(caller)) = (left, self.stacks[stack].last_mut()) {
                        caller.callees += left.callees;
                    }
                }
            }
            Act::Abandon => {}
            Act::Visit => self.visit(),
            Act::Overwrite(records) => {
                let unread = &mut self.unread[thread];
                let lost = unread.drain(..unread.len().min(*records)).count();
                self.lost[thread] += lost as u64;
            }
        }
    }

    /// One ring after the other, as a recorder does.
    fn visit(&mut self) {
        let thread = self.visited % THREADS;
        self.visited += 1;
        let records = std::mem::take(&mut self.unread[thread]);
        if !records.is_empty() || self.lost[thread] > 0 {
            let lost = std::mem::take(&mut self.lost[thread]);
            let first_index = self.next[thread] + lost;
            self.next[thread] = first_index + records.len() as u64;
            let thread = ThreadIx(thread as u32);
            self.file.push(OwnedBatch {
                lost,
                ..OwnedBatch::new(thread, first_index, records)
            });
        }
    }

    pub fn run(acts: &[(usize, Act)], pinned: bool, frame: u32) -> World {
        let mut world = World {
            clock: 0,
            stacks: vec![Vec::new(); THREADS + COROUTINES],
            on: std::array::from_fn(|n| n),
            pinned,
            frame,
            unread: vec![Vec::new(); THREADS],
            next: [0; THREADS],
            lost: [0; THREADS],
            file: Vec::new(),
            visited: 0,
            calls: Vec::new(),
            began_on: HashMap::new(),
            moved: 0,
        };
        acts.iter()
            .for_each(|(thread, act)| world.act(*thread, act));
        (0..THREADS).for_each(|_| world.visit());
        world.calls.sort_unstable();
        world
    }

    pub fn call(&self, entry: u64) -> Option<Timed> {
        let found = self.calls.binary_search_by_key(&entry, |c| c.entry);
        found.ok().map(|at| self.calls[at])
    }

    pub fn seen(&self) -> (Seen, Totals) {
        seen(&index(THREADS as u32, 1), THREADS as u32, &self.file)
    }
}

/// Every thread is once on every coroutine, two calls deep, and all of that is read.
pub fn all_were_everywhere() -> Vec<(usize, Act)> {
    let mut acts = Vec::new();
    for thread in 0..THREADS {
        for coroutine in 0..COROUTINES {
            acts.push((thread, Act::Go(coroutine)));
            acts.extend(
                [Act::Call(0), Act::Call(1), Act::Return, Act::Return].map(|act| (thread, act)),
            );
        }
        acts.push((thread, Act::Home));
    }
    acts.extend((0..THREADS).map(|thread| (thread, Act::Visit)));
    acts
}

pub fn overwritten() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let lose = (0..THREADS, (1..20usize).prop_map(Act::Overwrite));
    let either =
        |(act, lose, loses): ((usize, Act), (usize, Act), bool)| if loses { lose } else { act };
    let acts = prop::collection::vec(
        (act(0), lose, prop::bool::weighted(0.05)).prop_map(either),
        1..400,
    );
    acts.prop_map(|acts| all_were_everywhere().into_iter().chain(acts).collect())
}

/// `left`: how often calls are left without an end.
pub fn acts(left: u32) -> impl Strategy<Value = Vec<(usize, Act)>> {
    prop::collection::vec(act(left), 1..400)
}

pub fn act(left: u32) -> impl Strategy<Value = (usize, Act)> {
    let act = prop_oneof![
        8 => (0..FUNCTIONS).prop_map(Act::Call),
        8 => Just(Act::Return),
        5 => (0..COROUTINES).prop_map(Act::Go),
        1 => Just(Act::Home),
        left => Just(Act::Abandon),
        left => (1..3usize).prop_map(Act::Jump),
        3 => Just(Act::Visit),
    ];
    (0..THREADS, act)
}

pub fn frames() -> impl Strategy<Value = u32> {
    prop_oneof![Just(16u32), Just(64), Just(1000), Just(3000)]
}
