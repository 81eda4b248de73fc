//! Batches of a recording such that records of stacks that several threads run on come in order of time.
//!
//! A recorder visits the rings in turn, so that a batch holds what one thread did meanwhile, beside batches of
//! others of the same time. Where no two threads have records in one part of memory, batches are passed on as
//! they come. Where they do, those of the threads concerned are cut where the stacks change hands.
use crate::Index;
use crate::analysis::Batch;
use crate::rounds::Rounds;
use hopscope_event::{Kind, ProcessIx, Record, ThreadIx, Tsc};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Memory is told apart in parts of this size.
const PART_LOG2: u32 = 14;
/// Parts that a thread was in lately.
const RECENT: usize = 16;
/// 128 MiB; beyond, batches are passed on before all of their time are there.
const HELD_RECORDS_MAX: usize = 8 << 20;

/// Consecutive records of one thread's ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost: u64,
    pub torn: u64,
    pub records: Vec<Record>,
    /// Where threads were on stacks of others: up to then everything was given out before this batch.
    pub settled: Option<Tsc>,
}

impl OwnedBatch {
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            thread: self.thread,
            first_index: self.first_index,
            lost: self.lost,
            torn: self.torn,
            records: &self.records,
        }
    }

    fn newest(&self) -> u64 {
        self.records.last().map_or(0, |r| r.tsc)
    }
}

/// See the module.
pub struct InOrder<I> {
    batches: I,
    ended: bool,
    order: Order,
}

#[derive(Default)]
struct Order {
    process_of: HashMap<ThreadIx, Option<ProcessIx>>,
    /// False where no process has two threads.
    looks: bool,
    rounds: Rounds,
    held: VecDeque<Held>,
    held_records: usize,
    ready: VecDeque<OwnedBatch>,
    recent: HashMap<ThreadIx, [u32; RECENT]>,
    /// Who was in a part last.
    last_in: HashMap<(Option<ProcessIx>, u32), ThreadIx>,
    shared: HashSet<(Option<ProcessIx>, u32)>,
    /// Threads that were in such a part.
    sharing: HashSet<ThreadIx>,
    /// Everything is given out up to then, and will be with what is ready.
    settled: u64,
    until: u64,
    given_before_time: u64,
}

struct Held {
    batch: OwnedBatch,
    /// Records that are passed on already, and whether anything is.
    given: usize,
    begun: bool,
}

/// A place among the held records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    held: usize,
    record: usize,
}

/// A thread is in a shared part.
struct Visit {
    tsc: u64,
    thread: ThreadIx,
    place: Place,
    part: u32,
}

impl<I, E> InOrder<I>
where
    I: Iterator<Item = Result<OwnedBatch, E>>,
{
    /// `threads`: all of the recording, where they are known.
    pub fn new(batches: I, index: &Index, threads: impl Iterator<Item = ThreadIx>) -> InOrder<I> {
        let process_of: HashMap<_, _> = threads.map(|t| (t, index.process(t))).collect();
        let processes: HashSet<_> = process_of.values().collect();
        InOrder {
            batches,
            ended: false,
            order: Order {
                looks: processes.len() < process_of.len(),
                process_of,
                ..Order::default()
            },
        }
    }

    /// Batches that were given out before all records of their time were there: too many at once.
    pub fn given_before_time(&self) -> u64 {
        self.order.given_before_time
    }
}

impl<I, E> Iterator for InOrder<I>
where
    I: Iterator<Item = Result<OwnedBatch, E>>,
{
    type Item = Result<OwnedBatch, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(mut batch) = self.order.ready.pop_front() {
                if !self.order.sharing.is_empty() {
                    batch.settled = Some(Tsc(self.order.settled));
                }
                return Some(Ok(batch));
            }
            self.order.settled = self.order.until;
            if self.ended {
                return None;
            }
            match self.batches.next() {
                Some(Ok(batch)) if !self.order.looks => return Some(Ok(batch)),
                Some(Ok(batch)) => self.order.take(batch),
                Some(Err(e)) => return Some(Err(e)),
                None => {
                    self.ended = true;
                    self.order.give(u64::MAX);
                }
            }
        }
    }
}

fn part(record: &Record) -> Option<u32> {
    let part = record.rsp_lo32() >> PART_LOG2;
    (record.kind() != Some(Kind::Value)).then_some(part)
}

impl Order {
    fn process(&self, thread: ThreadIx) -> Option<ProcessIx> {
        self.process_of.get(&thread).copied().flatten()
    }

    fn take(&mut self, batch: OwnedBatch) {
        let until = self.rounds.visit(&batch.batch());
        self.look(&batch);
        self.held_records += batch.records.len();
        self.held.push_back(Held {
            batch,
            given: 0,
            begun: false,
        });
        if let Some(until) = until {
            self.give(until);
        }
        while self.held_records > HELD_RECORDS_MAX
            && let Some(oldest) = self.held.front()
        {
            self.given_before_time += 1;
            self.give(oldest.batch.newest());
        }
    }

    /// Finds parts that other threads were in.
    fn look(&mut self, batch: &OwnedBatch) {
        let (thread, process) = (batch.thread, self.process(batch.thread));
        let recent = self.recent.entry(thread).or_insert([u32::MAX; RECENT]);
        let mut last = u32::MAX;
        for part in batch.records.iter().filter_map(part) {
            if part == last {
                continue;
            }
            last = part;
            let slot = &mut recent[part as usize % RECENT];
            if *slot == part {
                continue;
            }
            *slot = part;
            let before = self.last_in.insert((process, part), thread);
            if let Some(other) = before.filter(|other| *other != thread) {
                self.shared.insert((process, part));
                self.sharing.extend([thread, other]);
            }
        }
    }

