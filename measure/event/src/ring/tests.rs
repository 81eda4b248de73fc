use super::*;
use crate::layout::pool_bytes;
use crate::record::{FunctionId, RecordKind, lap_mark};

const LOG2: u32 = 4;
const CURSOR: usize = (RING_HEADER_AT + offset_of!(RingHeader, cursor)) / 8;

fn memory(contexts: usize) -> Vec<AtomicU64> {
    (0..pool_bytes(contexts, LOG2) / 8)
        .map(|_| AtomicU64::new(0))
        .collect()
}

/// The id with a zero behind it, the TSC, the stack.
const STORES: usize = 3;

/// Does what a probe does, in its order.
struct Producer<'a>(Ring<'a>);

impl Producer<'_> {
    fn reserve(&self) -> u64 {
        self.0.words[CURSOR].fetch_add(STRIDE as u64, Ordering::AcqRel) / STRIDE as u64
    }

    fn store(&self, index: u64, tsc: u64) {
        self.begin(index, tsc, STORES);
    }

    /// No more than the first of its stores.
    fn begin(&self, index: u64, tsc: u64, stores: usize) {
        let at = RING_HEADER_BYTES / 8 + (index as usize % (1 << LOG2)) * 2;
        let r = Record::new(
            tsc,
            FunctionId(index as u32 & 0xff),
            RecordKind::Entry,
            0x7fff_0008,
        );
        let stack = r.stack.wrapping_add(lap_mark(index >> LOG2));
        let all: [(usize, u64); STORES] = [
            (at + 1, r.id_kind as u64),
            (at, tsc),
            (at + 1, r.id_kind as u64 | (stack as u64) << 32),
        ];
        for (at, word) in &all[..stores] {
            self.0.words[*at].store(*word, Ordering::Release);
        }
    }

    fn write(&self, n: u64) {
        for _ in 0..n {
            let i = self.reserve();
            self.store(i, 1000 + i);
        }
    }
}

fn drain(ring: &Ring, position: &mut Position, visit: Visit) -> (Drained, Vec<u64>) {
    let mut out = Vec::new();
    let d = ring.drain(position, visit, usize::MAX, &mut out);
    assert!(out.iter().all(|r| r.rsp_lo32() == 0x7fff_0008));
    (d, out.iter().map(|r| r.tsc - 1000).collect())
}

#[test]
fn reads_in_order_across_laps() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let (p, mut at) = (Producer(ring), Position::default());
    for lap in 0..40u64 {
        p.write(11);
        let (d, got) = drain(&ring, &mut at, Visit::Live);
        assert_eq!(got, (lap * 11..lap * 11 + 11).collect::<Vec<_>>());
        assert_eq!((d.lost, d.torn, d.pending), (0, 0, 0));
    }
}

#[test]
fn overwritten_records_are_counted_exactly() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let (p, mut at) = (Producer(ring), Position::default());
    p.write(16 * 9 + 3);
    let (d, got) = drain(&ring, &mut at, Visit::Final);
    assert_eq!((d.lost, d.first_index), (16 * 8 + 3, 16 * 8 + 3));
    assert_eq!(got, (16 * 8 + 3..16 * 9 + 3).collect::<Vec<_>>());
}

/// At the oldest slot a producer that goes on would overtake the reader at each visit.
#[test]
fn who_was_overtaken_goes_on_with_a_lead() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let (p, mut at) = (Producer(ring), Position::default());
    p.write(16 * 9 + 3);
    let (d, got) = drain(&ring, &mut at, Visit::Live);
    assert_eq!((d.lost, d.first_index), (16 * 8 + 5, 16 * 8 + 5));
    assert_eq!(got, (16 * 8 + 5..16 * 9 + 3).collect::<Vec<_>>());
}

