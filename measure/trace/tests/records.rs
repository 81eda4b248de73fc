//! The encoding of records: exact for any, short for calls.
use hopscope_event::{Content, FunctionId, Record, RecordKind, Value};
use hopscope_trace::codec::{self, WORST};
use proptest::prelude::*;

fn encoded(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    let end = codec::encode(records, &mut out, 0);
    out.truncate(end);
    out
}

/// Calls of one another as in a program: the innermost open one ends, or another begins.
fn calls(choices: &[(u8, u16)]) -> Vec<Record> {
    let (mut tsc, mut open, mut records) = (1 << 40, Vec::new(), Vec::new());
    for (choice, ticks) in choices {
        tsc += u64::from(*ticks);
        let rsp = 0xffff_e000u32.wrapping_sub(48 * open.len() as u32);
        match open.pop() {
            Some((id, rsp)) if choice % 2 == 0 => {
                records.push(Record::new(tsc, FunctionId(id), RecordKind::Exit, rsp));
            }
            parent => {
                open.extend(parent);
                let id = u32::from(choice / 2 % 16) * 1000;
                open.push((id, rsp));
                records.push(Record::new(tsc, FunctionId(id), RecordKind::Entry, rsp));
            }
        }
    }
    records
}

#[test]
fn a_repeated_call_costs_its_time_stamp_only() {
    let choices: Vec<_> = (0..20_000u32)
        .map(|n| (if n % 2 == 0 { 3 } else { 0 }, 150))
        .collect();
    let records = calls(&choices);
    assert_eq!(records.len(), 20_000);
    // A control byte and one of time for each record: what was seen before costs no more.
    assert!(encoded(&records).len() < 2 * records.len() + 32);
}

/// Every byte of the model is part of the format: what version 1 wrote must decode for ever. Enough
/// different calls that the slots of the followers collide.
#[test]
fn the_encoding_of_version_1_stays() {
    let mut random = 88172645463325252u64;
    let choices: Vec<_> = (0..20_000)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random as u8, (random >> 40) as u16 >> (random >> 60))
        })
        .collect();
    let bytes = encoded(&calls(&choices));
    assert_eq!(
        (bytes.len(), crc32fast::hash(&bytes)),
        (81_816, 0x6d78_4f79)
    );
}

#[test]
fn the_least_favourable_records_stay_within_the_worst_case() {
    let far = |n: u64| Record {
        tsc: n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        id_kind: (n as u32).wrapping_mul(0x9e37_79b1) | 0x8000_0000,
        stack: (n as u32).wrapping_mul(0x85eb_ca6b),
    };
    let records: Vec<_> = (1..1000).map(far).collect();
    let bytes = encoded(&records);
    assert!(bytes.len() <= records.len() * WORST);
    assert_eq!(codec::decode(&bytes, records.len()), Some(records));
}

/// Batches of `n` packets: the entry says how many, and the numbers of all of them.
fn batches(sizes: &[u8]) -> Vec<Record> {
    let (mut records, mut tsc, mut seq) = (Vec::new(), 1 << 40, 7_000_000);
    for n in sizes {
        let (root, inner) = (FunctionId(3), FunctionId(900));
        let mut value = |capture, element, value| {
            let content = Content::Value(value);
            records.push(
                Value {
                    capture,
                    element,
                    content,
                }
                .record(root),
            );
        };
        value(0, 0, u64::from(*n));
        for element in 0..u16::from(*n) {
            value(1, element, seq);
            seq += 1;
        }
        let values = records.len() - usize::from(*n) - 1;
        records.insert(
            values,
            Record::new(tsc, root, RecordKind::Entry, 0x7ffe_1000),
        );
        records.push(Record::new(tsc + 90, inner, RecordKind::Entry, 0x7ffe_0f00));
        records.push(Record::new(tsc + 180, inner, RecordKind::Exit, 0x7ffe_0f00));
        let content = Content::Value((-1i64) as u64);
        let returned = Value {
            capture: 2,
            element: 0,
            content,
        };
        records.push(returned.record(root));
        records.push(Record::new(tsc + 240, root, RecordKind::Exit, 0x7ffe_1000));
        tsc += 400;
    }
    records
}

