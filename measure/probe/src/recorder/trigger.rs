//! What makes a flight recorder save: a call that took too long, or a signal.
use hopscope_event::{FunctionId, Record, RecordKind, ThreadIx, TriggerEntry, Tsc};
use hopscope_trace::RecordBatch;
use std::collections::HashMap;

/// Deeper recursion of a triggered function is not followed further in.
const OPEN_MAX: usize = 1024;

/// A call of one of `functions` that takes longer than `ticks`, as measured.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// As the user wrote it.
    pub text: String,
    pub functions: Vec<FunctionId>,
    pub ticks: u64,
}

#[derive(Debug)]
pub struct Triggers {
    triggers: Vec<Trigger>,
    /// Dense by function: whether any trigger is about it.
    watched: Vec<bool>,
    threads: HashMap<ThreadIx, Thread>,
}

/// Calls of a target that take too long.
#[derive(Debug)]
pub(super) struct SlowCalls {
    triggers: Triggers,
    /// The first one that was seen.
    pub(super) first: Option<TriggerEntry>,
}

impl SlowCalls {
    pub(super) fn new(slow: &[Trigger]) -> SlowCalls {
        SlowCalls {
            triggers: Triggers::new(slow.to_vec()),
            first: None,
        }
    }

    pub(super) fn see(&mut self, batch: &RecordBatch) {
        if self.first.is_none() {
            self.first = self.triggers.fired(batch).into_iter().next();
        }
    }
}

#[derive(Debug, Default)]
struct Thread {
    next: u64,
    open: Vec<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    function: FunctionId,
    rsp: u32,
    entry: u64,
}

impl Triggers {
    pub fn new(triggers: Vec<Trigger>) -> Triggers {
        let all = || triggers.iter().flat_map(|t| &t.functions);
        let len = all().map(|f| f.0 as usize + 1).max().unwrap_or(0);
        let mut watched = vec![false; len];
        all().for_each(|f| watched[f.0 as usize] = true);
        Triggers {
            triggers,
            watched,
            threads: HashMap::new(),
        }
    }

    /// The calls among these records that took too long. Only triggered functions are paired, by
    /// function and stack pointer; across a loss nothing is.
    pub fn fired(&mut self, batch: &RecordBatch<'_>) -> Vec<TriggerEntry> {
        let mut fired = Vec::new();
        if self.watched.is_empty() {
            return fired;
        }
        let thread = self.threads.entry(batch.thread).or_default();
        if batch.lost_before + batch.torn_before > 0 || batch.first_index != thread.next {
            thread.open.clear();
        }
        thread.next = batch.first_index + batch.records.len() as u64;
        for record in batch.records {
            let function = record.function();
            if self.watched.get(function.0 as usize) != Some(&true) {
                continue;
            }
            let Some(took_ticks) = thread.ended(record) else {
                continue;
            };
            let slow = |t: &&Trigger| took_ticks > t.ticks && t.functions.contains(&function);
            fired.extend(self.triggers.iter().filter(slow).map(|t| TriggerEntry {
                trigger: t.text.clone(),
                at: Tsc(record.tsc),
                thread: Some(batch.thread),
                function: Some(function),
                took_ticks: Some(took_ticks),
            }));
        }
        fired
    }

    /// Threads that are gone need no place.
    pub fn forget(&mut self, is_there: impl Fn(ThreadIx) -> bool) {
        self.threads.retain(|ix, _| is_there(*ix));
    }
}

impl Thread {
    /// Ticks of the call that `record` ends, if it ends one.
    fn ended(&mut self, record: &Record) -> Option<u64> {
        let (function, rsp) = (record.function(), record.rsp_lo32());
        match record.kind()? {
            RecordKind::Entry => {
                // The same place twice: the first one was left without an exit.
                self.open.retain(|o| (o.function, o.rsp) != (function, rsp));
                if self.open.len() < OPEN_MAX {
                    let entry = record.tsc;
                    self.open.push(Open {
                        function,
                        rsp,
                        entry,
                    });
                }
                None
            }
            RecordKind::Exit | RecordKind::TailExit => {
                let its = |o: &Open| (o.function, o.rsp) == (function, rsp);
                let at = self.open.iter().rposition(its)?;
                let open = self.open.remove(at);
                // A signal inside the probe may have turned the order round.
                record.tsc.checked_sub(open.entry)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecordKind::{Entry, Exit};

    fn record(tsc: u64, kind: RecordKind, function: u32, rsp: u32) -> Record {
        Record::new(tsc, FunctionId(function), kind, rsp)
    }

    fn fired(triggers: &mut Triggers, first_index: u64, lost: u64, records: &[Record]) -> Vec<u64> {
        let batch = RecordBatch {
            thread: ThreadIx(0),
            first_index,
            lost_before: lost,
            torn_before: 0,
            records,
        };
        triggers.fired(&batch).iter().map(|t| t.at.0).collect()
    }

    fn slow(function: u32, ticks: u64) -> Triggers {
        Triggers::new(vec![Trigger {
            text: "t".into(),
            functions: vec![FunctionId(function)],
            ticks,
        }])
    }

    #[test]
    fn calls_longer_than_the_threshold_fire_also_across_batches() {
        let mut t = slow(2, 100);
        let first = [
            record(10, Entry, 1, 800),
            record(20, Entry, 2, 400),
            record(120, Exit, 2, 400),
            record(200, Entry, 2, 400),
        ];
        assert!(fired(&mut t, 0, 0, &first).is_empty());
        let second = [record(301, Exit, 2, 400), record(900, Exit, 1, 800)];
        assert_eq!(fired(&mut t, 4, 0, &second), [301]);
    }

    #[test]
    fn nothing_fires_across_a_loss_or_from_a_call_left_without_exit() {
        let mut t = slow(2, 100);
        assert!(fired(&mut t, 0, 0, &[record(20, Entry, 2, 400)]).is_empty());
        assert!(fired(&mut t, 9, 8, &[record(900, Exit, 2, 400)]).is_empty());
        let left = [
            record(1_000, Entry, 2, 400),
            record(2_000, Entry, 2, 400),
            record(2_050, Exit, 2, 400),
        ];
        assert!(fired(&mut t, 10, 0, &left).is_empty());
    }
}
