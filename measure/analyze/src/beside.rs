//! Batches of a recording in the order of the file, each with where other threads of the process used the same
//! stacks meanwhile (coroutines that move between threads).
//!
//! A batch is passed on when all that happened up to its end was read. Memory is told apart in parts: where no two
//! threads have records in one, nothing is kept of them. A part that a second thread comes to is *contested*:
//! from then on every record there is logged, and told to the other threads that were there. Places are the low
//! halves of stack pointers: two stacks exactly 4 GiB apart are one.
use crate::Index;
use crate::analysis::Batch;
use crate::other_uses::{self, BELOW_BYTES, OtherUse, PART_LOG2};
use hopscope_event::{Kind, ProcessIx, Record, ThreadIx, Tsc};
use std::collections::{HashMap, VecDeque};

const PAGE_LOG2: u32 = 12;
const _: () = assert!(BELOW_BYTES == 1 << PAGE_LOG2);
/// 256 MiB; beyond, batches are passed on before all of their time was read.
const HELD_RECORDS_MAX: usize = 16 << 20;
/// Pages that a thread was in lately.
const PAGES: usize = 64;
/// Log entries from which on it is worth looking which are done with.
const PRUNED_FROM: usize = 64 << 10;
/// Places that wait for a thread's next batch; beyond, others may have been everywhere.
const PENDING_MAX: usize = 64 << 10;
const UNCONTESTED: u32 = u32::MAX;

/// Consecutive records of one thread's ring, and what of other threads belongs among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost: u64,
    pub torn: u64,
    pub records: Vec<Record>,
    pub others: Vec<OtherUse>,
    /// Passed on before all that happened up to its end was read.
    pub early: bool,
}

impl OwnedBatch {
    /// As it was recorded: nothing is missing before it, nor known of others.
    pub fn new(thread: ThreadIx, first_index: u64, records: Vec<Record>) -> OwnedBatch {
        OwnedBatch {
            thread,
            first_index,
            lost: 0,
            torn: 0,
            records,
            others: Vec::new(),
            early: false,
        }
    }

    pub fn batch(&self) -> Batch<'_> {
        Batch {
            thread: self.thread,
            first_index: self.first_index,
            lost: self.lost,
            torn: self.torn,
            records: &self.records,
            others: &self.others,
            early: self.early,
        }
    }
}

/// A batch as it lies in the file, and what is known of those after it.
#[derive(Debug, Clone)]
pub struct Read {
    pub batch: OwnedBatch,
    /// No later batch has a record stamped before this, nor one that is lost.
    pub ahead_from: Tsc,
    pub last_of_thread: bool,
}

/// See the module.
pub struct Beside<I> {
    batches: I,
    ended: bool,
    held: Held,
    seen: Seen,
}

#[derive(Default)]
struct Held {
    batches: VecDeque<Scanned>,
    records: usize,
    /// All before this was read.
    until: u64,
}

struct Scanned {
    batch: OwnedBatch,
    /// First and last stamp.
    span: (u64, u64),
    looked_at: bool,
}

/// What the records that were read say.
#[derive(Default)]
struct Seen {
    /// Of those in processes with several.
    threads: HashMap<ThreadIx, Thread>,
    parts: HashMap<(ProcessIx, u32), Part>,
    contests: Vec<Contest>,
    /// Numbers of contests that are over.
    free: Vec<u32>,
    /// Counts what changes for pages that are known.
    epoch: u64,
    log: Vec<Use>,
    sorted: bool,
    pruned_from: usize,
    pruned_to: usize,
}

struct Thread {
    process: ProcessIx,
    pages: Box<[Page; PAGES]>,
    contests: Vec<u32>,
    /// The same, a bit each.
    takes_part: Vec<u64>,
    next_index: Option<u64>,
    newest: u64,
    /// Records are missing since this.
    lost_since: Option<u64>,
    /// No batch of it comes any more.
    done: bool,
    /// Uses by others up to then were told.
    told: u64,
    pending: HashMap<u32, u64>,
    pending_everywhere: Option<u64>,
}

/// A page that a thread was in, with the contested parts for which that counts.
#[derive(Clone, Copy)]
struct Page {
    page: u32,
    epoch: u64,
    parts: [u32; 2],
}

#[derive(Clone, Copy)]
enum Part {
    Owned(ThreadIx),
    Contested(u32),
}

struct Contest {
    part: u32,
    users: Vec<ThreadIx>,
}

#[derive(Clone, Copy)]
struct Use {
    at: u64,
    /// Later than `at` where records are missing: so long it may have been there.
    until: u64,
    thread: ThreadIx,
    contest: u32,
    granule: u32,
}

