//! What lies between two batches of a thread.
use crate::batch::Batch;
use crate::sink::Gap;

/// Where the records of one thread went on.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    /// Ring index of the first slot after the last batch, torn slots not counted.
    next_index: Option<u64>,
    /// Torn slots that may lie anywhere since they were reported: the writer cuts long batches
    /// and names the torn slots of all parts with the first.
    torn_since: u64,
}

impl Continuity {
    pub(crate) fn continues(&mut self, batch: &Batch<'_>) -> Gap {
        let begin = batch.first_index.wrapping_sub(batch.lost);
        let next = self.next_index.unwrap_or(begin);
        let ahead = begin.wrapping_sub(next);
        let discontinuous = ahead > self.torn_since;
        if ahead > 0 {
            self.torn_since = 0;
        }
        self.torn_since += batch.torn;
        let end = batch.first_index.wrapping_add(batch.records.len() as u64);
        self.next_index = Some(end);
        Gap {
            lost: batch.lost,
            torn: batch.torn,
            missing: match begin > next && discontinuous {
                true => ahead,
                false => 0,
            },
            discontinuous,
            torn_among: self.torn_since > 0,
        }
    }
}
