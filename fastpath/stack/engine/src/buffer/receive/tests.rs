use super::super::pool::{CHUNK_BYTES, Pool};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A stream whose byte at each position is known.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9) >> 7) as u8
}

fn bytes(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(byte).collect()
}

fn pool() -> Pool {
    Pool::new(1 << 24)
}

/// What came, byte by byte, beside the buffer.
#[derive(Default)]
struct Model {
    read: u64,
    next: u64,
    came: BTreeMap<u64, u8>,
}

impl Model {
    fn write(&mut self, offset: u32, bytes: &[u8]) {
        let start = self.next + u64::from(offset);
        for (position, byte) in (start..).zip(bytes) {
            self.came.entry(position).or_insert(*byte);
        }
        while self.came.contains_key(&self.next) {
            self.next += 1;
        }
    }

    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for position in self.came.keys().filter(|p| **p > self.next) {
            let at = (position - self.next) as u32;
            match ranges.last_mut() {
                Some((_, end)) if *end == at => *end += 1,
                _ => ranges.push((at, at + 1)),
            }
        }
        ranges
    }

    fn read(&mut self, len: usize) -> Vec<u8> {
        let end = self.next.min(self.read + len as u64);
        let read = (self.read..end).map(|p| self.came[&p]).collect();
        self.read = end;
        read
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Other contents than the stream's, too: a peer can send what it wants.
    Write(u32, u16, bool),
    Read(u16),
    Peek(u16, u16),
    Discard(u16),
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u32..12_000, 0u16..6_000, any::<bool>()).prop_map(|(o, l, f)| Step::Write(o, l, f)),
        3 => (0u16..6_000, any::<bool>()).prop_map(|(l, f)| Step::Write(0, l, f)),
        3 => (0u16..9_000).prop_map(Step::Read),
        1 => (0u16..3_000, 0u16..3_000).prop_map(|(o, l)| Step::Peek(o, l)),
        1 => (0u16..9_000).prop_map(Step::Discard),
        1 => Just(Step::Prune),
    ]
}

proptest! {
    #[test]
    fn any_steps_give_what_came_first(steps in prop::collection::vec(step(), 0..40)) {
        let (mut pool, mut buffer, mut model) = (pool(), ReceiveBuffer::default(), Model::default());
        for step in steps {
            match step {
                Step::Write(offset, len, forged) => {
                    let mut segment = bytes(model.next + u64::from(offset), usize::from(len));
                    if forged {
                        segment.iter_mut().for_each(|b| *b ^= 0x55);
                    }
                    let (next, before) = (model.next, model.came.len());
                    model.write(offset, &segment);
                    let written = buffer.write(&mut pool, offset, &segment);
                    prop_assert_eq!(u64::from(written.advanced), model.next - next);
                    prop_assert_eq!(written.stored as usize, model.came.len() - before);
                    prop_assert_eq!(written.refused, 0);
                    if let Some((left, right)) = written.range {
                        prop_assert!(model.ranges().contains(&(left, right)));
                        prop_assert!(left <= offset && offset + u32::from(len) <= right);
                    }
                    prop_assert_eq!(written.duplicate.is_some(), (written.stored as usize) < segment.len());
                }
                Step::Read(len) => {
                    let mut into = vec![0; usize::from(len)];
                    let read = buffer.read(&mut pool, &mut into);
                    prop_assert_eq!(&into[..read], model.read(usize::from(len)));
                }
                Step::Peek(offset, len) => {
                    let mut into = vec![0; usize::from(len)];
                    let read = buffer.peek(usize::from(offset), &mut into);
                    let start = model.read + u64::from(offset);
                    let expected = (start..model.next).take(usize::from(len));
                    let expected: Vec<u8> = expected.map(|p| model.came[&p]).collect();
                    prop_assert_eq!(&into[..read], expected);
                }
                Step::Discard(len) => {
                    let discarded = buffer.discard(&mut pool, usize::from(len));
                    prop_assert_eq!(discarded, model.read(usize::from(len)).len());
                }
                Step::Prune => {
                    let next = model.next;
                    let ranges = model.ranges();
                    let pruned: u32 = ranges.iter().map(|(l, r)| r - l).sum();
                    prop_assert_eq!(buffer.prune(&mut pool), pruned as usize);
                    model.came.retain(|p, _| *p < next);
                }
            }
            prop_assert_eq!(buffer.readable() as u64, model.next - model.read);
            prop_assert_eq!(buffer.ranges().collect::<Vec<_>>(), model.ranges());
            prop_assert_eq!(pool.used_bytes() as usize, buffer.chunk_bytes());
        }
        buffer.clear(&mut pool);
        prop_assert_eq!(pool.used_bytes(), 0);
    }
}

