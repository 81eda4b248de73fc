//! Stamps of packets: exact for any, short for steady traffic, found in files however they ended.
mod sample;

use hopscope_event::{Stamp, StampCounts, StampFlags, StreamIx, Tsc};
use hopscope_trace::format::{BATCH_STAMPS_MAX, CHUNK_HEADER_BYTES, ChunkHeader};
use hopscope_trace::{Stamps, TraceReader, TraceWriter, fuzz_reader, stamps};
use proptest::prelude::*;
use sample::{STAMPS_BATCH, assert_stamps, meta, stamped_file, stamped_packets, summary};

fn encoded(rows: &[Stamp]) -> Vec<u8> {
    let mut out = Vec::new();
    stamps::encode(rows, &mut out);
    out
}

fn chunk(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::of(u32::from_le_bytes(*kind), payload);
    [&header.to_bytes(), payload].concat()
}

fn all(reader: &TraceReader) -> Vec<Stamp> {
    reader.stamps().flat_map(|b| b.unwrap().stamps).collect()
}

/// A packet each 2,600 ticks from flows in turn, as a steady load sends them.
fn steady(packets: u64) -> Vec<Stamp> {
    let row = |n: u64| Stamp {
        seq: n,
        flow: (n % 100) as u32,
        len: 64,
        intended: Tsc((1 << 40) + n * 2600),
        sent: Tsc((1 << 40) + n * 2600 + n % 60),
        received: Some(Tsc((1 << 40) + n * 2600 + 8000 + n % 500)),
        flags: StampFlags::NONE,
    };
    (0..packets).map(row).collect()
}

#[test]
fn everything_comes_back() {
    let rows = stamped_packets();
    let reader = TraceReader::from_bytes(stamped_file(&rows).bytes).unwrap();
    assert_stamps(&reader, &rows);
}

#[test]
fn a_steady_packet_takes_six_bytes() {
    let rows = steady(50_000);
    let bytes = encoded(&rows);
    assert!(bytes.len() < 6 * rows.len(), "{}", bytes.len());
    assert_eq!(stamps::decode(&bytes, rows.len()), Some(rows));
}

/// Every byte of the model is part of the format: what version 1.1 wrote must decode for ever.
#[test]
fn the_encoding_of_version_1_1_stays() {
    let bytes = encoded(&stamped_packets());
    assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (181, 0xb7d4_40fb));
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_chunks() {
    let rows = stamped_packets();
    let file = stamped_file(&rows);
    let first = file.ends[0] - 200;
    for len in first..file.bytes.len() {
        let reader = TraceReader::from_bytes(file.bytes[..len].to_vec()).unwrap();
        let batches = file.ends.iter().filter(|end| **end <= len).count();
        let whole = (batches * STAMPS_BATCH).min(rows.len());
        assert_eq!(all(&reader), rows[..whole], "{len}");
        assert!(reader.tables().summary.is_none());
    }
}

#[test]
fn a_flipped_bit_costs_one_batch_and_is_noticed() {
    let rows = stamped_packets();
    let file = stamped_file(&rows);
    for bit in 8 * file.ends[0]..8 * file.ends[1] {
        let mut bytes = file.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let reader = TraceReader::from_bytes(bytes).unwrap();
        assert!(reader.tables().damage.is_some(), "bit {bit}");
        let left = [&rows[..STAMPS_BATCH], &rows[2 * STAMPS_BATCH..]].concat();
        assert_eq!(all(&reader), left, "bit {bit}");
    }
}

#[test]
fn a_long_batch_is_split_and_its_losses_are_told_once() {
    let rows = steady(BATCH_STAMPS_MAX as u64 + 3);
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let batch = Stamps {
        stream: StreamIx(2),
        unwritten_before: 9,
        stamps: &rows,
    };
    writer.stamps(batch).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    let heads: Vec<_> = reader
        .stamp_heads()
        .map(|h| (h.stream.0, h.rows, h.unwritten_before))
        .collect();
    assert_eq!(heads, [(2, BATCH_STAMPS_MAX as u32, 9), (2, 3, 0)]);
    assert_eq!(all(&reader), rows);
}

#[test]
fn a_loss_without_rows_is_kept() {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let batch = Stamps {
        stream: StreamIx(0),
        unwritten_before: 7,
        stamps: &[],
    };
    writer.stamps(batch).unwrap();
    let reader = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
    assert_eq!(reader.stamp_heads().next().unwrap().unwritten_before, 7);
}

#[test]
fn a_head_that_counts_otherwise_than_its_rows_is_refused() {
    let rows = stamped_packets();
    let file = stamped_file(&rows);
    let payload = &file.bytes[file.ends[0] + CHUNK_HEADER_BYTES..file.ends[1]];
    for field in [4, 16, 20] {
        let mut payload = payload.to_vec();
        payload[field] ^= 1;
        let mut bytes = file.bytes.clone();
        bytes.extend(chunk(b"stmp", &payload));
        let reader = TraceReader::from_bytes(bytes).unwrap();
        assert!(reader.stamps().last().unwrap().is_err(), "field at {field}");
    }
}

