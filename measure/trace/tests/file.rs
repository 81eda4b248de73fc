//! What a reader gets back, from whole and from broken files.
mod sample;

use hopscope_event::{FunctionId, Record, RecordKind, Summary, ThreadIx};
use hopscope_trace::format::{
    BATCH_RECORDS_MAX, CHUNK_HEADER_BYTES, ChunkHeader, FILE_HEADER_BYTES,
};
use hopscope_trace::{RecordBatch, TraceError, TraceReader, TraceWriter, fuzz_reader};
use proptest::prelude::*;
use sample::{BATCH, File, assert_whole, file, meta, records, summary};

fn all(reader: &TraceReader) -> Vec<Record> {
    reader.batches().flat_map(|b| b.unwrap().records).collect()
}

fn chunk(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::of(u32::from_le_bytes(*kind), payload);
    [&header.to_bytes(), payload].concat()
}

#[test]
fn everything_comes_back() {
    let records = records();
    let reader = TraceReader::from_bytes(file(&records).bytes).unwrap();
    assert_whole(&reader, &records);
}

#[test]
fn an_empty_recording_is_one() {
    let File { bytes, .. } = file(&[]);
    assert_whole(&TraceReader::from_bytes(bytes).unwrap(), &[]);
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_chunks() {
    let records = records();
    let File { bytes, ends } = file(&records);
    for len in 0..bytes.len() {
        match TraceReader::from_bytes(bytes[..len].to_vec()) {
            Ok(reader) => {
                let batches = ends.iter().filter(|end| **end <= len).count();
                assert_eq!(all(&reader), records[..batches * BATCH]);
                let t = reader.tables();
                assert!(t.summary.is_none());
                // Cut between two chunks nothing is damaged, elsewhere what was lost adds up.
                if let Some(damage) = &t.damage {
                    assert_eq!(damage.at + damage.bytes_lost, len as u64);
                }
                assert_eq!(
                    t.damage.is_none(),
                    ends.contains(&len) || is_boundary(&bytes, len)
                );
            }
            Err(TraceError::NotATrace) => assert!(len < FILE_HEADER_BYTES),
            Err(TraceError::NoMeta(_)) => assert!(len < 1000),
            Err(e) => panic!("{len}: {e}"),
        }
    }
}

/// Whether a chunk ends at `len`, by adding up lengths alone.
fn is_boundary(bytes: &[u8], len: usize) -> bool {
    let mut at = FILE_HEADER_BYTES;
    while at < len {
        let field = bytes[at + 4..at + 8].try_into().unwrap();
        at += CHUNK_HEADER_BYTES + u32::from_le_bytes(field) as usize;
    }
    at == len
}

#[test]
fn a_flipped_bit_is_noticed_and_costs_one_chunk() {
    let records = records();
    let File { bytes, .. } = file(&records);
    let parts: Vec<_> = records.chunks(BATCH).collect();
    for bit in 8 * FILE_HEADER_BYTES..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let reader = match TraceReader::from_bytes(bytes) {
            Err(TraceError::NoMeta(why)) => {
                assert!(why.contains("chunk"), "{why}");
                continue;
            }
            reader => reader.unwrap(),
        };
        let damage = reader.tables().damage.as_ref().expect("noticed");
        let at_the_end = damage.bytes_lost > 0;
        assert_eq!(damage.chunks_skipped, u64::from(!at_the_end), "bit {bit}");
        let got: Vec<_> = reader.batches().map(|b| b.unwrap().records).collect();
        assert!(got.len() + 1 >= parts.len(), "bit {bit}");
        assert!(got.iter().all(|batch| parts.contains(&batch.as_slice())));
        if got.len() < parts.len() || at_the_end {
            continue;
        }
        let t = reader.tables();
        let tables = [
            t.processes.len(),
            t.threads.len(),
            t.modules.len(),
            t.functions.len() / 4,
            t.refusals.len(),
            t.clocks.len(),
            usize::from(t.summary.is_some()),
        ];
        assert_eq!(tables.iter().sum::<usize>(), 6, "bit {bit}: {tables:?}");
    }
}

#[test]
fn any_bit_of_the_file_header_is_survived() {
    let File { bytes, .. } = file(&records());
    for bit in 0..8 * FILE_HEADER_BYTES {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = TraceReader::from_bytes(bytes);
        match bit / 8 {
            10 | 11 => assert_whole(&read.unwrap(), &records()),
            8 | 9 => assert!(matches!(read, Err(TraceError::Version { .. }))),
            _ => assert!(matches!(read, Err(TraceError::NotATrace))),
        }
    }
}

#[test]
fn a_hole_of_zeros_in_the_middle_costs_what_it_covers() {
    let records = records();
    let File { mut bytes, ends } = file(&records);
    bytes[ends[0] + 3..ends[2] - 3].fill(0);
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(
        all(&reader),
        [&records[..BATCH], &records[3 * BATCH..]].concat()
    );
    let damage = reader.tables().damage.clone().expect("noticed");
    assert_eq!((damage.at, damage.chunks_skipped), (ends[0] as u64, 1));
    assert_eq!(reader.tables().summary, Some(summary()));
}

