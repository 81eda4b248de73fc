//! What follows each batch of records in the file: a reader that puts threads side by side knows from it up to
//! when it has seen all.
use crate::batch::BatchHead;
use hopscope_event::{ThreadIx, Tsc};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// No later batch has a record stamped before this, nor one that is lost.
    pub from: Tsc,
    /// No later batch is of the same thread.
    pub last_of_thread: bool,
}

pub(crate) fn of(heads: impl Iterator<Item = BatchHead>, first_stamps: &[u64]) -> Vec<Ahead> {
    let heads: Vec<_> = heads.collect();
    let begins = begins(&heads, first_stamps);
    let mut seen = HashSet::new();
    let mut from = u64::MAX;
    let mut ahead: Vec<_> = heads
        .iter()
        .zip(begins)
        .rev()
        .map(|(head, begin)| {
            let of = Ahead {
                from: Tsc(from),
                last_of_thread: seen.insert(head.thread),
            };
            from = from.min(begin);
            of
        })
        .collect();
    ahead.reverse();
    ahead
}

#[derive(Clone, Copy)]
struct Before {
    first_stamp: u64,
    end: u64,
    /// Something is missing since, and no record came after it.
    gap: bool,
}

/// Where what a batch tells of begins. What is lost before it came after the batch before of its thread.
fn begins(heads: &[BatchHead], first_stamps: &[u64]) -> Vec<u64> {
    let mut of_thread: HashMap<ThreadIx, Before> = HashMap::new();
    let begin = |(head, first): (&BatchHead, &u64)| {
        let end = head.first_index.wrapping_add(u64::from(head.records));
        let before = of_thread.get(&head.thread).copied();
        let gap = head.torn_before > 0
            || before.is_some_and(|before| before.gap || before.end != head.first_index);
        let begin = match before {
            Some(before) if gap => before.first_stamp.min(*first),
            _ => *first,
        };
        let empty = *first == u64::MAX;
        let this = Before {
            first_stamp: if empty { begin } else { *first },
            end,
            gap: gap && empty,
        };
        of_thread.insert(head.thread, this);
        begin
    };
    heads.iter().zip(first_stamps).map(begin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(thread: u32, first_index: u64, records: u32, lost_before: u64) -> BatchHead {
        BatchHead {
            thread: ThreadIx(thread),
            records,
            first_index,
            lost_before,
            torn_before: 0,
        }
    }

    #[test]
    fn later_batches_begin_at_their_first_stamp_or_at_what_is_lost_before() {
        let heads = [
            head(0, 0, 10, 0),
            head(1, 0, 10, 0),
            head(0, 10, 10, 0),
            // Records are lost after those of the second batch.
            head(1, 15, 10, 5),
            head(0, 20, 0, 0),
        ];
        let ahead = of(heads.into_iter(), &[100, 150, 300, 400, u64::MAX]);
        let from: Vec<_> = ahead.iter().map(|a| a.from.0).collect();
        assert_eq!(from, [150, 150, 150, u64::MAX, u64::MAX]);
        let last: Vec<_> = ahead.iter().map(|a| a.last_of_thread).collect();
        assert_eq!(last, [false, false, false, true, true]);
    }
}