impl<I, E> Beside<I>
where
    I: Iterator<Item = Result<Read, E>>,
{
    /// `threads`: all of the recording.
    pub fn new(batches: I, index: &Index, threads: impl Iterator<Item = ThreadIx>) -> Beside<I> {
        Beside {
            batches,
            ended: false,
            held: Held::default(),
            seen: Seen::new(index, threads),
        }
    }

    /// Looks which log entries are done with from so many on, not when they are worth it: for tests.
    #[doc(hidden)]
    pub fn pruned_from(mut self, entries: usize) -> Beside<I> {
        self.seen.pruned_from = entries;
        self
    }
}

impl<I, E> Iterator for Beside<I>
where
    I: Iterator<Item = Result<Read, E>>,
{
    type Item = Result<OwnedBatch, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.held.ready() {
                return Some(Ok(self.seen.pass_on(ready, &self.held)));
            }
            if self.ended {
                return None;
            }
            match self.batches.next() {
                Some(Ok(read)) => self.seen.take(read, &mut self.held),
                Some(Err(e)) => return Some(Err(e)),
                None => {
                    self.ended = true;
                    self.held.until = u64::MAX;
                }
            }
        }
    }
}

impl Held {
    fn ready(&mut self) -> Option<Scanned> {
        let front = self.batches.front()?;
        let known = !front.looked_at || front.span.1 < self.until || self.until == u64::MAX;
        if !known && self.records <= HELD_RECORDS_MAX {
            return None;
        }
        let mut ready = self.batches.pop_front()?;
        self.records -= ready.batch.records.len();
        ready.batch.early = !known;
        Some(ready)
    }

    /// What is read from now on, and what is held, is not before this.
    fn begin(&self) -> u64 {
        let firsts = self.batches.iter().map(|held| held.span.0);
        firsts.fold(self.until, u64::min)
    }
}

fn has_place(record: &Record) -> bool {
    record.kind() != Some(Kind::Value)
}

impl Seen {
    fn new(index: &Index, threads: impl Iterator<Item = ThreadIx>) -> Seen {
        let threads: Vec<_> = threads.collect();
        let mut of_process: HashMap<ProcessIx, usize> = HashMap::new();
        for process in threads.iter().filter_map(|t| index.process(*t)) {
            *of_process.entry(process).or_default() += 1;
        }
        let several = |t: ThreadIx| {
            let process = index.process(t)?;
            (of_process[&process] > 1).then(|| (t, Thread::new(process)))
        };
        Seen {
            threads: threads.into_iter().filter_map(several).collect(),
            pruned_from: PRUNED_FROM,
            ..Seen::default()
        }
    }

    fn take(&mut self, read: Read, held: &mut Held) {
        let (first, batch) = (read.batch_first(), read.batch);
        held.until = read.ahead_from.0;
        held.records += batch.records.len();
        let looked_at = self.threads.contains_key(&batch.thread);
        let mut span = (first, first);
        if looked_at {
            span.1 = self.scan(&batch, held).max(first);
            if read.last_of_thread
                && let Some(thread) = self.threads.get_mut(&batch.thread)
            {
                thread.done = true;
            }
        }
        held.batches.push_back(Scanned {
            batch,
            span,
            looked_at,
        });
    }

    /// Logs what lies in contested parts; the last stamp.
    fn scan(&mut self, batch: &OwnedBatch, held: &Held) -> u64 {
        let ix = batch.thread;
        let Some(mut thread) = self.threads.remove(&ix) else {
            return 0;
        };
        self.gap(&mut thread, batch);
        let (mut last_page, mut parts) = (u32::MAX, [UNCONTESTED; 2]);
        for record in batch.records.iter().filter(|r| has_place(r)) {
            let (rsp, at) = (record.rsp_lo32(), record.tsc);
            thread.newest = thread.newest.max(at);
            let page = rsp >> PAGE_LOG2;
            if page != last_page {
                parts = self.page(&mut thread, ix, page, at, held);
                last_page = page;
            }
            for contest in parts.into_iter().filter(|part| *part != UNCONTESTED) {
                self.log(Use {
                    at,
                    until: at,
                    thread: ix,
                    contest,
                    granule: other_uses::granule(rsp),
                });
            }
        }
        let newest = thread.newest;
        self.threads.insert(ix, thread);
        newest
    }

    fn log(&mut self, one: Use) {
        self.sorted = false;
        self.log.push(one);
    }