#[test]
fn a_reserved_slot_is_waited_for_and_torn_only_at_the_end() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let (p, mut at) = (Producer(ring), Position::default());
    p.write(16);
    drain(&ring, &mut at, Visit::Live);
    let outer = p.reserve();
    p.write(2);
    let (d, got) = drain(&ring, &mut at, Visit::Live);
    assert_eq!((got.len(), d.pending), (0, 3));
    let mut later = at;
    let (d, got) = drain(&ring, &mut later, Visit::Final);
    assert_eq!((got, d.torn, d.lost), (alloc::vec![17, 18], 1, 0));
    p.store(outer, 1000 + outer);
    let (d, got) = drain(&ring, &mut at, Visit::Live);
    assert_eq!((got, d.torn), (alloc::vec![16, 17, 18], 0));
}

/// Amid its stores, over memory that is new, that was given back in any lap, or that holds an older lap's record.
#[test]
fn a_slot_stored_in_part_is_torn() {
    for (lap, older, stores) in (0..10u64).flat_map(|lap| {
        let older = (0..4u64).filter(move |older| *older <= lap);
        older.flat_map(move |older| (0..STORES).map(move |stores| (lap, older, stores)))
    }) {
        let words = memory(1);
        let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
        let p = Producer(ring);
        if older > 0 {
            p.store((lap - older) << LOG2, 999);
        }
        ring.words[CURSOR].store((lap << LOG2) * STRIDE as u64, Ordering::Relaxed);
        let mut at = Position { next: lap << LOG2 };
        let torn = p.reserve();
        p.begin(torn, 1000 + torn, stores);
        p.write(1);
        let (d, got) = drain(&ring, &mut at, Visit::Final);
        let whole = (d.torn, d.lost, got);
        let case = (lap, older, stores);
        assert_eq!(whole, (1, 0, alloc::vec![torn + 1]), "{case:?}");
        p.store(torn, 1000 + torn);
        let mut at = Position { next: torn };
        assert_eq!(drain(&ring, &mut at, Visit::Live).1, [torn, torn + 1]);
    }
}

/// A signal handler's probes went once round the ring while a probe was amid its stores.
#[test]
fn who_goes_on_a_lap_later_leaves_no_mixture() {
    for stores in 1..=STORES {
        let words = memory(1);
        let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
        let p = Producer(ring);
        let late = p.reserve();
        p.write(1 << LOG2);
        p.begin(late, 1000 + late, stores);
        let mut at = Position::default();
        let (d, got) = drain(&ring, &mut at, Visit::Final);
        assert_eq!((d.torn, d.lost), (1, 1), "{stores} stores");
        assert_eq!(got, (1..1 << LOG2).collect::<Vec<_>>());
    }
}

#[test]
fn a_slot_left_for_good_does_not_stop_the_reader() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let (p, mut at) = (Producer(ring), Position::default());
    p.reserve();
    p.write(9);
    let (d, got) = drain(&ring, &mut at, Visit::Live);
    assert_eq!((d.torn, got.len()), (1, 9));
}

#[test]
fn scribbled_counter_is_damage_not_a_crash() {
    let words = memory(1);
    let ring = Pool::new(&words, 1, LOG2).unwrap().ring(0).unwrap();
    let mut at = Position { next: 10 };
    assert!(
        ring.drain(&mut at, Visit::Live, 100, &mut Vec::new())
            .damaged
    );
    ring.words[CURSOR].store(u64::MAX, Ordering::Relaxed);
    let d = ring.drain(&mut at, Visit::Final, 100, &mut Vec::new());
    assert!(d.damaged && (d.lost, d.torn, at.next) == (0, 0, 10));
}

#[test]
fn free_queue_is_first_in_first_out() {
    let words = memory(3);
    let pool = Pool::new(&words, 3, LOG2).unwrap();
    for c in [2, 0, 1] {
        pool.offer(c);
    }
    assert_eq!(
        [pool.free_entry(0), pool.free_entry(1), pool.free_entry(2)],
        [2, 0, 1]
    );
    let tail = &pool.words[offset_of!(PoolHeader, free_tail) / 8];
    tail.store(u64::MAX, Ordering::Relaxed);
    pool.offer(1);
    assert_eq!(pool.offered(), 0);
}
