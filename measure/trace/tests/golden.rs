//! Files that are read for ever: one of each released format, and broken ones with what is to come
//! of them. `HOPSCOPE_GOLDEN=write cargo test -p hopscope-trace --test golden` makes those that are
//! missing; one that exists is never written again.
mod sample;

use hopscope_trace::format::ChunkHeader;
use hopscope_trace::{TraceError, TraceReader, fuzz_reader};
use sample::{
    BATCH, File, STAMPS_BATCH, assert_captured, assert_counted, assert_sliced_packets,
    assert_stamps, assert_switches, assert_whole, captured_file, captured_records, counted_file,
    counted_records, file, records, sliced_file, sliced_packets, stamped_file, stamped_packets,
    switched_file,
};
use std::fs;
use std::path::{Path, PathBuf};

fn stored(name: &str, make: impl Fn() -> Vec<u8>) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if !path.exists() && std::env::var_os("HOPSCOPE_GOLDEN").is_some_and(|v| v == "write") {
        fs::write(&path, make()).expect("the source tree is writable");
    }
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn version_1_is_read() {
    let bytes = stored("tests/golden/v1.hop", || file(&records()).bytes);
    assert_whole(&TraceReader::from_bytes(bytes).unwrap(), &records());
}

#[test]
fn stamps_of_version_1_1_are_read() {
    let name = "tests/golden/v1.1-stamps.hop";
    let bytes = stored(name, || stamped_file(&stamped_packets()).bytes);
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().format, (1, 1));
    assert_stamps(&reader, &stamped_packets());
}

#[test]
fn values_of_version_1_2_are_read() {
    let name = "tests/golden/v1.2-values.hop";
    let bytes = stored(name, || captured_file(&captured_records()));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().format, (1, 2));
    assert_captured(&reader, &captured_records());
}

#[test]
fn switches_and_choices_of_version_1_2_are_read() {
    let bytes = stored("tests/golden/v1.2-switches.hop", || switched_file().bytes);
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().format, (1, 2));
    assert_switches(&reader);
}

#[test]
fn slices_of_version_1_3_are_read() {
    let name = "tests/golden/v1.3-slices.hop";
    let bytes = stored(name, || sliced_file(&sliced_packets()).bytes);
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().format, (1, 3));
    // Written before what an empty border reads was measured.
    let mut entry = hopscope_event::slice::sample::entry();
    entry.calibration.border_out = None;
    entry.calibration.border_in = None;
    assert_eq!(reader.tables().slice, Some(entry));
    assert_sliced_packets(&reader, &sliced_packets());
}

#[test]
fn counters_of_version_1_5_are_read() {
    let name = "tests/golden/v1.5-counters.hop";
    let bytes = stored(name, || counted_file(&counted_records()));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!(reader.tables().format, (1, 5));
    assert_counted(&reader, &counted_records());
}

fn chunk(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::of(u32::from_le_bytes(*kind), payload);
    [&header.to_bytes(), payload].concat()
}

fn with(name: &str, change: impl Fn(&mut Vec<u8>, &[usize])) -> Result<TraceReader, TraceError> {
    with_file(name, file(&records()), change)
}

fn with_stamps(
    name: &str,
    change: impl Fn(&mut Vec<u8>, &[usize]),
) -> Result<TraceReader, TraceError> {
    with_file(name, stamped_file(&stamped_packets()), change)
}

fn with_file(
    name: &str,
    whole: File,
    change: impl Fn(&mut Vec<u8>, &[usize]),
) -> Result<TraceReader, TraceError> {
    let bytes = stored(&format!("corpus/{name}.hop"), || {
        let mut bytes = whole.bytes.clone();
        change(&mut bytes, &whole.ends);
        bytes
    });
    fuzz_reader(&bytes);
    TraceReader::from_bytes(bytes)
}

/// Records that can be read, and what is said of the damage.
fn left(reader: &TraceReader) -> (usize, String) {
    let records = reader.batches().flatten().map(|b| b.records.len()).sum();
    let damage = reader.tables().damage.as_ref();
    (records, damage.map_or(String::new(), |d| d.what.clone()))
}

#[test]
fn a_torn_last_chunk() {
    let reader = with("torn-last-chunk", |bytes, ends| bytes.truncate(ends[2] - 1)).unwrap();
    assert_eq!(
        left(&reader),
        (2 * BATCH, "the file ends inside a chunk".into())
    );
}

#[test]
fn a_tail_of_zeros() {
    // What some file systems leave after a power cut: the length is there, the bytes are not.
    let reader = with("tail-of-zeros", |bytes, ends| bytes[ends[1]..].fill(0)).unwrap();
    assert_eq!(
        left(&reader),
        (2 * BATCH, "a chunk header is damaged".into())
    );
}