#[test]
fn values_cost_little_and_spoil_no_prediction() {
    let sizes: Vec<u8> = (0..4000u32).map(|n| (n * n % 33) as u8).collect();
    let records = batches(&sizes);
    let bytes = encoded(&records);
    assert_eq!(codec::decode(&bytes, records.len()), Some(records.clone()));
    // Two bytes a record, the 400 ticks between batches in two, and where an array ends and where
    // the next one goes on: id and place in full.
    let most = 2 * records.len() + 11 * sizes.len() + 64;
    assert!(bytes.len() <= most, "{} > {most}", bytes.len());
}

#[test]
fn deep_recursion_comes_back() {
    let down = (0..3000u32).map(|n| (n, RecordKind::Entry));
    let up = (0..3000u32).rev().map(|n| (n, RecordKind::Exit));
    let record = |(n, kind): (u32, RecordKind)| {
        Record::new(u64::from(n) * 40, FunctionId(5), kind, 0x7fff_0000 - 32 * n)
    };
    let records: Vec<_> = down.chain(up).map(record).collect();
    assert_eq!(
        codec::decode(&encoded(&records), records.len()),
        Some(records)
    );
}

#[test]
fn another_number_of_records_is_refused() {
    let records = calls(&[(3, 9), (0, 9), (3, 9), (0, 9)]);
    let bytes = encoded(&records);
    assert_eq!(codec::decode(&bytes, records.len() - 1), None);
    assert_eq!(codec::decode(&bytes, records.len() + 1), None);
    assert_eq!(codec::decode(&bytes, usize::MAX), None);
    for len in 0..bytes.len() {
        assert_eq!(codec::decode(&bytes[..len], records.len()), None);
    }
}

#[test]
fn bits_without_a_meaning_are_refused() {
    let records = calls(&[(3, 9), (0, 9)]);
    for bit in [6, 7] {
        let mut bytes = encoded(&records);
        bytes[0] |= 1 << bit;
        assert_eq!(codec::decode(&bytes, records.len()), None);
    }
}

#[test]
fn what_lies_before_in_the_buffer_stays() {
    let mut out = vec![7; 3];
    let records = calls(&[(3, 9), (0, 9)]);
    let end = codec::encode(&records, &mut out, 3);
    assert_eq!(out[..3], [7; 3]);
    assert_eq!(codec::decode(&out[3..end], records.len()), Some(records));
}

proptest! {
    #[test]
    fn any_records_round_trip(
        raw in proptest::collection::vec((any::<u64>(), any::<u32>(), any::<u32>()), 0..300),
    ) {
        let record = |(tsc, id_kind, stack)| Record { tsc, id_kind, stack };
        let records: Vec<Record> = raw.into_iter().map(record).collect();
        prop_assert_eq!(codec::decode(&encoded(&records), records.len()), Some(records));
    }

    /// Values near each other, so that every code of every field is met.
    #[test]
    fn near_records_round_trip(
        raw in proptest::collection::vec((-300i64..70_000, 0u32..40, -3i32..40, 0u32..30), 0..400),
    ) {
        let (mut tsc, mut stack) = (0u64, 0u32);
        let record = |(ticks, id_kind, step, rare): (i64, u32, i32, u32)| {
            tsc = tsc.wrapping_add_signed(ticks << (rare / 4));
            stack = stack.wrapping_add_signed(step << rare);
            Record { tsc, id_kind: id_kind << (rare / 2), stack }
        };
        let records: Vec<Record> = raw.into_iter().map(record).collect();
        prop_assert_eq!(codec::decode(&encoded(&records), records.len()), Some(records));
    }

    #[test]
    fn values_round_trip(
        raw in proptest::collection::vec((any::<u64>(), 0u32..65, 0u32..80, any::<u32>(), 0u32..33), 0..300),
    ) {
        let record = |(word, shift, id_kind, stack, low): (u64, u32, u32, u32, u32)| Record {
            tsc: word.checked_shr(shift).unwrap_or(1),
            id_kind: if id_kind % 2 == 0 { id_kind & !7 | 4 } else { id_kind },
            stack: stack.checked_shr(low).unwrap_or(0),
        };
        let records: Vec<Record> = raw.into_iter().map(record).collect();
        prop_assert_eq!(codec::decode(&encoded(&records), records.len()), Some(records));
    }

    #[test]
    fn calls_round_trip(
        choices in proptest::collection::vec((any::<u8>(), any::<u16>()), 0..600),
    ) {
        let records = calls(&choices);
        prop_assert_eq!(codec::decode(&encoded(&records), records.len()), Some(records));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        count in 0usize..500,
    ) {
        if let Some(records) = codec::decode(&bytes, count) {
            prop_assert_eq!(records.len(), count);
        }
    }
}