/// Looking for the next header reads the file in windows of 1 MiB.
#[test]
fn the_next_header_is_found_wherever_a_window_ends() {
    let File { bytes, ends } = file(&records());
    let damaged = ends[0];
    for before in 0..2 * CHUNK_HEADER_BYTES {
        let after_the_damage = (1 << 20) + CHUNK_HEADER_BYTES - before;
        let hole = vec![0xff; after_the_damage];
        let bytes = [&bytes[..damaged], &hole, &bytes[damaged..]].concat();
        let reader = TraceReader::from_bytes(bytes).unwrap();
        assert_eq!(all(&reader), records(), "{before}");
        let damage = reader.tables().damage.clone().expect("noticed");
        assert_eq!((damage.at, damage.chunks_skipped), (damaged as u64, 1));
    }
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_read_is_an_error() {
    let bytes = file(&records()).bytes;
    let path = std::env::temp_dir().join(format!("hopscope-shorter-{}.hop", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let reader = TraceReader::open(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(FILE_HEADER_BYTES as u64).unwrap();
    let read = reader.batches().next().expect("a batch");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read, Err(TraceError::Read { .. })), "{read:?}");
}

#[test]
fn an_unknown_chunk_is_passed_over() {
    let mut bytes = file(&records()).bytes;
    bytes.extend(chunk(b"zzzz", b"new"));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let t = reader.tables();
    assert_eq!((t.unknown_chunks, &t.damage), (1, &None));
}

#[test]
fn unknown_fields_of_a_table_are_passed_over() {
    let mut bytes = file(&records()).bytes;
    bytes.extend(chunk(
        b"proc",
        br#"{"ix":1,"pid":9,"comm":"x","command_line":[],"uid":0}"#,
    ));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let t = reader.tables();
    assert_eq!((t.processes.len(), &t.damage), (2, &None));
}

#[test]
fn a_table_that_does_not_parse_is_damage() {
    let mut bytes = file(&records()).bytes;
    let at = bytes.len() as u64;
    bytes.extend(chunk(b"proc", b"{}"));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let damage = reader.tables().damage.clone().expect("noticed");
    assert_eq!(
        (damage.at, damage.chunks_skipped, damage.bytes_lost),
        (at, 1, 0)
    );
}

#[test]
fn a_batch_that_claims_more_than_it_has_is_damage() {
    let mut bytes = file(&records()).bytes;
    let mut payload = vec![0; 32 + 8];
    payload[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend(chunk(b"recs", &payload));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert!(reader.tables().damage.is_some());
    assert_eq!(all(&reader), records());
}

#[test]
fn a_long_batch_is_split_and_its_losses_are_told_once() {
    let calls: Vec<_> = (0..BATCH_RECORDS_MAX as u64 * 2 + 7)
        .map(|n| Record::new(n * 50, FunctionId(1), RecordKind::Entry, n as u32 * 8))
        .collect();
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let batch = RecordBatch {
        thread: ThreadIx(3),
        first_index: 11,
        lost_before: 11,
        torn_before: 1,
        records: &calls,
    };
    writer.records(batch).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    let max = BATCH_RECORDS_MAX as u64;
    let heads: Vec<_> = reader
        .heads()
        .map(|h| {
            (
                h.thread.0,
                h.first_index,
                h.lost_before,
                h.torn_before,
                h.records,
            )
        })
        .collect();
    let full = BATCH_RECORDS_MAX as u32;
    assert_eq!(
        heads,
        [
            (3, 11, 11, 1, full),
            (3, 11 + max, 0, 0, full),
            (3, 11 + 2 * max, 0, 0, 7)
        ]
    );
    assert_eq!(all(&reader), calls);
}

#[test]
fn a_loss_without_records_is_kept() {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let batch = RecordBatch {
        thread: ThreadIx(0),
        first_index: 9,
        lost_before: 9,
        torn_before: 0,
        records: &[],
    };
    writer.records(batch).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    let batch = reader.batches().next().unwrap().unwrap();
    assert_eq!((batch.lost_before, batch.records.len()), (9, 0));
}

#[test]
fn what_cannot_be_opened_is_named() {
    let error = TraceReader::open("/no/such/file.hop").err().unwrap();
    assert!(error.to_string().contains("/no/such/file.hop"), "{error}");
    let error = TraceReader::open("/dev/null").err().unwrap();
    assert!(
        error.to_string().contains("neither a file nor a pipe"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        at in any::<proptest::sample::Index>(),
    ) {
        let mut whole = file(&records()).bytes;
        let at = at.index(whole.len());
        let end = (at + bytes.len()).min(whole.len());
        whole.splice(at..end, bytes.iter().copied());
        fuzz_reader(&whole);
        fuzz_reader(&bytes);
    }

    /// The checksum keeps random bytes from the decoders; here they get there.
    #[test]
    fn any_payload_is_survived(
        kind in proptest::sample::select(vec![*b"recs", *b"func", *b"meta", *b"summ", *b"clck"]),
        payload in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut whole = file(&records()).bytes;
        whole.extend(chunk(&kind, &payload));
        fuzz_reader(&whole);
    }
}

#[test]
fn what_a_part_of_a_recording_does_not_know_stays_unknown() {
    let part = Summary {
        calls_unmeasured: None,
        recorder_cpu_ns: None,
        ..summary()
    };
    let writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&part).unwrap()).unwrap();
    assert_eq!(reader.tables().summary, Some(part));
}