#[test]
fn a_damaged_length() {
    let reader = with("damaged-length", |bytes, ends| bytes[ends[0] + 6] ^= 0x40).unwrap();
    assert_eq!(
        left(&reader),
        (3 * BATCH, "a chunk header is damaged".into())
    );
}

#[test]
fn a_damaged_payload() {
    let reader = with("damaged-payload", |bytes, ends| bytes[ends[0] + 60] ^= 1).unwrap();
    assert_eq!(
        left(&reader),
        (3 * BATCH, "the checksum of a chunk is wrong".into())
    );
}

#[test]
fn a_chunk_of_impossible_length() {
    let reader = with("impossible-length", |bytes, _| {
        let header = ChunkHeader {
            kind: u32::from_le_bytes(*b"recs"),
            len: u32::MAX,
            payload_crc: 0,
        };
        bytes.extend(header.to_bytes());
    });
    let reader = reader.unwrap();
    assert_eq!(
        left(&reader),
        (4 * BATCH, "a chunk header is damaged".into())
    );
}

#[test]
fn a_batch_of_impossible_count() {
    let reader = with("impossible-count", |bytes, _| {
        let mut payload = [0; 200];
        payload[4..8].fill(0xff);
        bytes.extend(chunk(b"recs", &payload));
    });
    let (records, damage) = left(&reader.unwrap());
    assert_eq!(records, 4 * BATCH);
    assert!(
        damage.contains("more records than it has bytes"),
        "{damage}"
    );
}

#[test]
fn records_that_do_not_decode() {
    let reader = with("undecodable-records", |bytes, _| {
        let mut payload = [0xff; 60];
        payload[..32].fill(0);
        payload[4] = 3;
        bytes.extend(chunk(b"recs", &payload));
    });
    let reader = reader.unwrap();
    let last = reader.batches().last().expect("there are batches");
    assert!(matches!(last, Err(TraceError::Chunk { .. })));
    assert_eq!(left(&reader).0, 4 * BATCH);
}

/// Stamps that can be read, and what is said of the damage.
fn stamps_left(reader: &TraceReader) -> (usize, String) {
    let rows = reader.stamps().flatten().map(|b| b.stamps.len()).sum();
    let damage = reader.tables().damage.as_ref();
    (rows, damage.map_or(String::new(), |d| d.what.clone()))
}

#[test]
fn stamps_torn_in_the_last_batch() {
    let reader = with_stamps("stamps-torn", |bytes, ends| bytes.truncate(ends[2] - 1)).unwrap();
    assert_eq!(
        stamps_left(&reader),
        (2 * STAMPS_BATCH, "the file ends inside a chunk".into())
    );
}

#[test]
fn stamps_with_a_damaged_payload() {
    let reader = with_stamps("stamps-damaged", |bytes, ends| bytes[ends[1] - 1] ^= 1).unwrap();
    let (rows, damage) = stamps_left(&reader);
    assert_eq!(rows, stamped_packets().len() - STAMPS_BATCH);
    assert_eq!(damage, "the checksum of a chunk is wrong");
}

#[test]
fn stamps_of_impossible_count() {
    let reader = with_stamps("stamps-impossible-count", |bytes, _| {
        let mut payload = [0; 200];
        payload[4..8].fill(0xff);
        bytes.extend(chunk(b"stmp", &payload));
    });
    let (rows, damage) = stamps_left(&reader.unwrap());
    assert_eq!(rows, stamped_packets().len());
    assert!(damage.contains("more stamps than it has bytes"), "{damage}");
}

#[test]
fn stamps_that_do_not_decode() {
    let reader = with_stamps("stamps-undecodable", |bytes, _| {
        let mut payload = [0xff; 60];
        payload[..24].fill(0);
        payload[4] = 3;
        bytes.extend(chunk(b"stmp", &payload));
    });
    let reader = reader.unwrap();
    assert!(reader.stamps().last().expect("there are batches").is_err());
    assert_eq!(stamps_left(&reader).0, stamped_packets().len());
}

#[test]
fn tables_nested_beyond_reason() {
    let reader = with("deep-nesting", |bytes, _| {
        bytes.extend(chunk(b"func", &[b'['; 3000]))
    });
    let (records, damage) = left(&reader.unwrap());
    assert_eq!(records, 4 * BATCH);
    assert!(damage.contains("does not parse"), "{damage}");
}

#[test]
fn nothing_but_a_file_header() {
    let reader = with("only-a-header", |bytes, _| bytes.truncate(16));
    assert!(matches!(reader, Err(TraceError::NoMeta(_))));
}

#[test]
fn every_stored_file_has_a_test() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    let source = include_str!("golden.rs");
    for file in &files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let named = |with: &str| source.contains(&format!("{with}(\"{name}\""));
        assert!(named("with") || named("with_stamps"), "{name}");
    }
    assert!(!files.is_empty());
}