    /// A thread of which records are missing may have been in all contested parts that it uses.
    fn gap(&mut self, thread: &mut Thread, batch: &OwnedBatch) {
        let begin = batch.first_index.wrapping_sub(batch.lost);
        let whole = thread.next_index.is_none_or(|next| next == begin);
        if batch.lost > 0 || batch.torn > 0 || !whole {
            thread.lost_since.get_or_insert(thread.newest);
        }
        let len = batch.records.len() as u64;
        thread.next_index = Some(batch.first_index.wrapping_add(len));
        let Some(next) = batch
            .records
            .iter()
            .filter(|r| has_place(r))
            .map(|r| r.tsc)
            .next()
        else {
            return;
        };
        let Some(since) = thread.lost_since.take() else {
            return;
        };
        for &contest in &thread.contests {
            let part = self.contests[contest as usize].part;
            for granule in other_uses::granules_of(part) {
                self.log(Use {
                    at: since,
                    until: next,
                    thread: batch.thread,
                    contest,
                    granule,
                });
            }
        }
    }

    /// The contested ones of the parts in which `page` counts: its own, and that of what lies above it.
    fn page(
        &mut self,
        thread: &mut Thread,
        ix: ThreadIx,
        page: u32,
        at: u64,
        held: &Held,
    ) -> [u32; 2] {
        let known = &thread.pages[page as usize % PAGES];
        if known.page == page && known.epoch == self.epoch {
            return known.parts;
        }
        let own = page >> (PART_LOG2 - PAGE_LOG2);
        let above = (page + 1) % (1 << (32 - PAGE_LOG2)) >> (PART_LOG2 - PAGE_LOG2);
        let mut parts = [self.part(thread, ix, own, at, held), UNCONTESTED];
        if above != own {
            parts[1] = self.part(thread, ix, above, at, held);
        }
        thread.pages[page as usize % PAGES] = Page {
            page,
            epoch: self.epoch,
            parts,
        };
        parts
    }

    fn part(&mut self, thread: &mut Thread, ix: ThreadIx, part: u32, at: u64, held: &Held) -> u32 {
        let found = self.parts.entry((thread.process, part));
        let found = *found.or_insert(Part::Owned(ix));
        let other = match found {
            Part::Owned(owner) if owner == ix => return UNCONTESTED,
            Part::Owned(other) => other,
            Part::Contested(contest) => {
                if !thread.takes_part(contest) && self.is_over(contest, at) {
                    self.free.push(contest);
                    self.inherit(thread, ix, part);
                    return UNCONTESTED;
                }
                if !thread.takes_part(contest) {
                    thread.join(contest, &mut self.contests[contest as usize], ix);
                    thread.wait_for_batch(other_uses::had_before(part), 0);
                }
                return contest;
            }
        };
        if self.has_ended(other, at) {
            self.inherit(thread, ix, part);
            return UNCONTESTED;
        }
        let contest = self.contest(part);
        self.epoch += 1;
        self.parts
            .insert((thread.process, part), Part::Contested(contest));
        thread.join(contest, &mut self.contests[contest as usize], ix);
        if let Some(of_other) = self.threads.get_mut(&other) {
            of_other.join(contest, &mut self.contests[contest as usize], other);
        }
        // That it was here before is all that is known of what was passed on.
        thread.wait_for_batch(other_uses::had_before(part), 0);
        self.log_held(other, part, contest, held);
        contest
    }

    /// A thread that has ended left its stack to this one.
    fn inherit(&mut self, thread: &mut Thread, ix: ThreadIx, part: u32) {
        thread.wait_for_batch(other_uses::had_before(part), 0);
        self.epoch += 1;
        self.parts.insert((thread.process, part), Part::Owned(ix));
    }

    fn has_ended(&self, thread: ThreadIx, at: u64) -> bool {
        let ended = |thread: &Thread| thread.done && thread.newest < at;
        self.threads.get(&thread).is_none_or(ended)
    }

    /// All who were there have ended, and have nothing to be told any more.
    fn is_over(&self, contest: u32, at: u64) -> bool {
        let users = &self.contests[contest as usize].users;
        let passed_on = |user: &ThreadIx| self.threads.get(user).is_none_or(Thread::is_passed_on);
        users
            .iter()
            .all(|user| self.has_ended(*user, at) && passed_on(user))
    }

    fn contest(&mut self, part: u32) -> u32 {
        let contest = Contest {
            part,
            users: Vec::new(),
        };
        if let Some(free) = self.free.pop() {
            self.contests[free as usize] = contest;
            return free;
        }
        self.contests.push(contest);
        self.contests.len() as u32 - 1
    }

    fn log_held(&mut self, thread: ThreadIx, part: u32, contest: u32, held: &Held) {
        let of_thread = held.batches.iter().filter(|h| h.batch.thread == thread);
        for record in of_thread.flat_map(|h| &h.batch.records) {
            let rsp = record.rsp_lo32();
            let here = rsp >> PART_LOG2 == part;
            let below = rsp.wrapping_add(BELOW_BYTES) >> PART_LOG2 == part;
            if has_place(record) && (here || below) {
                self.log(Use {
                    at: record.tsc,
                    until: record.tsc,
                    thread,
                    contest,
                    granule: other_uses::granule(rsp),
                });
            }
        }
    }

