//! A recording made up for the page: 100,000 packets in batches, as irregular as measured ones (what is
//! regular packs into nothing), with the calls of the runs that handled them and some slow ones.
use crate::error::{Error, Result};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::*;
use hopscope_trace::{RecordBatch, Stamps, TraceError, TraceWriter};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

pub(super) const PACKETS: u64 = 100_000;
/// 2.6 GHz.
const HZ: u64 = 2_600_000_000;
const START: u64 = 5_000_000_000;
/// Between two packets, in ticks: 200,000 packets a second.
const GAP: u64 = 13_000;
const NAMES: [&str; 4] = ["pipeline_run", "acl_match", "nat_translate", "tx_burst"];

/// Numbers without a pattern (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ n >> 27
}

/// One pass over a batch.
struct Run {
    first: u64,
    packets: u64,
    start: u64,
    acl: u64,
    nat: u64,
    end: u64,
}

impl Run {
    fn all() -> Vec<Run> {
        let (mut runs, mut first, mut free_at) = (Vec::new(), 0, START);
        while first < PACKETS {
            let chance = mixed(first);
            let packets = (1 + chance % 4).min(PACKETS - first);
            let ready = START + (first + packets - 1) * GAP + 900 + (chance >> 8) % 1_500;
            let start = ready.max(free_at + 60);
            let slow = match chance >> 40 & 0x7ff {
                0 => 400_000,
                _ => 0,
            };
            let acl = start + packets * 2_600 + (chance >> 16) % 900 + slow;
            let nat = acl + packets * 1_300 + (chance >> 24) % 600;
            let end = nat + 400 + (chance >> 32) % 300;
            runs.push(Run {
                first,
                packets,
                start,
                acl,
                nat,
                end,
            });
            (first, free_at) = (first + packets, end);
        }
        runs
    }

    /// In the order of their stamps.
    fn records(&self) -> [Record; 8] {
        let of = |tsc, f, kind, depth: u32| {
            Record::new(tsc, FunctionId(f), kind, 0x7fff_0000 - depth * 64)
        };
        [
            of(self.start, 0, RecordKind::Entry, 0),
            of(self.start + 80, 1, RecordKind::Entry, 1),
            of(self.acl, 1, RecordKind::Exit, 1),
            of(self.acl + 40, 2, RecordKind::Entry, 1),
            of(self.nat, 2, RecordKind::Exit, 1),
            of(self.nat + 40, 3, RecordKind::Entry, 1),
            of(self.end - 60, 3, RecordKind::Exit, 1),
            of(self.end, 0, RecordKind::Exit, 0),
        ]
    }

    fn stamps(&self) -> impl Iterator<Item = Stamp> {
        let end = self.end;
        (self.first..self.first + self.packets).map(move |seq| {
            let due = Tsc(START + seq * GAP);
            Stamp {
                seq,
                flow: (mixed(seq) % 64) as u32,
                len: 60,
                intended: due,
                sent: due + mixed(seq) % 200,
                received: (seq % 9_973 != 5).then_some(Tsc(end + 1_200 + mixed(!seq) % 900)),
                flags: StampFlags::NONE,
            }
        })
    }
}

fn sync(tsc: u64) -> ClockSync {
    let ns = TscFrequency(HZ).ns(tsc as i64) as u64;
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: ns,
        realtime_ns: 1_763_701_929_000_000_000 + ns,
        window_ticks: 40,
    }
}

/// Calls in the recording.
pub(super) fn write(to: &Path) -> Result<u64> {
    let file = File::create(to).map_err(Error::file("create", to))?;
    write_to(BufWriter::new(file)).map_err(|source| Error::Recording {
        path: to.to_owned(),
        source,
    })
}

fn write_to(out: BufWriter<File>) -> std::result::Result<u64, TraceError> {
    let runs = Run::all();
    let mut writer = TraceWriter::new(out, &meta())?;
    tables(&mut writer)?;
    let records: Vec<Record> = runs.iter().flat_map(Run::records).collect();
    let mut first_index = 0;
    for part in records.chunks(1 << 15) {
        writer.records(RecordBatch {
            thread: ThreadIx(0),
            first_index,
            lost_before: 0,
            torn_before: 0,
            records: part,
        })?;
        first_index += part.len() as u64;
    }
    let stamps: Vec<Stamp> = runs.iter().flat_map(Run::stamps).collect();
    for part in stamps.chunks(1 << 15) {
        writer.stamps(Stamps {
            stream: StreamIx(0),
            unwritten_before: 0,
            stamps: part,
        })?;
    }
    writer.finish(&Summary {
        end: sync(START + PACKETS * GAP + 5_000_000),
        ended_because: "made up by hopscope bench html".into(),
        recorded: first_index,
        lost: 0,
        torn: 0,
        threads_measured: 1,
        calls_unmeasured: Some(0),
        attach_pause_ns: vec![],
        detach_pause_ns: vec![],
        stops: Default::default(),
        recorder_cpu_ns: Some(0),
        notes: vec!["this recording is made up".into()],
    })?;
    Ok(first_index / 2)
}

fn meta() -> RecordingMeta {
    RecordingMeta {
        hopscope_version: env!("CARGO_PKG_VERSION").into(),
        command_line: vec!["hopscope".into(), "bench".into(), "html".into()],
        host: "made up".into(),
        kernel: "-".into(),
        cpu: "-".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(HZ),
        tsc_invariant: true,
        start: sync(START - 1_000_000),
        stride: 16,
        ring_records: 1 << 18,
        probe_cost: None,
    }
}

fn tables(writer: &mut TraceWriter<BufWriter<File>>) -> std::result::Result<(), TraceError> {
    writer.process(&ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: vec!["./nf".into()],
    })?;
    let modules: Vec<_> = NAMES
        .iter()
        .zip(0..)
        .map(|(name, ix)| ModuleEntry {
            ix: ModuleIx(ix),
            path: format!("/opt/nf/{name}.so"),
            build_id: String::new(),
        })
        .collect();
    writer.modules(&modules)?;
    let functions: Vec<_> = NAMES
        .iter()
        .zip(0..)
        .map(|(name, id)| FunctionEntry {
            id: FunctionId(id),
            module: ModuleIx(id),
            name: (*name).into(),
            svma: 0x1000 + u64::from(id) * 64,
            size: 64,
            file: None,
            line: None,
        })
        .collect();
    writer.functions(&functions)?;
    writer.thread(&ThreadEntry {
        ix: ThreadIx(0),
        process: ProcessIx(0),
        tid: 8,
        comm: "worker".into(),
    })?;
    writer.stream(&StreamEntry {
        ix: StreamIx(0),
        sender: "packet:a".into(),
        receiver: "packet:b".into(),
        traffic: "64 B UDP, 64 flows".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_take_all_packets_and_do_not_overlap() {
        let runs = Run::all();
        assert_eq!(runs.iter().map(|r| r.packets).sum::<u64>(), PACKETS);
        for pair in runs.windows(2) {
            assert!(pair[0].end < pair[1].start && pair[0].first < pair[1].first);
        }
        for run in &runs {
            assert!(run.records().is_sorted_by_key(|r| r.tsc));
            assert!(run.stamps().all(|s| s.sent < Tsc(run.start)));
        }
    }
}
