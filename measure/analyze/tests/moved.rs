//! Coroutines that move between threads, against programs that know the truth: no call is stated that was none.
use Kind::{Entry, Exit};
use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::trail::{Begun, End, Observer, Totals};
use hopscope_analyze::{Analysis, Group, InOrder, Index, Options, OwnedBatch, Read};
use hopscope_analyze::{StackOwners, Trail, Window};
use hopscope_event::table::ModuleIx;
use hopscope_event::{
    FunctionEntry, FunctionId, Kind, ProcessIx, Record, ThreadEntry, ThreadIx, Tsc,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::convert::Infallible;

const FUNCTIONS: u32 = 4;
const CO: u32 = 0x1000_0000;
const NATIVE: u32 = 0x7000_0000;

fn index(threads: u32, processes: u32) -> Index {
    let function = |id: u32| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("f{id}"),
        svma: u64::from(id),
        size: 1,
        file: None,
        line: None,
    };
    let thread = |ix: u32| ThreadEntry {
        ix: ThreadIx(ix),
        process: ProcessIx(ix % processes),
        tid: ix as i32,
        comm: String::new(),
    };
    let functions: Vec<_> = (0..FUNCTIONS).map(function).collect();
    let threads: Vec<_> = (0..threads).map(thread).collect();
    Index::new(&functions, &threads)
}

/// A call that returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timed {
    entry: u64,
    function: u32,
    exit: u64,
    callees: u64,
    caller: Option<u32>,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Timed>,
    unknown: Vec<(u64, Fate)>,
    orphans: Vec<(u64, Orphan)>,
}

impl Observer for Seen {
    fn ended(&mut self, call: &Begun, end: &End) {
        match end {
            End::Exit(times) => self.calls.push(Timed {
                entry: call.entry.0,
                function: call.function.0,
                exit: call.entry.0.wrapping_add_signed(times.total),
                callees: times.callees,
                caller: call.caller.map(|f| f.0),
            }),
            End::Unknown(fate) => self.unknown.push((call.entry.0, *fate)),
        }
    }

    fn orphan(&mut self, _: ThreadIx, _: FunctionId, at: Tsc, orphan: Orphan) {
        self.orphans.push((at.0, orphan));
    }
}

/// What the file says of the batches that follow each.
fn read(file: &[OwnedBatch]) -> Vec<Read> {
    let begins = |n: usize| {
        let batch = &file[n];
        let before = file[..n].iter().rev().find(|b| b.thread == batch.thread);
        let first = |b: &OwnedBatch| b.records.first().map_or(u64::MAX, |r| r.tsc);
        match before {
            Some(before) if batch.lost > 0 => first(before).min(first(batch)),
            _ => first(batch),
        }
    };
    let mut from = u64::MAX;
    let mut out: Vec<_> = (0..file.len())
        .rev()
        .map(|n| {
            let thread = file[n].thread;
            let read = Read {
                batch: file[n].clone(),
                ahead_from: Tsc(from),
                last_of_thread: !file[n + 1..].iter().any(|b| b.thread == thread),
            };
            from = from.min(begins(n));
            read
        })
        .collect();
    out.reverse();
    out
}

fn in_order(index: &Index, threads: u32, file: &[OwnedBatch]) -> Vec<OwnedBatch> {
    let batches = read(file).into_iter().map(Ok::<_, Infallible>);
    // In a file of thousands of records, after every few.
    let owners = StackOwners::new(index, (0..threads).map(ThreadIx)).looked_from(4);
    InOrder::new(batches, owners)
        .map(|batch| batch.unwrap_or_else(|e| match e {}))
        .collect()
}