    fn pass_on(&mut self, ready: Scanned, held: &Held) -> OwnedBatch {
        let mut batch = ready.batch;
        if !ready.looked_at {
            return batch;
        }
        if !std::mem::replace(&mut self.sorted, true) {
            self.log.sort_by_key(|one| one.at);
        }
        if let Some(thread) = self.threads.get_mut(&batch.thread) {
            let known = match batch.early {
                true => ready.span.1.min(held.until.saturating_sub(1)),
                false => ready.span.1,
            };
            batch.others = thread.others(&batch, known, &self.log);
        }
        if self.log.len() > self.pruned_from.max(2 * self.pruned_to) {
            self.prune(held.begin());
        }
        batch
    }

    /// What came before all batches to come waits for the next one of each thread that it concerns.
    fn prune(&mut self, begin: u64) {
        let done = self.log.partition_point(|one| one.at < begin);
        for one in self.log.drain(..done) {
            for user in &self.contests[one.contest as usize].users {
                if let Some(thread) = self.threads.get_mut(user)
                    && *user != one.thread
                    && !thread.is_passed_on()
                    && one.at > thread.told
                {
                    thread.wait_for_batch(one.granule, one.until);
                }
            }
        }
        self.pruned_to = self.log.len();
    }
}

impl Read {
    fn batch_first(&self) -> u64 {
        let mut stamped = self.batch.records.iter().filter(|r| has_place(r));
        stamped.next().map_or(self.ahead_from.0, |r| r.tsc)
    }
}

impl Thread {
    fn new(process: ProcessIx) -> Thread {
        let page = Page {
            page: u32::MAX,
            epoch: 0,
            parts: [UNCONTESTED; 2],
        };
        Thread {
            process,
            pages: Box::new([page; PAGES]),
            contests: Vec::new(),
            takes_part: Vec::new(),
            next_index: None,
            newest: 0,
            lost_since: None,
            done: false,
            told: 0,
            pending: HashMap::new(),
            pending_everywhere: None,
        }
    }

    /// No batch of it is held, and none comes.
    fn is_passed_on(&self) -> bool {
        self.done && self.told >= self.newest
    }

    fn takes_part(&self, contest: u32) -> bool {
        let word = self.takes_part.get(contest as usize / 64);
        word.is_some_and(|word| word >> (contest % 64) & 1 != 0)
    }

    fn join(&mut self, contest: u32, of: &mut Contest, ix: ThreadIx) {
        if !self.takes_part(contest) {
            of.users.push(ix);
            self.contests.push(contest);
            let word = contest as usize / 64;
            self.takes_part
                .resize(self.takes_part.len().max(word + 1), 0);
            self.takes_part[word] |= 1 << (contest % 64);
        }
    }

    fn wait_for_batch(&mut self, granule: u32, until: u64) {
        if self.pending.len() >= PENDING_MAX && !self.pending.contains_key(&granule) {
            let last = self.pending.values().copied().max();
            self.pending_everywhere = self.pending_everywhere.max(last);
            self.pending.clear();
        }
        let last = self.pending.entry(granule).or_default();
        *last = until.max(*last);
    }

    /// What others did up to `until` and was not told yet, each before the record that follows.
    fn others(&mut self, batch: &OwnedBatch, until: u64, log: &[Use]) -> Vec<OtherUse> {
        let everywhere = self.pending_everywhere.take();
        let mut others: Vec<_> = everywhere
            .map(|tsc| OtherUse::everywhere(0, tsc))
            .into_iter()
            .chain(
                self.pending
                    .drain()
                    .map(|(granule, tsc)| OtherUse::new(0, granule, tsc)),
            )
            .collect();
        let from = log.partition_point(|one| one.at <= self.told);
        self.told = self.told.max(until);
        let mut before = 0;
        for one in log[from..].iter().take_while(|one| one.at <= until) {
            if one.thread == batch.thread || !self.takes_part(one.contest) {
                continue;
            }
            let earlier = |r: &Record| !has_place(r) || r.tsc <= one.at;
            while batch.records.get(before).is_some_and(earlier) {
                before += 1;
            }
            let next = OtherUse::new(before as u32, one.granule, one.until);
            match others.last_mut() {
                Some(last) if last.joins(&next) => last.tsc = last.tsc.max(next.tsc),
                _ => others.push(next),
            }
        }
        others
    }
}
