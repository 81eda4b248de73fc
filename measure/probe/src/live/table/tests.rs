use super::*;
use crate::live::fused::FusedCall;
use hopscope_event::layout::pool_bytes;
use hopscope_event::{ClockSync, ProcessIx, Tsc, TscFrequency};
use proptest::prelude::*;

const CODE: u64 = 0x10_0000;
const COPIES: u64 = 0x40_0000;
const GOT: u64 = 0x20_0000;

fn jump(at: u64, to: u64) -> [u8; 5] {
    let d = ((to - at - 5) as i32).to_le_bytes();
    [0xe9, d[0], d[1], d[2], d[3]]
}

fn patch(at: u64) -> Patch {
    Patch {
        at,
        original: [0x90; 5],
        replaced: jump(at, COPIES + 16),
    }
}

fn slot(at: u64) -> GotPatch {
    GotPatch {
        at,
        function: CODE + 0x5000,
        found: CODE + 0x5000,
        replaced: COPIES + 32,
    }
}

fn fused(at: u64) -> FusedCall {
    FusedCall {
        at,
        function: CODE + 0x5000,
        replaced: COPIES + 32,
        sites: [CODE, CODE + 5],
    }
}

/// As an attach leaves it.
pub(crate) fn table() -> PatchTable {
    let meta = RecordingMeta {
        hopscope_version: "1".into(),
        command_line: vec!["hopscope".into()],
        host: "host".into(),
        kernel: "6.1".into(),
        cpu: "a".into(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(1_000_000_000),
        tsc_invariant: true,
        start: ClockSync {
            tsc: Tsc(1),
            monotonic_ns: 2,
            realtime_ns: 3,
            window_ticks: 4,
        },
        stride: 16,
        ring_records: 16,
        probe_cost: None,
    };
    let process = ProcessEntry {
        ix: ProcessIx(0),
        pid: 2,
        comm: "program".into(),
        command_line: Vec::new(),
    };
    let area = |at, len| Area { at, len };
    PatchTable {
        segments: vec![area(COPIES, 0x2000)],
        header: area(0x80_0000, 0x1000),
        contexts: area(0x90_0000, 0x1000),
        pool: area(0xa0_0000, pool_bytes(2, 4) as u64),
        pool_contexts: 2,
        ring_records_log2: 4,
        patches: vec![patch(CODE), patch(CODE + 5), patch(CODE + 0x3000)],
        slots: vec![slot(GOT), slot(GOT + 8)],
        fused: vec![fused(COPIES + 0x1000), fused(COPIES + 0x1008)],
        ..PatchTable::new(meta, process, Vec::new(), Vec::new())
    }
}

#[test]
fn a_table_is_read_back_as_it_was_written() {
    for state in [State::Prepared, State::Patched, State::Restored] {
        let read = PatchTable::from_bytes(&table().to_bytes(state)).expect("ours");
        assert_eq!(read, (table(), state));
    }
}

#[test]
fn what_no_recorder_writes_is_refused() {
    let huge = Area {
        at: 0x80_0000,
        len: 1 << 40,
    };
    let wrapping = Area {
        at: !0xfff,
        len: 0x2000,
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut PatchTable));
    let changes: [Change; 19] = [
        ("copies", &|t| t.segments.push(huge)),
        ("area", &|t| t.segments.push(wrapping)),
        ("area", &|t| t.header = wrapping),
        ("at most 256", &|t| t.segments = vec![t.header; 257]),
        ("rings", &|t| t.contexts = huge),
        ("rings", &|t| t.pool_contexts = u32::MAX),
        ("rings", &|t| t.pool = huge),
        ("rings", &|t| t.ring_records_log2 = 64),
        ("overlap", &|t| t.patches.swap(0, 2)),
        ("overlap", &|t| t.patches.push(patch(CODE + 0x3004))),
        ("copy", &|t| t.patches[1].replaced[0] = 0xe8),
        ("copy", &|t| t.patches[1].at = u64::MAX - 3),
        ("slot", &|t| t.slots[1].replaced = CODE),
        ("slot", &|t| t.slots[1].at = u64::MAX - 3),
        ("slot", &|t| t.slots.swap(0, 1)),
        ("between copies", &|t| t.fused[1].replaced = CODE),
        ("between copies", &|t| t.fused[1].at = COPIES + 0x1ff9),
        ("between copies", &|t| t.fused[1].at = u64::MAX - 3),
        ("between copies", &|t| t.fused.swap(0, 1)),
    ];
    for (why, change) in changes {
        let mut changed = table();
        change(&mut changed);
        let refused = PatchTable::from_bytes(&changed.to_bytes(State::Patched));
        let said = refused.expect_err(why).to_string();
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_length_is_not_believed() {
    for len in [1 << 20, TABLE_BYTES_AT_MOST + 1, 1 << 40, u64::MAX] {
        let mut bytes = table().to_bytes(State::Patched);
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        let head = bytes.first_chunk().unwrap();
        assert!(Head::parse(head, bytes.len() as u64).is_err(), "{len}");
        assert!(PatchTable::from_bytes(&bytes).is_err(), "{len}");
    }
}

/// Three bytes of JSON may be a string of 24, in a list that grew to twice as many.
#[test]
fn no_list_takes_much_more_than_its_bytes() {
    let json = serde_json::to_value(table()).expect("plain data");
    let lists = [
        ("/segments", check::SEGMENTS_AT_MOST),
        ("/patches", check::FUNCTIONS_AT_MOST),
        ("/slots", check::FUNCTIONS_AT_MOST),
        ("/modules", check::MODULES_AT_MOST),
        ("/functions", check::FUNCTIONS_AT_MOST),
        ("/captures", check::FUNCTIONS_AT_MOST),
        ("/process/command_line", check::WORDS_AT_MOST),
        ("/meta/command_line", check::WORDS_AT_MOST),
    ];
    let in_json = |at: &str, element: &str, n: usize| {
        let mut marked = json.clone();
        *marked.pointer_mut(at).expect(at) = "HERE".into();
        let list = format!("[{}]", vec![element; n].join(","));
        marked.to_string().replacen("\"HERE\"", &list, 1)
    };
    for (at, at_most) in lists {
        let element = match at {
            "/segments" => r#"{"at":0,"len":0}"#,
            "/patches" => r#"{"at":0,"original":[0,0,0,0,0],"replaced":[0,0,0,0,0]}"#,
            "/slots" => r#"{"at":0,"function":0,"found":0,"replaced":0}"#,
            "/modules" => r#"{"ix":0,"path":"","build_id":""}"#,
            "/functions" => r#"{"id":0,"module":0,"name":"","svma":0,"size":0}"#,
            "/captures" => {
                r#"{"function":0,"capture":0,"name":"","bits":8,"signed":false,"at":"entry","method":"register","elements_max":1}"#
            }
            _ => r#""""#,
        };
        let read = |n| serde_json::from_str::<PatchTable>(&in_json(at, element, n));
        if let Err(e) = read(2) {
            panic!("{at}: {e}");
        }
        let refused = read(at_most + 1).expect_err(at).to_string();
        assert!(refused.contains("at most"), "{at}: {refused}");
    }
}

/// Bytes of a table of which some were overwritten, and where it was cut off.
fn damaged() -> impl Strategy<Value = (Vec<(usize, u8)>, usize)> {
    let len = table().to_bytes(State::Patched).len();
    let byte = (0..len, any::<u8>());
    (proptest::collection::vec(byte, 0..8), 0..=len)
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = PatchTable::from_bytes(&bytes);
        let mut ours = table().to_bytes(State::Patched)[..HEAD_BYTES].to_vec();
        ours.extend(&bytes);
        let _ = PatchTable::from_bytes(&ours);
    }

    #[test]
    fn damaged_tables_are_refused_or_bounded((changes, len) in damaged()) {
        let mut bytes = table().to_bytes(State::Patched);
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if let Ok((read, _)) = PatchTable::from_bytes(&bytes[..len]) {
            prop_assert!(read.check().is_ok());
            prop_assert!(read.pool_contexts <= 1024);
        }
    }

    #[test]
    fn any_numbers_are_refused_or_bounded(
        at in any::<[u64; 4]>(), len in any::<[u64; 4]>(), log2 in 0..70u32, contexts in any::<u32>(),
        sites in proptest::collection::vec(any::<u64>(), 0..4),
    ) {
        let area = |n: usize| Area { at: at[n] & !0xfff, len: len[n] };
        let mut t = table();
        (t.segments, t.header, t.contexts, t.pool) = (vec![area(0)], area(1), area(2), area(3));
        (t.ring_records_log2, t.pool_contexts) = (log2, contexts);
        t.slots = sites.iter().map(|at| slot(*at)).collect();
        t.patches = sites.into_iter().map(|at| Patch { at, ..patch(CODE) }).collect();
        let _ = PatchTable::from_bytes(&t.to_bytes(State::Patched));
    }
}