fn seen(index: &Index, threads: u32, file: &[OwnedBatch]) -> (Seen, Totals) {
    let options = Options {
        group: Group::Thread,
        ..Options::default()
    };
    let mut analysis = Analysis::new(index.clone(), options);
    let mut trail = Trail::new(index.clone(), Window::default(), None);
    let mut seen = Seen::default();
    for batch in &in_order(index, threads, file) {
        trail.feed(&batch.batch(), &mut seen);
        analysis.feed(&batch.batch());
    }
    let totals = trail.finish(&mut seen);
    let outcome = analysis.finish();
    assert!(totals.balance.holds() && outcome.balance.holds());
    assert_eq!(totals.balance, outcome.balance);
    assert!(outcome.rows.iter().all(|row| row.stats.balance.holds()));
    seen.calls.sort_unstable();
    (seen, totals)
}

type Event = (u64, Kind, u32, u32);

/// Batches of threads: `(thread, [(tick, kind, function, place)])`.
fn batches(of: &[(u32, &[Event])]) -> Vec<OwnedBatch> {
    let mut next = [0u64; 8];
    let batch = |(thread, records): &(u32, &[Event])| {
        let record =
            |&(tsc, kind, function, rsp): &Event| Record::new(tsc, FunctionId(function), kind, rsp);
        let records: Vec<_> = records.iter().map(record).collect();
        let first_index = next[*thread as usize];
        next[*thread as usize] += records.len() as u64;
        OwnedBatch::new(ThreadIx(*thread), first_index, records)
    };
    of.iter().map(batch).collect()
}

fn times(seen: &Seen) -> Vec<(u32, u64, u64)> {
    seen.calls
        .iter()
        .map(|c| (c.function, c.entry, c.exit))
        .collect()
}

#[test]
fn two_calls_that_move_are_not_taken_for_one() {
    // Alone, the first thread's records would make one call from 10 to 40.
    let file = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Exit, 1, CO), (30, Entry, 1, CO)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), []);
    let b = totals.balance;
    assert_eq!((b.entries, b.moved, b.open_at_end), (2, 1, 1));
    assert_eq!((b.ends_moved, b.ends_open_at_start), (2, 0));
}

#[test]
fn a_call_that_comes_back_is_not_stated_without_what_it_called_elsewhere() {
    let file = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Entry, 2, CO - 64), (30, Exit, 2, CO - 64)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(2, 20, 30)]);
    assert_eq!((totals.balance.moved, totals.balance.ends_moved), (1, 1));
}

#[test]
fn what_ended_elsewhere_is_no_caller() {
    let file = batches(&[
        (0, &[(10, Entry, 1, CO)]),
        (1, &[(20, Exit, 1, CO), (21, Entry, 2, CO)]),
        (0, &[(30, Entry, 3, CO - 64), (31, Exit, 3, CO - 64)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(3, 30, 31)]);
    assert_eq!(seen.calls[0].caller, None);
    assert_eq!((totals.balance.moved, totals.balance.open_at_end), (1, 1));
}

#[test]
fn the_time_of_a_caller_whose_callee_ended_elsewhere_is_not_known() {
    // Farther apart than what counts as the same call's stack.
    let deep = CO - 5000;
    let file = batches(&[
        (
            0,
            &[(10, Entry, 1, CO), (11, Entry, 2, deep), (40, Exit, 1, CO)],
        ),
        (1, &[(20, Exit, 2, deep)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), []);
    assert_eq!((totals.balance.moved, totals.balance.ends_moved), (2, 2));
}

#[test]
fn records_that_are_lost_may_have_ended_the_call() {
    let mut file = batches(&[
        (0, &[(10, Entry, 1, CO)]),
        (1, &[(15, Exit, 1, CO), (16, Entry, 1, CO)]),
        (0, &[(20, Exit, 1, CO), (21, Entry, 1, CO)]),
        (1, &[(30, Entry, 2, NATIVE), (31, Exit, 2, NATIVE)]),
        (0, &[(40, Exit, 1, CO)]),
    ]);
    // Thread 1 may have ended the call that began at 21, and begun the one that ended at 40.
    file[3].lost = 2;
    file[3].first_index += 2;
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(2, 30, 31)]);
    assert_eq!(totals.balance.ends_moved, 3);
}

#[test]
fn what_is_lost_without_a_record_behind_it_is_waited_for() {
    let mut file = batches(&[
        (0, &[(10, Entry, 1, CO - 16), (11, Exit, 1, CO - 16)]),
        (
            1,
            &[
                (20, Entry, 1, CO - 16),
                (25, Entry, 2, CO - 64),
                (30, Exit, 2, CO - 64),
                (40, Exit, 1, CO - 16),
            ],
        ),
        (0, &[]),
        (0, &[(50, Entry, 3, NATIVE), (51, Exit, 3, NATIVE)]),
    ]);
    // Thread 0 may have been on that stack until 50: when the loss is read, it is not known yet up to when.
    file[2].lost = 2;
    file[2].first_index += 2;
    file[3].first_index += 2;
    let (seen, _) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(1, 10, 11), (3, 50, 51)]);
}