#[test]
fn rfc2018_4_the_range_around_the_newest_segment() {
    let (mut pool, mut buffer) = (pool(), ReceiveBuffer::default());
    let mut write = |offset, len| buffer.write(&mut pool, offset, &vec![7; len]);
    assert_eq!(write(100, 50).range, Some((100, 150)));
    assert_eq!(write(200, 50).range, Some((200, 250)));
    let joined = write(150, 50);
    assert_eq!((joined.range, joined.merged), (Some((100, 250)), 1));
    let filled = write(0, 100);
    assert_eq!(
        (filled.advanced, filled.range, filled.merged),
        (250, None, 1)
    );
}

#[test]
fn rfc2883_4_the_first_duplicate() {
    let (mut pool, mut buffer) = (pool(), ReceiveBuffer::default());
    let mut write = |offset, len| buffer.write(&mut pool, offset, &vec![7; len]);
    write(100, 50);
    assert_eq!(write(100, 50).duplicate, Some((100, 150)));
    assert_eq!(write(120, 60).duplicate, Some((120, 150)));
    let around = write(50, 200);
    assert_eq!(
        (around.duplicate, around.range),
        (Some((100, 180)), Some((50, 250)))
    );
    assert_eq!(write(0, 10).duplicate, None);
}

#[test]
fn a_hole_after_each_byte_costs_a_bounded_table() {
    let (mut pool, mut buffer) = (pool(), ReceiveBuffer::default());
    let refused: u32 = (0..10_000)
        .map(|i| buffer.write(&mut pool, 1 + 2 * i, &[1]).refused)
        .sum();
    assert_eq!(refused as usize, 10_000 - MAX_RANGES);
    assert_eq!(buffer.ranges().count(), MAX_RANGES);
    // A segment that joins ranges makes no new one.
    assert_eq!(buffer.write(&mut pool, 2, &[1]).refused, 0);
    assert_eq!(
        buffer.write(&mut pool, 0, &vec![1; 30_000]).advanced,
        30_000
    );
}

#[test]
fn an_empty_pool_stores_a_part() {
    let mut pool = Pool::new(2 * CHUNK_BYTES as u64);
    let mut buffer = ReceiveBuffer::default();
    let written = buffer.write(&mut pool, 0, &bytes(0, 10_000));
    assert_eq!(
        (written.stored, written.advanced, written.refused),
        (8_192, 8_192, 1_808)
    );
    let beyond = buffer.write(&mut pool, 10, &[1, 2, 3]);
    assert_eq!((beyond.stored, beyond.refused), (0, 3));
    assert!(!buffer.has_out_of_order());
    let mut into = vec![0; 9_000];
    assert_eq!(buffer.read(&mut pool, &mut into), 8_192);
    assert_eq!(into[..8_192], bytes(0, 8_192));
    assert_eq!(buffer.write(&mut pool, 10, &[1, 2, 3]).stored, 3);
}

#[test]
fn an_empty_buffer_has_no_memory() {
    let (mut pool, mut buffer) = (pool(), ReceiveBuffer::default());
    buffer.write(&mut pool, 0, &bytes(0, 1 << 20));
    buffer.write(&mut pool, 1 << 20, &[1]);
    buffer.prune(&mut pool);
    assert_eq!(buffer.discard(&mut pool, usize::MAX), 1 << 20);
    assert_eq!(pool.used_bytes(), 0);
    assert_eq!(buffer.chunks.capacity(), 0);
}
