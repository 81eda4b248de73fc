//! Threads that make runs, leave records like probes do, and know the truth. A recorder visits
//! their rings in turn; some of what it would have read is overwritten.
use hopscope_event::{FunctionId, Record, RecordKind, ThreadIx};
use proptest::prelude::*;

pub const ROOT: u32 = 0;
pub const FUNCTIONS: u32 = 6;

#[derive(Debug, Clone)]
pub enum Act {
    /// At the outermost level: the root, or the head of the loop.
    Root,
    Call(u32),
    Return,
    /// Leaves by a jump to another function.
    Jump(u32),
    /// The recorder visits all rings; of each so many records have been overwritten.
    Visit {
        lose: [usize; 3],
    },
}

pub fn acts(threads: usize) -> impl Strategy<Value = Vec<(usize, Act)>> {
    let lose = prop_oneof![
        6 => Just([0; 3]),
        1 => [0..9usize, 0..9usize, 0..9usize],
    ];
    let act = prop_oneof![
        3 => Just(Act::Root),
        4 => (0..FUNCTIONS).prop_map(Act::Call),
        7 => Just(Act::Return),
        1 => (1..FUNCTIONS).prop_map(Act::Jump),
        1 => lose.prop_map(|lose| Act::Visit { lose }),
    ];
    prop::collection::vec((0..threads, act), 20..400)
}

/// Function, depth, entry, exit.
pub type TrueCall = (u32, u16, u64, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueRun {
    pub thread: usize,
    pub calls: Vec<TrueCall>,
    /// Numbers of its first and last record in its thread.
    pub records: (u64, u64),
    pub ended: bool,
    /// It began below calls that are in no run: after a loss it could be part of one.
    pub below_others: bool,
}

impl TrueRun {
    pub fn start(&self) -> u64 {
        self.calls[0].2
    }
}

#[derive(Debug, Clone)]
pub struct TrueBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost: u64,
    pub records: Vec<Record>,
}

#[derive(Debug, Default)]
struct Thread {
    /// Function, place in the run's calls (when in a run).
    stack: Vec<(u32, Option<usize>)>,
    run: Option<TrueRun>,
    records: Vec<Record>,
    read: usize,
    visited: bool,
}

#[derive(Debug, Default)]
pub struct World {
    threads: Vec<Thread>,
    is_loop: bool,
    tsc: u64,
    pub runs: Vec<TrueRun>,
    pub batches: Vec<TrueBatch>,
    /// Thread, and the half-open span of the numbers of lost records.
    pub lost: Vec<(usize, u64, u64)>,
}

impl World {
    pub fn new(threads: usize, is_loop: bool) -> World {
        World {
            threads: (0..threads).map(|_| Thread::default()).collect(),
            is_loop,
            tsc: 1000,
            ..World::default()
        }
    }

    pub fn run(mut self, acts: &[(usize, Act)]) -> World {
        for (thread, act) in acts {
            self.act(*thread, act);
        }
        for thread in 0..self.threads.len() {
            if let Some(run) = self.threads[thread].run.take() {
                self.runs.push(run);
            }
        }
        self.visit([0; 3]);
        self.visit([0; 3]);
        self
    }

    fn record(&mut self, thread: usize, function: u32, kind: RecordKind, depth: usize) -> u64 {
        self.tsc += 5 + self.tsc % 7;
        let rsp = 0x7fff_0000 - 64 * depth as u32;
        let of = &mut self.threads[thread];
        of.records
            .push(Record::new(self.tsc, FunctionId(function), kind, rsp));
        if let Some(run) = &mut of.run {
            run.records.1 = of.records.len() as u64 - 1;
        }
        self.tsc
    }

    fn enter(&mut self, thread: usize, function: u32) {
        let depth = self.threads[thread].stack.len();
        let at = self.record(thread, function, RecordKind::Entry, depth);
        let of = &mut self.threads[thread];
        let number = of.records.len() as u64 - 1;
        let begins = function == ROOT
            && match self.is_loop {
                true => depth == 0,
                false => of.run.is_none(),
            };
        if begins {
            if let Some(mut pass) = of.run.take() {
                // Only the begin of the next pass shows that this one was over: it must be read too.
                pass.ended = true;
                self.runs.push(pass);
            }
            of.run = Some(TrueRun {
                thread,
                calls: Vec::new(),
                records: (number, number),
                ended: false,
                below_others: depth > 0,
            });
        }
        let outer = of.stack.iter().filter(|(_, place)| place.is_some()).count() as u16;
        let place = of.run.as_mut().map(|run| {
            run.calls.push((function, outer, at, 0));
            run.calls.len() - 1
        });
        of.stack.push((function, place));
    }

    fn leave(&mut self, thread: usize, kind: RecordKind) {
        let Some((function, place)) = self.threads[thread].stack.pop() else {
            return;
        };
        let depth = self.threads[thread].stack.len();
        let at = self.record(thread, function, kind, depth);
        let of = &mut self.threads[thread];
        if let (Some(run), Some(place)) = (&mut of.run, place) {
            run.calls[place].3 = at;
        }
    }

    /// A run of a root function ends when nothing of it is open.
    fn settle(&mut self, thread: usize) {
        let is_loop = self.is_loop;
        let of = &mut self.threads[thread];
        let open = of.stack.iter().any(|(_, place)| place.is_some());
        if !is_loop
            && !open
            && let Some(mut run) = of.run.take()
        {
            run.ended = true;
            self.runs.push(run);
        }
    }

    fn act(&mut self, thread: usize, act: &Act) {
        let depth = self.threads[thread].stack.len();
        match act {
            Act::Root if depth == 0 => self.enter(thread, ROOT),
            // Where a loop is, its head is called by nobody else before the first pass.
            Act::Call(ROOT)
                if self.is_loop && (depth == 0 || self.threads[thread].run.is_none()) => {}
            Act::Call(function) if depth < 12 => {
                self.leave(thread, RecordKind::Exit);
                self.settle(thread);
            }
            Act::Jump(function) if depth > 0 => {
                self.leave(thread, RecordKind::TailExit);
                self.enter(thread, *function);
            }
            Act::Visit { lose } => self.visit(*lose),
            _ => {}
        }
    }

    fn visit(&mut self, lose: [usize; 3]) {
        for (at, of) in self.threads.iter_mut().enumerate() {
            let new = of.records.len() - of.read;
            if new == 0 {
                continue;
            }
            // What the pairing does before it has seen the outermost level is its own affair.
            let lost = if of.visited { lose[at].min(new) } else { 0 };
            of.visited = true;
            let first = of.read + lost;
            if lost > 0 {
                self.lost.push((at, of.read as u64, first as u64));
            }
            self.batches.push(TrueBatch {
                thread: ThreadIx(at as u32),
                first_index: first as u64,
                lost: lost as u64,
                records: of.records[first..].to_vec(),
            });
            of.read = of.records.len();
        }
    }

    /// Whether all records of a run were read.
    pub fn is_whole(&self, run: &TrueRun) -> bool {
        let (first, last) = run.records;
        let hit = |(thread, from, to): &(usize, u64, u64)| {
            *thread == run.thread && *from <= last && first < *to
        };
        run.ended && !self.lost.iter().any(hit)
    }

    pub fn was_lost(&self, thread: usize, record: u64) -> bool {
        let hit =
            |(t, from, to): &(usize, u64, u64)| *t == thread && (*from..*to).contains(&record);
        self.lost.iter().any(hit)
    }
}
