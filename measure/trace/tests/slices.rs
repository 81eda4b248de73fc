//! Sliced packets: exact for any, short for what resembles another, found in files however they ended.
mod sample;

use hopscope_event::slice::{SliceBytes, SliceRecord, Sliced};
use hopscope_trace::format::{BATCH_PACKET_BYTES_MAX, BATCH_SLICES_MAX, ChunkHeader};
use hopscope_trace::{TraceReader, TraceWriter, fuzz_reader, slices};
use proptest::prelude::*;
use sample::{SLICES_BATCH, assert_sliced, meta, sliced_file, sliced_packets, summary};

fn encoded(rows: &[Sliced]) -> Vec<u8> {
    let mut out = Vec::new();
    slices::encode(rows, &mut out);
    out
}

fn chunk(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::of(u32::from_le_bytes(*kind), payload);
    [&header.to_bytes(), payload].concat()
}

fn all(reader: &TraceReader) -> Vec<Sliced> {
    reader.slices().flat_map(Result::unwrap).collect()
}

#[test]
fn everything_comes_back() {
    let rows = sliced_packets();
    let reader = TraceReader::from_bytes(sliced_file(&rows).bytes).unwrap();
    assert_sliced(&reader, &rows);
}

/// Every byte of the model is part of the format: what version 1.3 wrote must decode for ever.
#[test]
fn the_encoding_of_version_1_3_stays() {
    let bytes = encoded(&sliced_packets());
    assert_eq!(
        (bytes.len(), crc32fast::hash(&bytes)),
        (1_326, 1_838_854_525)
    );
}

#[test]
fn a_packet_like_another_takes_a_quarter() {
    let rows: Vec<_> = sliced_packets().into_iter().map(|row| row.record).collect();
    let rows: Vec<_> = (1..2_000u64)
        .map(|id| {
            let mut record = rows[(id % 2) as usize];
            record.id = id;
            record.t0_ns += id * 30_011;
            for (at, word) in record.stamps.iter_mut().enumerate() {
                if word.is_taken() && at > 0 {
                    word.0 += id * 7 % 400;
                }
            }
            Sliced {
                record,
                bytes: None,
            }
        })
        .collect();
    let bytes = encoded(&rows);
    assert!(
        bytes.len() < 96 * rows.len(),
        "{}",
        bytes.len() / rows.len()
    );
    assert_eq!(slices::decode(&bytes, rows.len()), Some(rows));
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_chunks() {
    let rows = sliced_packets();
    let file = sliced_file(&rows);
    for len in file.ends[0] - 100..file.bytes.len() {
        let reader = TraceReader::from_bytes(file.bytes[..len].to_vec()).unwrap();
        let batches = file.ends.iter().filter(|end| **end <= len).count();
        let whole = (batches * SLICES_BATCH).min(rows.len());
        assert_eq!(all(&reader), rows[..whole], "{len}");
        assert!(reader.tables().summary.is_none());
    }
}

#[test]
fn a_flipped_bit_costs_one_batch_and_is_noticed() {
    let rows = sliced_packets();
    let file = sliced_file(&rows);
    for bit in 8 * file.ends[0]..8 * file.ends[1] {
        let mut bytes = file.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let reader = TraceReader::from_bytes(bytes).unwrap();
        assert!(reader.tables().damage.is_some(), "bit {bit}");
        let left = [&rows[..SLICES_BATCH], &rows[2 * SLICES_BATCH..]].concat();
        assert_eq!(all(&reader), left, "bit {bit}");
    }
}

#[test]
fn long_batches_are_split_by_rows_and_by_bytes() {
    let row = |id, len| Sliced {
        record: SliceRecord {
            id,
            ..sliced_packets()[0].record
        },
        bytes: Some(SliceBytes {
            original_len: 9_000,
            link_len: 14,
            bytes: vec![7; len],
        }),
    };
    let mut rows: Vec<_> = (0..BATCH_SLICES_MAX as u64 + 3)
        .map(|id| row(id, 4))
        .collect();
    rows.extend((0..3).map(|id| row(id, BATCH_PACKET_BYTES_MAX - 1)));
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.slices(&rows).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    let heads: Vec<_> = reader.slice_heads().map(|h| h.rows).collect();
    assert_eq!(heads, [BATCH_SLICES_MAX as u32, 3, 1, 1, 1]);
    assert_eq!(all(&reader), rows);
}

#[test]
fn another_number_of_rows_is_refused() {
    let rows = sliced_packets();
    let bytes = encoded(&rows);
    for count in [0, rows.len() - 1, rows.len() + 1, usize::MAX] {
        assert_eq!(slices::decode(&bytes, count), None);
    }
    for len in 0..bytes.len() {
        assert_eq!(slices::decode(&bytes[..len], rows.len()), None);
    }
}

#[test]
fn unknown_control_bits_are_refused() {
    for control in [4, 0x40, 0x7f] {
        assert_eq!(
            slices::decode(&[&[control][..], &[0; 12]].concat(), 1),
            None
        );
    }
    assert!(slices::decode(&[0; 13], 1).is_some());
}

fn any_packet() -> impl Strategy<Value = Sliced> {
    let bytes = (
        any::<(u32, u16)>(),
        proptest::collection::vec(any::<u8>(), 0..90),
    )
        .prop_map(|((original_len, link_len), bytes)| SliceBytes {
            original_len,
            link_len,
            bytes,
        });
    let record = proptest::collection::vec(any::<u8>(), SliceRecord::BYTES);
    (record, proptest::option::of(bytes)).prop_map(|(record, bytes)| Sliced {
        record: SliceRecord::from_bytes(record.as_slice().first_chunk().expect("as long")),
        bytes,
    })
}

proptest! {
    #[test]
    fn any_packets_round_trip(rows in proptest::collection::vec(any_packet(), 0..20)) {
        prop_assert_eq!(slices::decode(&encoded(&rows), rows.len()), Some(rows));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        count in 0usize..40,
    ) {
        if let Some(rows) = slices::decode(&bytes, count) {
            prop_assert_eq!(rows.len(), count);
        }
    }

    /// The checksum keeps random bytes from the decoder; here they get there.
    #[test]
    fn any_payload_is_survived(
        kind in proptest::sample::select(vec![*b"slic", *b"slrc", *b"slsu"]),
        payload in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut whole = sliced_file(&sliced_packets()).bytes;
        whole.extend(chunk(&kind, &payload));
        fuzz_reader(&whole);
    }

    #[test]
    fn any_damage_is_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        at in any::<proptest::sample::Index>(),
    ) {
        let mut whole = sliced_file(&sliced_packets()).bytes;
        let at = at.index(whole.len());
        let end = (at + bytes.len()).min(whole.len());
        whole.splice(at..end, bytes.iter().copied());
        fuzz_reader(&whole);
    }
}
