//! What is known of each function while records pass: how often it is called, and what its own part takes.
use hopscope_event::{FunctionId, Record, RecordKind, ThreadIx};
use hopscope_trace::RecordBatch;
use std::collections::HashMap;

/// Calls within calls that are followed; of those below, own parts are not known.
const DEPTH_MAX: usize = 512;
/// Threads that are in measured calls.
const STACKS_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Called {
    pub calls: u64,
    /// Of all kinds: each costs half of what a call does.
    pub records: u64,
    /// Of the calls, and of those that began before, with a known end.
    pub ended: u64,
    /// Of those that ended: in the function itself and in what is not measured, as read.
    pub own_ticks: u64,
    /// Of those that ended: so long that the thread may have been preempted.
    pub long: u64,
    pub long_ticks: u64,
}

/// Time slices are longer.
const LONG_TICKS: u64 = 1 << 20;
/// With fewer long calls than one in so many, they are taken for preempted.
const LONG_ARE_ONE_IN: u64 = 1000;
/// Who has begun so often and never ended tells no times.
const BEGUN_OFTEN: u64 = 16;

impl Called {
    /// Mean of a call.
    pub fn own_ticks_each(&self) -> Option<u64> {
        match self.long * LONG_ARE_ONE_IN < self.ended {
            true => (self.own_ticks - self.long_ticks).checked_div(self.ended - self.long),
            false => self.own_ticks.checked_div(self.ended),
        }
    }

    /// What is left out first: what tells least for what it takes.
    pub fn worth(&self) -> u64 {
        let without = if self.calls > BEGUN_OFTEN {
            0
        } else {
            u64::MAX
        };
        self.own_ticks_each().unwrap_or(without)
    }
}

/// By function, since the last [`Tally::clear`].
#[derive(Debug, Default)]
pub struct Tally {
    functions: Vec<Called>,
    stacks: HashMap<ThreadIx, Vec<Open>>,
    records: u64,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    function: FunctionId,
    rsp: u32,
    since: u64,
    /// In measured calls that it made.
    below: u64,
}

impl Tally {
    /// Of so many functions; others are none of ours, whatever a ring says.
    pub fn of(functions: usize) -> Tally {
        Tally {
            functions: vec![Called::default(); functions],
            ..Tally::default()
        }
    }

    /// What was lost is taken to be of each as much as of what was not.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, Called)> {
        let all = self.records + self.lost;
        let scaled = move |n: u64| {
            (u128::from(n) * u128::from(all)).div_ceil(u128::from(self.records.max(1))) as u64
        };
        let functions = self.functions.iter().enumerate();
        let functions = functions.filter(|(_, called)| called.records > 0);
        functions.map(move |(n, called)| {
            let called = Called {
                calls: scaled(called.calls),
                records: scaled(called.records),
                ..*called
            };
            (FunctionId(n as u32), called)
        })
    }

    /// Calls that are open stay open.
    pub fn clear(&mut self) {
        self.functions.fill(Called::default());
        (self.records, self.lost) = (0, 0);
        self.stacks.retain(|_, stack| !stack.is_empty());
        // Of threads that ended within their calls.
        if self.stacks.len() > STACKS_MAX {
            self.stacks.clear();
        }
    }

    pub fn add(&mut self, batch: &RecordBatch<'_>) {
        let stack = self.stacks.entry(batch.thread).or_default();
        self.records += batch.records.len() as u64;
        self.lost += batch.lost_before;
        // Ends may be among what was lost.
        if batch.lost_before + batch.torn_before > 0 {
            stack.clear();
        }
        for record in batch.records {
            let Some(called) = self.functions.get_mut(record.function().0 as usize) else {
                continue;
            };
            called.records += 1;
            match record.kind() {
                Some(RecordKind::Entry) => {
                    called.calls += 1;
                    begin(stack, record);
                }
                Some(RecordKind::Exit | RecordKind::TailExit) => {
                    if let Some(own_ticks) = end(stack, record) {
                        called.ended += 1;
                        called.own_ticks += own_ticks;
                        if own_ticks >= LONG_TICKS {
                            called.long += 1;
                            called.long_ticks += own_ticks;
                        }
                    }
                }
                Some(RecordKind::Escape | RecordKind::Value) | None => {}
            }
        }
    }
}

