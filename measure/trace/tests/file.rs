//! What a reader gets back, from whole and from broken files.
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::*;
use hopscope_trace::{Batch, TraceError, TraceReader, TraceWriter, codec, fuzz_reader};
use proptest::prelude::*;

fn sync(tsc: u64) -> ClockSync {
    ClockSync { tsc: Tsc(tsc), monotonic_ns: 1, realtime_ns: 2, window_ticks: 3 }
}

fn meta() -> RecordingMeta {
    RecordingMeta {
        hopscope_version: "0.1.0".into(),
        command_line: vec!["hopscope".into(), "record".into()],
        host: "host".into(),
        kernel: "6.1".into(),
        cpu: "cpu".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(2_596_000_000),
        tsc_invariant: true,
        start: sync(100),
        stride: 16,
        ring_records: 4096,
        probe_cost: Some(ProbeCost { bias_ticks: [26, 27, 28], pair_ticks: [45, 46, 50] }),
    }
}

fn summary() -> Summary {
    Summary {
        end: sync(900),
        ended_because: "test".into(),
        recorded: 3,
        lost: 1,
        torn: 0,
        threads_measured: 1,
        calls_unmeasured: 0,
        attach_pause_ns: vec![100_000],
        detach_pause_ns: vec![],
        recorder_cpu_ns: 5,
        notes: vec!["note".into()],
    }
}

fn calls(n: u64) -> Vec<Record> {
    (0..n)
        .flat_map(|i| {
            let f = FunctionId(i as u32 % 40);
            let at = 1_000_000 + i * 300;
            [Record::new(at, f, Kind::Entry, 0x7ffe_0008), Record::new(at + 90, f, Kind::Exit, 0x7ffe_0008)]
        })
        .collect()
}

fn file(records: &[Record]) -> Vec<u8> {
    let mut w = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let process = ProcessEntry { ix: ProcessIx(0), pid: 7, comm: "nf".into(), command_line: vec![] };
    w.process(&process).unwrap();
    w.modules(&[ModuleEntry { ix: ModuleIx(0), path: "/bin/nf".into(), build_id: "ab".into() }]).unwrap();
    let f = |id| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("f{id}"),
        svma: 0x1000 + id as u64,
        size: 9,
        file: None,
        line: None,
    };
    w.functions(&(0..40).map(f).collect::<Vec<_>>()).unwrap();
    w.thread(&ThreadEntry { ix: ThreadIx(0), process: ProcessIx(0), tid: 7, comm: "nf".into() }).unwrap();
    for (n, part) in records.chunks(10).enumerate() {
        let batch = Batch {
            thread: ThreadIx(0),
            first_index: 10 * n as u64 + 5,
            lost_before: if n == 0 { 5 } else { 0 },
            torn_before: 0,
            records: part,
        };
        w.records(batch).unwrap();
    }
    w.finish(&summary()).unwrap()
}

fn all(reader: &TraceReader) -> Vec<Record> {
    reader.batches().flat_map(|b| b.unwrap().records).collect()
}

#[test]
fn everything_comes_back() {
    let records = calls(50);
    let reader = TraceReader::from_bytes(file(&records)).unwrap();
    let t = reader.tables();
    assert_eq!((&t.meta, t.summary.as_ref()), (&meta(), Some(&summary())));
    assert_eq!((t.functions.len(), t.threads.len(), t.modules.len(), t.processes.len()), (40, 1, 1, 1));
    assert_eq!(t.damage, None);
    assert_eq!(all(&reader), records);
    let first = reader.batches().next().unwrap().unwrap();
    assert_eq!((first.first_index, first.lost_before), (5, 5));
}

#[test]
fn calls_take_few_bytes() {
    let mut out = Vec::new();
    let records = calls(10_000);
    codec::encode(&records, &mut out);
    assert!(out.len() < 5 * records.len(), "{} bytes for {}", out.len(), records.len());
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_chunks() {
    let records = calls(20);
    let whole = file(&records);
    let mut seen = 0;
    for len in 0..whole.len() {
        match TraceReader::from_bytes(whole[..len].to_vec()) {
            Ok(reader) => {
                let got = all(&reader);
                assert!(records.starts_with(&got) && got.len() >= seen);
                seen = got.len();
                let t = reader.tables();
                assert!(t.summary.is_none());
                let consumed: u64 = len as u64 - t.damage.as_ref().map_or(0, |d| d.bytes_lost);
                assert!(consumed <= len as u64);
            }
            Err(e) => assert!(matches!(e, TraceError::NotATrace | TraceError::NoMeta(_)), "{len}: {e}"),
        }
    }
    assert_eq!(seen, records.len());
}

#[test]
fn a_flipped_bit_is_noticed_and_costs_one_chunk() {
    let records = calls(20);
    let whole = file(&records);
    for at in 16..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        if let Ok(reader) = TraceReader::from_bytes(bytes) {
            assert!(reader.tables().damage.is_some(), "byte {at}");
        }
    }
}

#[test]
fn another_major_version_is_refused() {
    let mut bytes = file(&[]);
    bytes[8] = 9;
    assert!(matches!(TraceReader::from_bytes(bytes), Err(TraceError::Version { major: 9, .. })));
}

#[test]
fn an_unknown_chunk_is_passed_over() {
    let mut bytes = file(&calls(1));
    let payload = b"new";
    bytes.extend_from_slice(b"zzzz");
    bytes.extend_from_slice(&3u32.to_le_bytes());
    bytes.extend_from_slice(&hopscope_trace::format::checksum(u32::from_le_bytes(*b"zzzz"), payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    let reader = TraceReader::from_bytes(bytes).unwrap();
    assert_eq!((reader.tables().unknown_chunks, reader.tables().damage.clone()), (1, None));
}

proptest! {
    #[test]
    fn any_records_round_trip(raw in proptest::collection::vec((any::<u64>(), any::<u32>(), any::<u32>()), 0..300)) {
        let records: Vec<Record> =
            raw.into_iter().map(|(tsc, id_kind, stack)| Record { tsc, id_kind, stack }).collect();
        let mut out = Vec::new();
        codec::encode(&records, &mut out);
        prop_assert_eq!(codec::decode(&out, records.len()), Some(records));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400), count in 0usize..500) {
        let _ = codec::decode(&bytes, count);
        let mut whole = file(&calls(3));
        whole.extend_from_slice(&bytes);
        fuzz_reader(&whole);
    }
}
