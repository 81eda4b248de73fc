use super::super::{InterfaceCounts, PcapWriter, PcapngWriter};
use super::*;
use proptest::prelude::*;
use std::io::Cursor;

type Owned = (Vec<u8>, usize, Option<u64>);

fn read(bytes: &[u8]) -> Result<(Vec<Owned>, CaptureCounts), CaptureError> {
    let mut reader = CaptureReader::new("memory", Cursor::new(bytes.to_vec()))?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push((frame.bytes.to_vec(), frame.wire_len, frame.time_ns));
    }
    Ok((frames, reader.counts()))
}

fn pcapng(frames: &[Owned]) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let interface = writer.interface("v0").unwrap();
    for (bytes, wire_len, time_ns) in frames {
        let comment = (bytes.len() % 2 == 0).then_some("said of it");
        let time_ns = time_ns.unwrap();
        writer
            .frame(interface, time_ns, bytes, *wire_len, comment)
            .unwrap();
    }
    let counts = InterfaceCounts {
        received: frames.len() as u64,
        dropped: 3,
    };
    writer.statistics(interface, 1, counts).unwrap();
    writer.finish().unwrap()
}

fn classic(frames: &[Owned]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new()).unwrap();
    for (bytes, wire_len, time_ns) in frames {
        writer.frame(time_ns.unwrap(), bytes, *wire_len).unwrap();
    }
    writer.finish().unwrap()
}

/// A classic file by hand: byte order, unit of time, one frame of three bytes.
fn by_hand(big: bool, magic: u32, fraction: u32) -> Vec<u8> {
    let word = |w: u32| {
        if big {
            w.to_be_bytes()
        } else {
            w.to_le_bytes()
        }
    };
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file = word(magic).to_vec();
    file.extend(version);
    for w in [0, 0, 65_535, 1, 7, fraction, 3, 60] {
        file.extend(word(w));
    }
    file.extend([1, 2, 3]);
    file
}

#[test]
fn both_units_and_both_byte_orders() {
    for big in [false, true] {
        for (magic, fraction) in [(0xa1b2_c3d4, 5_000), (0xa1b2_3c4d, 5_000_000)] {
            let (frames, counts) = read(&by_hand(big, magic, fraction)).unwrap();
            assert_eq!(
                frames,
                [(vec![1, 2, 3], 60, Some(7_005_000_000))],
                "{big} {magic:x}"
            );
            assert_eq!((counts.frames, counts.cut), (1, 1));
        }
    }
}

#[test]
fn a_frame_longer_than_the_buffer_is_read() {
    let frames = [(vec![9; 3 * FIRST_BUFFER_LEN], 3 * FIRST_BUFFER_LEN, Some(1))];
    assert_eq!(read(&pcapng(&frames)).unwrap().0, frames);
    assert_eq!(read(&classic(&frames)).unwrap().0, frames);
}

#[test]
fn a_file_that_is_cut_off_says_where_after_all_good_frames() {
    let frames: Vec<Owned> = (0..3).map(|n| (vec![n; 20], 20, Some(0))).collect();
    let file = classic(&frames);
    let mut reader =
        CaptureReader::new("cut", Cursor::new(file[..file.len() - 1].to_vec())).unwrap();
    assert!(reader.next_frame().unwrap().is_some());
    assert!(reader.next_frame().unwrap().is_some());
    let error = reader.next_frame().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cut is cut off in the record at byte 96: the 2 frames before are good"
    );
}

#[test]
fn what_is_no_ethernet_or_no_capture_is_refused() {
    let mut file = by_hand(false, 0xa1b2_c3d4, 0);
    file[20] = 113;
    let error = read(&file).unwrap_err();
    assert!(
        matches!(error, CaptureError::LinkType { link_type: 113, .. }),
        "{error}"
    );
    let error = read(b"#!/bin/sh\n").unwrap_err();
    assert!(matches!(error, CaptureError::NotACapture { .. }), "{error}");
    let error = read(b"").unwrap_err();
    assert!(matches!(error, CaptureError::NotACapture { .. }), "{error}");
}

/// Files that once went wrong, or that a fuzzer liked: each is read to its end or refused.
#[test]
fn the_kept_corpus_is_read_or_refused() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let mut files = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let _ = read(&bytes);
        files += 1;
    }
    assert!(files >= 4, "{files} files in {corpus}");
}

fn frames() -> impl Strategy<Value = Vec<Owned>> {
    let frame = (
        proptest::collection::vec(any::<u8>(), 0..200),
        0usize..2000,
        0..4_000_000_000_000_000_000u64,
    );
    let frame = frame.prop_map(|(bytes, more, time)| {
        let wire_len = bytes.len() + more;
        (bytes, wire_len, Some(time))
    });
    proptest::collection::vec(frame, 0..20)
}

proptest! {
    #[test]
    fn what_is_written_is_read(frames in frames()) {
        let (from_pcapng, counts) = read(&pcapng(&frames)).unwrap();
        prop_assert_eq!(&from_pcapng, &frames);
        let cut = frames.iter().filter(|(bytes, wire_len, _)| bytes.len() < *wire_len).count();
        prop_assert_eq!(counts.cut, cut as u64);
        prop_assert_eq!(read(&classic(&frames)).unwrap().0, frames);
    }

    #[test]
    fn damage_never_panics_or_hangs(
        frames in frames(),
        ng in any::<bool>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        end in any::<proptest::sample::Index>(),
    ) {
        let mut file = if ng { pcapng(&frames) } else { classic(&frames) };
        for (at, value) in damage {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(end.index(file.len()) + 1);
        let _ = read(&file);
    }

    #[test]
    fn noise_after_a_magic_never_panics(
        magic in prop_oneof![Just(0xa1b2_c3d4u32), Just(0xa1b2_3c4d), Just(0x0a0d_0d0a), Just(0xd4c3_b2a1)],
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut file = magic.to_le_bytes().to_vec();
        file.extend(noise);
        let _ = read(&file);
    }
}