#[test]
fn other_processes_and_stacks_beside_are_apart() {
    let other_process = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Entry, 1, CO), (30, Exit, 1, CO)]),
    ]);
    let two = seen(&index(2, 2), 2, &other_process).0;
    assert_eq!(times(&two), [(1, 10, 40), (1, 20, 30)]);
    // Stacks of 8 KiB in turn on two threads that never exchange them.
    let file = batches(&[
        (
            0,
            &[
                (10, Entry, 1, CO),
                (15, Entry, 2, CO - 16384),
                (40, Exit, 1, CO),
                (41, Exit, 2, CO - 16384),
            ],
        ),
        (1, &[(20, Entry, 1, CO - 8192), (30, Exit, 1, CO - 8192)]),
    ]);
    let (small, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&small), [(1, 10, 40), (2, 15, 41), (1, 20, 30)]);
    assert_eq!(totals.balance.calls_moved(), 0);
}

/// A stack that the next thread gets when the one before has ended costs nothing and concerns nobody.
#[test]
fn a_stack_inherited_by_the_next_thread_is_not_shared() {
    let file = batches(&[
        (0, &[(10, Entry, 1, NATIVE), (20, Exit, 1, NATIVE)]),
        (1, &[(5, Entry, 1, CO)]),
        (2, &[(30, Entry, 1, NATIVE), (40, Exit, 1, NATIVE)]),
        (1, &[(50, Exit, 1, CO)]),
    ]);
    for (batch, passed_on) in file.iter().zip(in_order(&index(3, 1), 3, &file)) {
        let known = |b: &OwnedBatch| (b.thread, b.first_index, b.records.clone());
        assert_eq!(known(&passed_on), known(batch), "in the order of the file");
        // Only that there was somebody before, in the page and in the one above.
        assert!(passed_on.taken.len() <= 2);
    }
    let (seen, totals) = seen(&index(3, 1), 3, &file);
    assert_eq!(times(&seen), [(1, 5, 50), (1, 10, 20), (1, 30, 40)]);
    assert_eq!(totals.balance.calls_moved(), 0);
}

/// What a thread does next.
#[derive(Debug, Clone)]
enum Act {
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

const THREADS: usize = 4;
const COROUTINES: usize = 5;

#[derive(Clone, Copy)]
struct Open {
    function: u32,
    rsp: u32,
    entry: u64,
    callees: u64,
}

struct World {
    clock: u64,
    /// Those of the threads come first.
    stacks: Vec<Vec<Open>>,
    on: [usize; THREADS],
    /// Coroutines stay with a thread.
    pinned: bool,
    /// Bytes from a call to its callee.
    frame: u32,
    unread: Vec<Vec<Record>>,
    next: [u64; THREADS],
    lost: [u64; THREADS],
    file: Vec<OwnedBatch>,
    visited: usize,
    calls: Vec<Timed>,
    began_on: HashMap<u64, usize>,
    moved: u64,
}

impl World {
    fn base(stack: usize) -> u32 {
        match stack < THREADS {
            true => NATIVE - stack as u32 * 0x80_0000,
            false => CO + (stack - THREADS) as u32 * 0x40_0000,
        }
    }

