//! When threads did not run: exact for any order, short for usual ones, found however a file ended.
mod sample;

use hopscope_event::{
    BeginsLate, BudgetEntry, EndsEarly, FlightEntry, FunctionId, LeftOutEntry, Ns, OffCpu,
    ProcessIx, ThreadIx, Tsc,
};
use hopscope_trace::format::{BATCH_SWITCHES_MAX, CHUNK_HEADER_BYTES, ChunkHeader};
use hopscope_trace::{Switches, TraceReader, TraceWriter, fuzz_reader, switches};
use proptest::prelude::*;
use sample::{assert_switches, meta, summary, switched_file};

fn encoded(rows: &[OffCpu]) -> Vec<u8> {
    let mut out = Vec::new();
    switches::encode(rows, &mut out);
    out
}

fn chunk(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::of(u32::from_le_bytes(*kind), payload);
    [&header.to_bytes(), payload].concat()
}

fn row(out: u64, back: u64, preempted: bool) -> OffCpu {
    OffCpu {
        out: Tsc(out),
        back: Tsc(back),
        preempted,
    }
}

#[test]
fn everything_comes_back() {
    assert_switches(&TraceReader::from_bytes(switched_file().bytes).unwrap());
}

/// The last word of a flight recorder's file is the one that counts.
#[test]
fn the_window_of_a_flight_recorder() {
    let begin = FlightEntry {
        before_ns: Ns(5_000_000_000),
        after_ns: Ns(1_000_000_000),
        bytes_max: 1 << 28,
        recording: meta().start,
        from: Tsc(1_000),
        until: Tsc(7_000),
        begins_late: Some(BeginsLate::MemoryFull),
        ends_early: None,
        fired: 0,
        fired_in_cool_down: 0,
        records_left_out: 70,
        records_left_out_for_room: 50,
    };
    let end = FlightEntry {
        until: Tsc(6_000),
        ends_early: Some(EndsEarly::RecordingEnded),
        fired: 2,
        records_left_out: 90,
        ..begin.clone()
    };
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.flight(&begin).unwrap();
    writer.flight(&end).unwrap();
    let bytes = writer.finish(&summary()).unwrap();
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().flight, Some(end));
    assert_eq!(reader.tables().unknown_chunks, 0);
}

/// Of one within a budget all words count.
#[test]
fn what_a_budget_left_out() {
    let left_out = |function, at| LeftOutEntry {
        function: FunctionId(function),
        process: ProcessIx(0),
        at,
        calls_per_s: 1_200_000,
        percent: 61.25,
        own_ticks: at.map(|_| 40),
    };
    let begin = BudgetEntry {
        percent: 5.0,
        first_pass_ns: Ns(760_000_000),
        first_pass_percent: None,
        measured: 3,
        left_out: vec![left_out(3, None)],
    };
    let later = BudgetEntry {
        left_out: vec![left_out(2, Some(Tsc(30_000)))],
        ..BudgetEntry::default()
    };
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.budget(&begin).unwrap();
    writer.budget(&later).unwrap();
    let bytes = writer.finish(&summary()).unwrap();
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let mut both = begin.clone();
    both.left_out.extend(later.left_out);
    assert_eq!(reader.tables().budget, Some(both));
    assert_eq!(reader.tables().unknown_chunks, 0);
}

/// Every byte of the model is part of the format: what version 1.2 wrote must decode for ever.
#[test]
fn the_bytes_of_a_row() {
    let rows = [row(1_000, 1_300, true), row(1_250, 1_314, false)];
    let expected = [0xd0, 0x0f, 0xd9, 0x04, 0x63, 0x80, 0x01];
    assert_eq!(encoded(&rows), expected);
    assert_eq!(switches::decode(&expected, 2), Some(rows.to_vec()));
}

#[test]
fn a_row_that_ends_before_it_begins_has_no_length() {
    let bytes = encoded(&[row(500, 400, true), row(600, 700, false)]);
    let expected = vec![row(500, 500, true), row(600, 700, false)];
    assert_eq!(switches::decode(&bytes, 2), Some(expected));
}

#[test]
fn long_batches_are_split_and_say_once_what_was_lost() {
    let rows: Vec<_> = (0..BATCH_SWITCHES_MAX as u64 + 5)
        .map(|n| row(1_000 * n, 1_000 * n + 300, n % 3 == 0))
        .collect();
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let batch = Switches {
        thread: ThreadIx(3),
        lost_before: 7,
        rows: &rows,
    };
    writer.switches(batch).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    let batches: Vec<_> = reader.off_cpu().map(Result::unwrap).collect();
    let lost: Vec<_> = batches.iter().map(|b| b.lost_before).collect();
    assert_eq!(lost, [7, 0]);
    let all: Vec<_> = batches.into_iter().flat_map(|b| b.rows).collect();
    assert_eq!(all, rows);
}

#[test]
fn a_batch_that_claims_more_than_it_has_is_damage() {
    let mut bytes = switched_file().bytes;
    let mut payload = vec![0; 16 + 5];
    payload[4..8].copy_from_slice(&3u32.to_le_bytes());
    bytes.extend(chunk(b"swit", &payload));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let damage = reader.tables().damage.clone().expect("noticed");
    assert!(
        damage.what.contains("more switches than"),
        "{}",
        damage.what
    );
}

#[test]
fn a_damaged_batch_costs_itself() {
    let file = switched_file();
    let mut bytes = file.bytes;
    bytes[file.ends[0] + CHUNK_HEADER_BYTES + 20] ^= 1;
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.off_cpu().count(), file.ends.len() - 1);
    assert!(reader.tables().damage.is_some());
}

proptest! {
    #[test]
    fn any_rows_round_trip(rows in proptest::collection::vec(any::<(u64, u64, bool)>(), 0..200)) {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(out, ticks, preempted)| {
                let ticks = (ticks >> 1).min(u64::MAX - out);
                row(out, out + ticks, preempted)
            })
            .collect();
        prop_assert_eq!(switches::decode(&encoded(&rows), rows.len()), Some(rows));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        count in 0usize..200,
    ) {
        if let Some(rows) = switches::decode(&bytes, count) {
            prop_assert_eq!(rows.len(), count);
            prop_assert!(rows.iter().all(|r| r.back >= r.out));
        }
    }

    /// The checksum keeps random bytes from the decoder; here they get there.
    #[test]
    fn any_payload_is_survived(
        kind in proptest::sample::select(vec![*b"swit", *b"offc", *b"thin", *b"trig", *b"flig"]),
        payload in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut whole = switched_file().bytes;
        whole.extend(chunk(&kind, &payload));
        fuzz_reader(&whole);
    }
}