    /// Passes on what is stamped up to then.
    fn give(&mut self, until: u64) {
        if !self.sharing.is_empty() {
            self.cut(until);
            self.until = self.until.max(until);
        }
        // A thread's batches stay in their order, also where a clock ran backwards.
        let mut waits: HashSet<ThreadIx> = HashSet::new();
        let all_in_order = self.sharing.is_empty();
        let mut kept = VecDeque::new();
        while let Some(held) = self.held.pop_front() {
            let thread = held.batch.thread;
            if held.batch.newest() > until || waits.contains(&thread) {
                if all_in_order {
                    self.held.push_front(held);
                    return;
                }
                waits.insert(thread);
                kept.push_back(held);
                continue;
            }
            let records = held.batch.records.len();
            self.held_records -= records - held.given;
            if !held.begun {
                self.ready.push_back(held.batch);
            } else if held.given < records {
                self.ready.push_back(held.piece(held.given, records));
            }
        }
        self.held = kept;
    }

    /// Passes on pieces of batches, so that of shared parts nobody's records come before older ones of others.
    fn cut(&mut self, until: u64) {
        let visits = self.visits(until);
        let mut places: HashMap<ThreadIx, Vec<usize>> = HashMap::new();
        for (n, held) in self.held.iter().enumerate() {
            places.entry(held.batch.thread).or_default().push(n);
        }
        let mut last: HashMap<(Option<ProcessIx>, u32), (ThreadIx, Place)> = HashMap::new();
        for visit in visits {
            let key = (self.process(visit.thread), visit.part);
            let before = last.insert(key, (visit.thread, visit.place));
            if let Some((other, place)) = before.filter(|(other, _)| *other != visit.thread) {
                self.give_up_to(places.get(&other).map_or(&[], Vec::as_slice), place);
            }
        }
    }

    /// What a thread did up to this place, and there.
    fn give_up_to(&mut self, of_thread: &[usize], place: Place) {
        for n in of_thread.iter().take_while(|n| **n <= place.held) {
            let held = &mut self.held[*n];
            let end = match *n == place.held {
                true => place.record + 1,
                false => held.batch.records.len(),
            };
            if held.given < end || !held.begun {
                let piece = held.piece(held.given, end);
                self.held_records -= end - held.given;
                (held.given, held.begun) = (end, true);
                self.ready.push_back(piece);
            }
        }
    }

    /// Records in shared parts where stacks may change hands, by their time: of parts that threads use one
    /// after the other the first and the last of each, of others all.
    fn visits(&self, until: u64) -> Vec<Visit> {
        type Spans = BTreeMap<ThreadIx, (u64, u64)>;
        let mut spans: HashMap<(Option<ProcessIx>, u32), Spans> = HashMap::new();
        self.in_shared(until, |visit| {
            let key = (self.process(visit.thread), visit.part);
            let of_part = spans.entry(key).or_default();
            let span = of_part
                .entry(visit.thread)
                .or_insert((visit.tsc, visit.tsc));
            *span = (span.0.min(visit.tsc), span.1.max(visit.tsc));
        });
        spans.retain(|_, of_part| of_part.len() > 1);
        let overlap = |of_part: &Spans| {
            let mut sorted: Vec<_> = of_part.values().collect();
            sorted.sort_unstable();
            sorted.windows(2).any(|two| two[1].0 <= two[0].1)
        };
        let in_turn: HashMap<_, bool> = spans.iter().map(|(k, s)| (*k, !overlap(s))).collect();
        let mut visits = Vec::new();
        self.in_shared(until, |visit| {
            let key = (self.process(visit.thread), visit.part);
            let Some(in_turn) = in_turn.get(&key) else {
                return;
            };
            let (first, last) = spans[&key][&visit.thread];
            if !in_turn || visit.tsc == first || visit.tsc == last {
                visits.push(visit);
            }
        });
        visits.sort_by_key(|v| v.tsc);
        visits
    }

    fn in_shared(&self, until: u64, mut each: impl FnMut(Visit)) {
        for (n, held) in self.held.iter().enumerate() {
            let thread = held.batch.thread;
            if !self.sharing.contains(&thread) {
                continue;
            }
            let process = self.process(thread);
            let (mut last, mut shared) = (u32::MAX, false);
            let records = held.batch.records.iter().enumerate().skip(held.given);
            for (at, record) in records {
                let Some(part) = part(record) else {
                    continue;
                };
                if part != last {
                    (last, shared) = (part, self.shared.contains(&(process, part)));
                }
                if shared && record.tsc <= until {
                    each(Visit {
                        tsc: record.tsc,
                        thread,
                        place: Place {
                            held: n,
                            record: at,
                        },
                        part,
                    });
                }
            }
        }
    }
}

impl Held {
    /// What is missing belongs before the first piece.
    fn piece(&self, from: usize, to: usize) -> OwnedBatch {
        let first = from == 0;
        OwnedBatch {
            thread: self.batch.thread,
            first_index: self.batch.first_index + from as u64,
            lost: if first { self.batch.lost } else { 0 },
            torn: if first { self.batch.torn } else { 0 },
            records: self.batch.records[from..to].to_vec(),
            settled: None,
        }
    }
}
