//! Calls of coroutines that move between threads, against programs that know the truth.
use Kind::{Entry, Exit};
use hopscope_analyze::balance::Fate;
use hopscope_analyze::trail::{Begun, End, Observer, Totals};
use hopscope_analyze::{Analysis, Group, InOrder, Index, Options, OwnedBatch, Trail, Window};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, Kind, ProcessIx, Record, ThreadEntry, ThreadIx};
use proptest::prelude::*;
use std::convert::Infallible;

const FUNCTIONS: u32 = 4;

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

/// Function, entry, exit.
type Timed = (u32, u64, u64);

#[derive(Default)]
struct Seen {
    calls: Vec<Timed>,
    unknown: Vec<(u64, Fate)>,
    orphans: u64,
}

impl Observer for Seen {
    fn ended(&mut self, call: &Begun, end: &End) {
        let entry = call.entry.0;
        match end {
            End::Exit(times) => {
                let exit = entry.wrapping_add_signed(times.total);
                self.calls.push((call.function.0, entry, exit));
            }
            End::Unknown(fate) => self.unknown.push((entry, *fate)),
        }
    }

    fn orphan(
        &mut self,
        _: ThreadIx,
        _: FunctionId,
        _: hopscope_event::Tsc,
        _: hopscope_analyze::balance::Orphan,
    ) {
        self.orphans += 1;
    }
}

fn in_order(index: &Index, threads: u32, batches: &[OwnedBatch]) -> Vec<OwnedBatch> {
    let file = batches.iter().cloned().map(Ok::<_, Infallible>);
    let ordered = InOrder::new(file, index, (0..threads).map(ThreadIx));
    ordered
        .map(|batch| batch.unwrap_or_else(|e| match e {}))
        .collect()
}

fn seen(index: &Index, threads: u32, batches: &[OwnedBatch]) -> (Seen, Totals) {
    let (mut seen, mut trail) = (
        Seen::default(),
        Trail::new(index.clone(), Window::default(), None),
    );
    let mut analysis = Analysis::new(
        index.clone(),
        Options {
            group: Group::Thread,
            ..Options::default()
        },
    );
    let ordered = in_order(index, threads, batches);
    for batch in &ordered {
        trail.feed_in_order(batch, &mut seen);
        analysis.feed_in_order(batch);
    }
    let totals = trail.finish(&mut seen);
    let outcome = analysis.finish();
    assert!(totals.balance.holds() && outcome.balance.holds());
    assert!(
        outcome.rows.iter().all(|row| row.stats.balance.holds()),
        "within each thread"
    );
    assert_eq!(totals.balance, outcome.balance);
    assert_eq!(totals.oddities.moved, outcome.oddities.moved);
    seen.calls.sort_unstable();
    (seen, totals)
}

/// Batches of two threads of one process: `(thread, [(tick, kind, function, place)])`.
fn batches(of: &[(u32, &[(u64, Kind, u32, u32)])]) -> Vec<OwnedBatch> {
    let mut next = [0u64; 8];
    let batch = |(thread, records): &(u32, &[(u64, Kind, u32, u32)])| {
        let record = |&(tsc, kind, function, rsp): &(u64, Kind, u32, u32)| {
            Record::new(tsc, FunctionId(function), kind, rsp)
        };
        let records: Vec<_> = records.iter().map(record).collect();
        let first_index = next[*thread as usize];
        next[*thread as usize] += records.len() as u64;
        OwnedBatch {
            thread: ThreadIx(*thread),
            first_index,
            lost: 0,
            torn: 0,
            records,
            settled: None,
        }
    };
    of.iter().map(batch).collect()
}

const CO: u32 = 0x1000_0000;

#[test]
fn a_call_that_moves_ends_where_its_exit_comes() {
    // Alone, the first thread's records would make one call from 10 to 40.
    let file = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Exit, 1, CO), (30, Entry, 1, CO)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(seen.calls, [(1, 10, 20), (1, 30, 40)]);
    assert_eq!(
        (totals.oddities.moved, seen.orphans, totals.balance.entries),
        (2, 0, 2)
    );
}

