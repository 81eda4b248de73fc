//! Both formats give back everything, whatever happened to the file.
use super::{Format, SliceFile};
use crate::error::in_one_line;
use crate::open;
use hopscope_analyze::slice::{RealTime, Slicer};
use hopscope_event::slice::sample::{dropped, entry, frame, over_veth, summary, through_queue};
use hopscope_event::slice::{SliceBytes, Sliced};
use hopscope_event::{ClockSync, RecordingMeta, Summary, Tsc, TscFrequency};
use hopscope_report::slice::SliceSource;
use proptest::prelude::*;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

fn sync(monotonic_ns: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(2 * monotonic_ns),
        monotonic_ns,
        realtime_ns: 1_763_701_929_000_000_000 + monotonic_ns,
        window_ticks: 3,
    }
}

fn meta() -> RecordingMeta {
    RecordingMeta {
        hopscope_version: "0.1.0".into(),
        command_line: vec!["hopscope".into(), "slice".into()],
        host: "host".into(),
        kernel: "Linux 6.18.0".into(),
        cpu: "A CPU".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(2_000_000_000),
        tsc_invariant: true,
        start: sync(1),
        stride: 16,
        ring_records: 0,
        probe_cost: None,
    }
}

fn end() -> Summary {
    Summary::ended(sync(2_000_000_000), "the time given is over")
}

fn packets() -> Vec<Sliced> {
    let row = |id: u64| {
        let record = match id % 3 {
            0 => dropped(id),
            1 => over_veth(id),
            _ => through_queue(id),
        };
        let bytes = match id % 4 {
            0 => None,
            1 => Some(SliceBytes {
                link_len: 0,
                original_len: 104,
                bytes: frame(&record).bytes[14..80].to_vec(),
            }),
            _ => Some(frame(&record)),
        };
        Sliced { record, bytes }
    };
    (1..600).map(row).collect()
}

struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hopscope-slices-{}-{n}", std::process::id());
        Place(std::env::temp_dir().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn written(format: Format, packets: &[Sliced]) -> Vec<u8> {
    let place = Place::new();
    let entry = entry();
    let mut file =
        SliceFile::new(File::create(&place.0).unwrap(), format, &meta(), &entry).unwrap();
    file.clock(sync(900_000_000)).unwrap();
    let time = RealTime::new(sync(1), &[]);
    let source = SliceSource {
        entry: &entry,
        time: &time,
    };
    let mut slicer = Slicer::new(&entry);
    for packet in packets {
        let slices = slicer.slice(&packet.record);
        file.packet(source.sliced(packet, &slices, &slicer))
            .unwrap();
    }
    let count = packets.len() as u64;
    file.finish(Some(&summary(count)), Some(&end())).unwrap();
    std::fs::read(&place.0).unwrap()
}

/// The packets of a file, and what is said of its damage.
fn read(bytes: &[u8]) -> crate::Result<(Vec<Sliced>, Option<String>)> {
    let place = Place::new();
    std::fs::write(&place.0, bytes)?;
    let opened = open(&place.0)?;
    let packets: Result<Vec<_>, _> = opened.reader.slices().collect();
    Ok((packets?.concat(), opened.damage()))
}

#[test]
fn everything_comes_back_from_either_format() {
    let packets = packets();
    for format in [Format::Hop, Format::Pcapng] {
        let place = Place::new();
        std::fs::write(&place.0, written(format, &packets)).unwrap();
        let opened = open(&place.0).unwrap();
        let tables = opened.reader.tables();
        assert_eq!((&tables.meta, &tables.slice), (&meta(), &Some(entry())));
        assert_eq!(tables.clocks, [sync(900_000_000)]);
        let count = packets.len() as u64;
        assert_eq!(tables.slice_summary, Some(summary(count)));
        assert_eq!((&tables.summary, opened.damage()), (&Some(end()), None));
        let read: Vec<_> = opened.reader.slices().flat_map(Result::unwrap).collect();
        assert_eq!(read, packets);
    }
}

#[test]
fn a_capture_that_is_cut_off_gives_what_came_before() {
    let packets = packets();
    let bytes = written(Format::Pcapng, &packets[..4]);
    let mut most = 0;
    for len in 0..bytes.len() {
        let Ok((read, damage)) = read(&bytes[..len]) else {
            assert_eq!(most, 0, "{len}");
            continue;
        };
        assert_eq!(read, packets[..read.len()], "{len}");
        assert!(read.len() >= most);
        most = read.len();
        // Between two blocks only the missing end tells.
        let at_border = damage.is_none();
        assert!(!at_border || len % 4 == 0, "{len}");
    }
    assert_eq!(most, 4);
}

#[test]
fn a_flipped_bit_costs_one_packet_and_is_said() {
    let packets = packets();
    let one = written(Format::Pcapng, &packets[1..2]);
    let two = written(Format::Pcapng, &packets[1..3]);
    let same = one.iter().zip(&two).take_while(|(a, b)| a == b).count();
    // Inside the first frame: everything of it is in both.
    let frame = same - 3_000.min(same / 4)..same;
    let mut hit = 0;
    for bit in 8 * frame.start..8 * frame.end {
        let mut bytes = two.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok((read, damage)) = read(&bytes) else {
            continue;
        };
        for packet in &read {
            let at = packets.iter().position(|p| p.record.id == packet.record.id);
            let expected = &packets[at.expect("an id that was written")];
            assert_eq!(packet.record, expected.record, "bit {bit}");
        }
        assert!(
            read.len() == 2 || damage.is_some(),
            "bit {bit}: {}",
            read.len()
        );
        hit += usize::from(read.len() < 2);
    }
    assert!(hit > 100, "{hit}");
}

/// The link of each interface of a pcapng file (LINKTYPE_), and what the frames of the file take of it.
fn links(file: &[u8]) -> Vec<u16> {
    let mut links = Vec::new();
    let mut rest = file;
    while let Some((head, _)) = rest.split_first_chunk::<10>() {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if word(0) == 1 {
            links.push(u16::from_le_bytes([head[8], head[9]]));
        }
        rest = &rest[word(4) as usize..];
    }
    links
}

/// tcpdump refuses a file with more than one.
#[test]
fn all_frames_have_one_link_where_their_bytes_have() {
    let of = |link_lens: &[u16]| {
        let has = |p: &Sliced| {
            p.bytes
                .as_ref()
                .is_none_or(|b| link_lens.contains(&b.link_len))
        };
        let packets: Vec<_> = packets().into_iter().filter(has).collect();
        let mut links = links(&written(Format::Pcapng, &packets));
        assert!(packets.len() > 100 && !links.is_empty());
        links.dedup();
        links
    };
    assert_eq!(of(&[14]), [1]);
    assert_eq!(of(&[]), [1], "no bytes at all");
    assert_eq!(links(&written(Format::Pcapng, &[])), [1], "no packets");
    // The first packet has no bytes here; nor has a file of both another choice.
    let mut raw = packets();
    raw.retain(|p| p.bytes.as_ref().is_some_and(|b| b.link_len == 0));
    let mut links = links(&written(Format::Pcapng, &raw));
    links.dedup();
    assert_eq!(links, [101]);
}

/// What waits for earlier packets is written when the file ends: `-C` counts it.
#[test]
fn a_file_knows_its_size_before_its_frames_are_written() {
    let (packets, entry, time) = (packets(), entry(), RealTime::new(sync(1), &[]));
    let source = SliceSource {
        entry: &entry,
        time: &time,
    };
    let place = Place::new();
    let mut file = SliceFile::new(
        File::create(&place.0).unwrap(),
        Format::Pcapng,
        &meta(),
        &entry,
    )
    .expect("created");
    let mut slicer = Slicer::new(&entry);
    for packet in &packets {
        let slices = slicer.slice(&packet.record);
        file.packet(source.sliced(packet, &slices, &slicer))
            .expect("taken");
    }
    let told = file.bytes() as f64;
    file.finish(None, None).expect("written");
    let is = std::fs::metadata(&place.0).expect("there").len() as f64;
    assert!((0.8..1.25).contains(&(told / is)), "{told} told of {is}");
}

#[test]
fn captures_of_other_tools_are_refused() {
    let text = |bytes: &[u8]| in_one_line(&read(bytes).unwrap_err());
    let mut foreign = hopscope_netio::capture::PcapngWriter::new(Vec::new()).unwrap();
    let port = foreign.interface("eth0").unwrap();
    foreign.frame(port, 1, b"bytes", 5, None).unwrap();
    let foreign = text(&foreign.finish().unwrap());
    assert!(foreign.ends_with("is a capture of another tool: there are no slices in it"));
    // As tshark writes a file anew: without the blocks that it does not know.
    let whole = written(Format::Pcapng, &packets()[..2]);
    let mut anew = Vec::new();
    let mut rest = &whole[..];
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (block, after) = rest.split_at(word(4) as usize);
        if word(0) != 0x8048_4f50 {
            anew.extend_from_slice(block);
        }
        rest = after;
    }
    let anew = text(&anew);
    assert!(anew.contains("another tool wrote it anew"), "{anew}");
    for other in [&b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00"[..], b"", b"text"] {
        let text = text(other);
        assert!(text.contains("not a hopscope trace"), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A damaged file is refused or gives only packets that were written.
    #[test]
    fn damage_makes_no_packets(
        at in any::<proptest::sample::Index>(),
        damage in proptest::collection::vec(any::<u8>(), 1..40),
        pcapng in any::<bool>(),
    ) {
        let packets = packets()[..20].to_vec();
        let format = if pcapng { Format::Pcapng } else { Format::Hop };
        let mut bytes = written(format, &packets);
        let at = at.index(bytes.len());
        let end = (at + damage.len()).min(bytes.len());
        bytes.splice(at..end, damage);
        if let Ok((read, _)) = read(&bytes) {
            for packet in read {
                prop_assert!(packets.iter().any(|p| p.record == packet.record));
            }
        }
    }
}
