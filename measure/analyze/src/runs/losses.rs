//! Between which stamps records of a thread are missing.
use crate::batch::Batch;
use crate::join::Loss;
use hopscope_event::{ThreadIx, Tsc};
use std::collections::HashMap;

/// Beyond this the last one is made longer: then it hides more than it did.
const LOSSES_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Losses {
    found: Vec<Loss>,
    threads: HashMap<ThreadIx, OfThread>,
}

#[derive(Debug, Default)]
struct OfThread {
    latest: Tsc,
    /// A loss that no record came after yet.
    from: Option<Tsc>,
}

impl Losses {
    /// Records before the batch that comes next are missing.
    pub(super) fn begin(&mut self, thread: ThreadIx) {
        let of = self.threads.entry(thread).or_default();
        of.from.get_or_insert(of.latest);
    }

    pub(super) fn seen(&mut self, batch: &Batch<'_>) {
        let stamped = |r: &&hopscope_event::Record| r.value().is_none();
        let Some(first) = batch.records.iter().find(stamped) else {
            return;
        };
        let of = self.threads.entry(batch.thread).or_default();
        let last = batch.records.iter().rev().find(stamped).unwrap_or(first);
        of.latest = of.latest.max(Tsc(last.tsc));
        if let Some(from) = of.from.take() {
            let (thread, to) = (batch.thread, Tsc(first.tsc));
            self.add(Loss { thread, from, to });
        }
    }

    fn add(&mut self, loss: Loss) {
        let full = self.found.len() >= LOSSES_MAX;
        match self.found.last_mut() {
            Some(last) if full => {
                last.from = last.from.min(loss.from);
                last.to = last.to.max(loss.to);
            }
            _ => self.found.push(loss),
        }
    }

    pub(super) fn finish(&mut self) {
        for (thread, of) in std::mem::take(&mut self.threads) {
            if let Some(from) = of.from {
                let to = Tsc(u64::MAX);
                self.add(Loss { thread, from, to });
            }
        }
    }

    pub(super) fn found(&self) -> &[Loss] {
        &self.found
    }
}