    fn record(&mut self, thread: usize, kind: Kind, function: u32, rsp: u32) -> u64 {
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

    fn run(acts: &[(usize, Act)], pinned: bool, frame: u32) -> World {
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

    fn call(&self, entry: u64) -> Option<Timed> {
        let found = self.calls.binary_search_by_key(&entry, |c| c.entry);
        found.ok().map(|at| self.calls[at])
    }

    fn seen(&self) -> (Seen, Totals) {
        seen(&index(THREADS as u32, 1), THREADS as u32, &self.file)
    }
}

/// Every thread is once on every coroutine, two calls deep, and all of that is read.
fn all_were_everywhere() -> Vec<(usize, Act)> {
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

fn overwritten() -> impl Strategy<Value = Vec<(usize, Act)>> {
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
fn acts(left: u32) -> impl Strategy<Value = Vec<(usize, Act)>> {
    prop::collection::vec(act(left), 1..400)
}

fn act(left: u32) -> impl Strategy<Value = (usize, Act)> {
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

fn frames() -> impl Strategy<Value = u32> {
    prop_oneof![Just(16u32), Just(64), Just(1000), Just(3000)]
}

proptest! {
    /// Whatever is stated of a call is so: when it began and ended, how many it called, and who called it.
    #[test]
    fn no_call_is_stated_that_was_none(acts in acts(0), frame in frames()) {
        let world = World::run(&acts, false, frame);
        let (seen, totals) = world.seen();
        for call in &seen.calls {
            let Some(truth) = world.call(call.entry) else {
                return Err(TestCaseError::fail(format!("{call:?} has not returned")));
            };
            let known = |of: &Timed| (of.function, of.exit, of.callees);
            prop_assert_eq!(known(call), known(&truth));
            prop_assert!(call.caller.is_none() || call.caller == truth.caller);
        }
        prop_assert_eq!(seen.calls.len() + seen.orphans.len(), world.calls.len());
        prop_assert!(totals.balance.ends_moved >= world.moved);
        prop_assert_eq!(totals.balance.ends_open_at_start, 0);
    }

    /// Nor where stacks are given up unfinished and calls are left by jumps: nothing that comes later at their
    /// place ends them.
    #[test]
    fn what_is_left_unfinished_pairs_with_nothing(acts in acts(1), frame in frames()) {
        let world = World::run(&acts, false, frame);
        let (seen, _) = world.seen();
        for call in &seen.calls {
            let truth = world.call(call.entry).map(|t| (t.function, t.exit));
            prop_assert_eq!(truth, Some((call.function, call.exit)));
        }
        prop_assert_eq!(seen.calls.len() + seen.orphans.len(), world.calls.len());
        prop_assert!(seen.orphans.iter().all(|(_, orphan)| *orphan == Orphan::Moved));
    }

    /// Nor where records are lost, on stacks that are known to move.
    #[test]
    fn what_may_have_moved_in_lost_records_is_not_stated(acts in overwritten(), frame in 16..40u32) {
        let world = World::run(&acts, false, frame);
        let (seen, _) = world.seen();
        for call in &seen.calls {
            let truth = world.call(call.entry).map(|t| (t.function, t.exit, t.callees));
            prop_assert_eq!(truth, Some((call.function, call.exit, call.callees)));
        }
    }

    /// Where stacks stay with their threads every call is found, whatever else runs beside.
    #[test]
    fn where_nothing_moves_every_call_is_found(acts in acts(0), frame in frames()) {
        let world = World::run(&acts, true, frame);
        let (seen, totals) = world.seen();
        let stated: Vec<_> = seen.calls.iter().map(|c| (c.entry, c.function, c.exit)).collect();
        let truth: Vec<_> = world.calls.iter().map(|c| (c.entry, c.function, c.exit)).collect();
        prop_assert_eq!(stated, truth);
        prop_assert_eq!(totals.balance.calls_moved(), 0);
        prop_assert!(seen.orphans.is_empty());
    }
}