#[test]
fn a_batch_that_claims_more_than_it_has_is_damage() {
    let mut bytes = stamped_file(&[]).bytes;
    let mut payload = vec![0; 24 + 8];
    payload[4..8].copy_from_slice(&3u32.to_le_bytes());
    bytes.extend(chunk(b"stmp", &payload));
    let reader = TraceReader::from_bytes(bytes).unwrap();
    let damage = reader.tables().damage.clone().expect("noticed");
    assert!(damage.what.contains("more stamps than"), "{}", damage.what);
}

#[test]
fn numbers_of_more_than_64_bits_are_refused() {
    let row = |tail: &[u8]| [&[0b1111_0000u8][..], tail, &[0]].concat();
    let most = [&[0xff; 9][..], &[1]].concat();
    assert!(stamps::decode(&row(&most), 1).is_some());
    let more = [&[0xff; 9][..], &[2]].concat();
    assert_eq!(stamps::decode(&row(&more), 1), None);
    assert_eq!(stamps::decode(&row(&[0xff; 12]), 1), None);
}

#[test]
fn another_number_of_rows_is_refused() {
    let rows = stamped_packets();
    let bytes = encoded(&rows);
    for count in [0, rows.len() - 1, rows.len() + 1, usize::MAX] {
        assert_eq!(stamps::decode(&bytes, count), None);
    }
    for len in 0..bytes.len() {
        assert_eq!(stamps::decode(&bytes[..len], rows.len()), None);
    }
}

/// What the counts of `info` are made of.
#[test]
fn counts_are_of_packets_not_of_rows() {
    let mut counts = StampCounts::default();
    stamped_packets().iter().for_each(|row| counts.add(row));
    let expected = StampCounts {
        sent: 23,
        received: 20,
        lost: 3,
        late: 2,
        duplicate: 2,
        reordered: 1,
        corrupted: 1,
    };
    assert_eq!(counts, expected);
}

fn any_stamp() -> impl Strategy<Value = Stamp> {
    let flags = (0u8..16).prop_map(|bits| StampFlags::from_bits(bits).expect("known bits"));
    let received = proptest::option::of(any::<u64>().prop_map(Tsc));
    (any::<(u64, u32, u32, u64, u64)>(), received, flags).prop_map(
        |((seq, flow, len, intended, sent), received, flags)| Stamp {
            seq,
            flow,
            len,
            intended: Tsc(intended),
            sent: Tsc(sent),
            received,
            flags,
        },
    )
}

/// Values near each other, so that every bit of the control byte is met in both states.
fn near_stamps() -> impl Strategy<Value = Vec<Stamp>> {
    let row = (0u64..4, 0u32..3, 0u32..2, 0u64..5000, 0u64..40, 0u8..20);
    proptest::collection::vec(row, 0..200).prop_map(|rows| {
        let mut last = Stamp::default();
        let mut next = |(seq, flow, len, gap, late, what): (u64, u32, u32, u64, u64, u8)| {
            let intended = last.intended + gap;
            let sent = intended + late * late;
            last = Stamp {
                seq: last.seq.wrapping_add(seq).wrapping_sub(1),
                flow: last.flow.wrapping_add(flow).wrapping_sub(1),
                len: last.len ^ (len * 0x5dc),
                intended,
                sent,
                received: (what < 16).then(|| sent + gap * 3),
                flags: StampFlags::from_bits(what & 15).expect("known bits"),
            };
            last
        };
        rows.into_iter().map(&mut next).collect()
    })
}

proptest! {
    #[test]
    fn any_stamps_round_trip(rows in proptest::collection::vec(any_stamp(), 0..200)) {
        prop_assert_eq!(stamps::decode(&encoded(&rows), rows.len()), Some(rows));
    }

    #[test]
    fn near_stamps_round_trip(rows in near_stamps()) {
        prop_assert_eq!(stamps::decode(&encoded(&rows), rows.len()), Some(rows));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        count in 0usize..150,
    ) {
        if let Some(rows) = stamps::decode(&bytes, count) {
            prop_assert_eq!(rows.len(), count);
        }
    }

    /// The checksum keeps random bytes from the decoder; here they get there.
    #[test]
    fn any_payload_is_survived(
        kind in proptest::sample::select(vec![*b"stmp", *b"strm"]),
        payload in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut whole = stamped_file(&stamped_packets()).bytes;
        whole.extend(chunk(&kind, &payload));
        fuzz_reader(&whole);
    }

    #[test]
    fn any_damage_is_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        at in any::<proptest::sample::Index>(),
    ) {
        let mut whole = stamped_file(&stamped_packets()).bytes;
        let at = at.index(whole.len());
        let end = (at + bytes.len()).min(whole.len());
        whole.splice(at..end, bytes.iter().copied());
        fuzz_reader(&whole);
    }
}