fn begin(stack: &mut Vec<Open>, record: &Record) {
    if stack.len() == DEPTH_MAX {
        stack.clear();
    }
    stack.push(Open {
        function: record.function(),
        rsp: record.rsp_lo32(),
        since: record.tsc,
        below: 0,
    });
}

/// What lies above a call that ends was left without an end (longjmp, exceptions).
fn end(stack: &mut Vec<Open>, record: &Record) -> Option<u64> {
    let is_its = |open: &Open| open.function == record.function() && open.rsp == record.rsp_lo32();
    let at = stack.iter().rposition(is_its)?;
    let open = stack[at];
    stack.truncate(at);
    let took = record.tsc.saturating_sub(open.since);
    if let Some(caller) = stack.last_mut() {
        caller.below += took;
    }
    Some(took.saturating_sub(open.below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecordKind::{Entry, Exit};
    use hopscope_event::record::id_kind;

    fn record(tsc: u64, function: u32, kind: RecordKind, rsp: u32) -> Record {
        Record {
            tsc,
            id_kind: id_kind(FunctionId(function), kind),
            stack: rsp,
        }
    }

    fn add(tally: &mut Tally, lost_before: u64, records: &[Record]) {
        tally.add(&RecordBatch {
            thread: ThreadIx(0),
            first_index: 0,
            lost_before,
            torn_before: 0,
            records,
        });
    }

    fn called(calls: u64, ended: u64, own_ticks: u64) -> Called {
        Called {
            calls,
            records: calls + ended,
            ended,
            own_ticks,
            ..Called::default()
        }
    }

    #[test]
    fn what_measured_calls_take_is_theirs() {
        let mut tally = Tally::of(2);
        let first = [
            record(100, 0, Entry, 90),
            record(110, 1, Entry, 80),
            record(130, 1, Exit, 80),
        ];
        add(&mut tally, 0, &first);
        // Its own record of an earlier call in the same place is not the one that ends.
        let second = [
            record(140, 1, Entry, 80),
            record(145, 1, Entry, 70),
            record(150, 1, Exit, 80),
            record(200, 0, Exit, 90),
        ];
        add(&mut tally, 0, &second);
        let all: Vec<_> = tally.functions().collect();
        let expected = [called(1, 1, 100 - 20 - 10), called(3, 2, 20 + 10)];
        assert_eq!(
            all,
            [(FunctionId(0), expected[0]), (FunctionId(1), expected[1])]
        );
        tally.clear();
        assert_eq!(tally.functions().count(), 0);
    }

    #[test]
    fn after_a_loss_no_end_is_taken_for_another_call() {
        let mut tally = Tally::of(1);
        add(&mut tally, 0, &[record(100, 0, Entry, 90)]);
        add(&mut tally, 8, &[record(900, 0, Exit, 90)]);
        let all: Vec<_> = tally.functions().collect();
        // Ten records for two: five times as many calls.
        let unknown = Called {
            records: 10,
            ..called(5, 0, 0)
        };
        assert_eq!(all, [(FunctionId(0), unknown)]);
    }

    #[test]
    fn rare_long_calls_are_preempted_ones() {
        let mut short = called(10_000, 10_000, 10_000 * 5 + 3 * LONG_TICKS);
        (short.long, short.long_ticks) = (3, 3 * LONG_TICKS);
        assert_eq!(short.own_ticks_each(), Some(5));
        let mut slow = called(100, 100, 100 * LONG_TICKS);
        (slow.long, slow.long_ticks) = (100, 100 * LONG_TICKS);
        assert_eq!(slow.own_ticks_each(), Some(LONG_TICKS));
        assert_eq!(called(1, 0, 0).worth(), u64::MAX);
        assert_eq!(called(1_000, 0, 0).worth(), 0);
    }

    /// Rings lie in the target's memory.
    #[test]
    fn numbers_of_no_function_take_no_room() {
        let mut tally = Tally::of(1);
        add(&mut tally, 0, &[record(100, 0x00ff_fff0, Entry, 90)]);
        assert_eq!((tally.functions().count(), tally.functions.len()), (0, 1));
    }
}