#[test]
fn the_entry_may_come_later_in_the_file() {
    let file = batches(&[
        (
            1,
            &[
                (5, Entry, 2, 0x7000_0000),
                (20, Exit, 1, CO),
                (21, Exit, 2, 0x7000_0000),
            ],
        ),
        (0, &[(10, Entry, 1, CO)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(seen.calls, [(1, 10, 20), (2, 5, 21)]);
    assert_eq!((totals.oddities.moved, seen.orphans), (1, 0));
}

#[test]
fn callers_move_with_the_call() {
    let file = batches(&[
        (
            0,
            &[
                (10, Entry, 1, CO),
                (11, Entry, 2, CO - 64),
                (12, Entry, 3, CO - 128),
            ],
        ),
        (1, &[(20, Exit, 3, CO - 128), (30, Exit, 2, CO - 64)]),
        (
            0,
            &[
                (50, Entry, 3, CO - 64),
                (51, Exit, 3, CO - 64),
                (60, Exit, 1, CO),
            ],
        ),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(
        seen.calls,
        [(1, 10, 60), (2, 11, 30), (3, 12, 20), (3, 50, 51)]
    );
    assert_eq!((totals.oddities.moved, seen.orphans), (3, 0));
}

#[test]
fn what_was_left_unfinished_pairs_with_no_later_exit() {
    // Thread 1 leaves the call that moved to it by longjmp, and begins another at its place.
    let file = batches(&[
        (0, &[(1, Entry, 0, CO), (10, Entry, 1, CO - 64)]),
        (1, &[(15, Exit, 1, CO - 64)]),
        (0, &[(20, Entry, 1, CO - 64)]),
        (1, &[(30, Entry, 1, CO - 64)]),
        (0, &[(40, Exit, 1, CO - 64), (41, Exit, 0, CO)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(seen.calls, [(0, 1, 41), (1, 10, 15), (1, 30, 40)]);
    assert_eq!(totals.balance.unwound, 1);
}

#[test]
fn a_loss_may_hide_what_another_thread_did() {
    let mut file = batches(&[
        (0, &[(10, Entry, 1, CO)]),
        (1, &[(15, Exit, 1, CO), (16, Entry, 1, CO)]),
        (0, &[(20, Exit, 1, CO), (21, Entry, 1, CO)]),
        (
            1,
            &[(30, Entry, 2, 0x7000_0000), (31, Exit, 2, 0x7000_0000)],
        ),
        (0, &[(40, Exit, 1, CO)]),
    ]);
    // Thread 1 may have ended the call that began at 21, and begun the one that ended at 40.
    file[3].lost = 2;
    file[3].first_index += 2;
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(seen.calls, [(1, 10, 15), (1, 16, 20), (2, 30, 31)]);
    assert_eq!((totals.balance.cut, seen.orphans), (1, 1));
}

#[test]
fn other_processes_and_other_stacks_are_not_asked() {
    let file = batches(&[(0, &[(10, Entry, 1, CO)]), (1, &[(20, Exit, 1, CO)])]);
    let (two_processes, totals) = seen(&index(2, 2), 2, &file);
    assert_eq!((two_processes.calls.len(), two_processes.orphans), (0, 1));
    assert_eq!(totals.oddities.moved, 0);
    // An end of a call that was open before: the entry is later than it.
    let file = batches(&[(0, &[(30, Entry, 1, CO)]), (1, &[(20, Exit, 1, CO)])]);
    assert_eq!(seen(&index(2, 1), 2, &file).0.orphans, 1);
}

#[test]
fn batches_of_threads_that_share_nothing_stay_as_they_are() {
    // The second thread has the stack of the first, which has ended.
    let mut file = Vec::new();
    let mut first = [0u64; 3];
    for round in 0..50u64 {
        for thread in 0..3u32 {
            if (thread == 0) == (round < 25) || thread == 2 {
                let place = 0x7000_0000 - thread / 2 * 0x80_0000;
                let records: Vec<_> = (0..10)
                    .flat_map(|n| {
                        let at = round * 1000 + u64::from(thread) * 300 + n * 20;
                        [(at, Entry), (at + 9, Exit)]
                            .map(|(t, kind)| Record::new(t, FunctionId(1), kind, place))
                    })
                    .collect();
                let len = records.len() as u64;
                file.push(OwnedBatch {
                    thread: ThreadIx(thread),
                    first_index: first[thread as usize],
                    lost: 0,
                    torn: 0,
                    records,
                    settled: None,
                });
                first[thread as usize] += len;
            }
        }
    }
    let mut ordered = in_order(&index(3, 1), 3, &file);
    ordered.iter_mut().for_each(|batch| batch.settled = None);
    assert_eq!(ordered, file);
    let (seen, totals) = seen(&index(3, 1), 3, &file);
    assert_eq!(
        (totals.balance.exits, seen.orphans, totals.oddities.moved),
        (1000, 0, 0)
    );
}

/// What a thread does next.
#[derive(Debug, Clone)]
enum Act {
    Call(u32),
    Return,
    /// Goes to this coroutine, when no thread is on it; else to its own stack.
    Go(usize),
    /// Its coroutine is given up, and begins anew.
    Abandon,
    /// The recorder has come to the ring of this thread.
    Visit,
}

const THREADS: usize = 4;
const COROUTINES: usize = 5;

struct World {
    clock: u64,
    /// Frames of each stack: function, place, entry. Those of the threads come first.
    stacks: Vec<Vec<(u32, u32, u64)>>,
    on: [usize; THREADS],
    unread: Vec<Vec<Record>>,
    next: [u64; THREADS],
    file: Vec<OwnedBatch>,
    visited: usize,
    calls: Vec<Timed>,
    unfinished: usize,
    moved: u64,
    began_on: std::collections::HashMap<u64, usize>,
}

impl World {
    fn new() -> World {
        World {
            clock: 0,
            stacks: vec![Vec::new(); THREADS + COROUTINES],
            on: std::array::from_fn(|n| n),
            unread: vec![Vec::new(); THREADS],
            next: [0; THREADS],
            file: Vec::new(),
            visited: 0,
            calls: Vec::new(),
            unfinished: 0,
            moved: 0,
            began_on: std::collections::HashMap::new(),
        }
    }

    fn base(stack: usize) -> u32 {
        match stack < THREADS {
            true => 0x7000_0000 - stack as u32 * 0x80_0000,
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
                let rsp = World::base(stack) - depth * 64;
                let entry = self.record(thread, Entry, *function, rsp);
                self.began_on.insert(entry, thread);
                self.stacks[stack].push((*function, rsp, entry));
            }
            Act::Return => {
                if let Some((function, rsp, entry)) = self.stacks[stack].pop() {
                    let exit = self.record(thread, Exit, function, rsp);
                    self.calls.push((function, entry, exit));
                    self.moved += u64::from(self.began_on[&entry] != thread);
                }
            }
            Act::Go(to) => {
                let to = THREADS + to;
                self.on[thread] = match self.on.contains(&to) {
                    true => thread,
                    false => to,
                };
            }
            Act::Abandon => {
                if stack >= THREADS {
                    self.unfinished += self.stacks[stack].len();
                    self.stacks[stack].clear();
                }
            }
            Act::Visit => self.visit(),
        }
    }

    /// One ring after the other, as a recorder does.
    fn visit(&mut self) {
        let thread = self.visited % THREADS;
        self.visited += 1;
        let records = std::mem::take(&mut self.unread[thread]);
        if !records.is_empty() {
            let first_index = self.next[thread];
            self.next[thread] += records.len() as u64;
            self.file.push(OwnedBatch {
                thread: ThreadIx(thread as u32),
                first_index,
                lost: 0,
                torn: 0,
                records,
                settled: None,
            });
        }
    }

    fn run(acts: &[(usize, Act)]) -> World {
        let mut world = World::new();
        acts.iter()
            .for_each(|(thread, act)| world.act(*thread, act));
        (0..THREADS).for_each(|_| world.visit());
        world.unfinished += world.stacks.iter().map(Vec::len).sum::<usize>();
        world.calls.sort_unstable();
        world
    }
}

fn acts(abandon: u32) -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        8 => (0..FUNCTIONS).prop_map(Act::Call),
        8 => Just(Act::Return),
        6 => (0..COROUTINES).prop_map(Act::Go),
        abandon => Just(Act::Abandon),
        3 => Just(Act::Visit),
    ];
    prop::collection::vec((0..THREADS, act), 1..400)
}

proptest! {
    #[test]
    fn every_call_is_found_wherever_it_ends(acts in acts(0)) {
        let world = World::run(&acts);
        let (seen, totals) = seen(&index(THREADS as u32, 1), THREADS as u32, &world.file);
        prop_assert_eq!(&seen.calls, &world.calls);
        prop_assert_eq!(seen.orphans, 0);
        prop_assert_eq!(seen.unknown.len(), world.unfinished);
        prop_assert!(totals.oddities.moved >= world.moved);
    }

    /// A stack that is given up leaves no exits: nothing may be paired with what comes there later.
    #[test]
    fn no_call_is_made_up(acts in acts(2)) {
        let world = World::run(&acts);
        let (seen, _) = seen(&index(THREADS as u32, 1), THREADS as u32, &world.file);
        let made_up = seen.calls.iter().filter(|call| !world.calls.contains(call));
        prop_assert_eq!(made_up.count(), 0);
        prop_assert_eq!(seen.calls.len() + seen.orphans as usize, world.calls.len());
    }
}
