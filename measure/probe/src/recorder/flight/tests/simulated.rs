//! A recording of an hour in a moment: made records, a made clock, files in memory.
use super::super::super::trigger::Trigger;
use super::super::*;
use hopscope_event::{FunctionId, OffCpu, ProcessIx, Record, RecordKind, RecordingMeta};
use hopscope_trace::TraceReader;
use std::cell::{Cell, RefCell};

/// A tick is a nanosecond here.
pub(super) const MS: u64 = 1_000_000;
pub(super) const SLOW: FunctionId = FunctionId(2);

pub(super) fn sync(tsc: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: tsc,
        realtime_ns: tsc,
        window_ticks: 3,
    }
}

pub(super) fn meta() -> RecordingMeta {
    RecordingMeta {
        hopscope_version: String::new(),
        command_line: Vec::new(),
        host: String::new(),
        kernel: String::new(),
        cpu: String::new(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(1_000_000_000),
        tsc_invariant: true,
        start: sync(0),
        stride: 16,
        ring_records: 4096,
        probe_cost: None,
    }
}

/// Two threads; each calls a function every 10 ms for 1 ms. At these times, in ms, thread 0 does so
/// for 50 ms. Visited every 100 ms. Gives the saved files, the counts and all records' stamps.
pub(super) struct Simulated {
    pub(super) files: Vec<TraceReader>,
    pub(super) counts: FlightCounts,
    pub(super) stamps: Vec<Vec<u64>>,
    pub(super) most_bytes: u64,
}

pub(super) fn simulate(
    total_ms: u64,
    slow_at: &[u64],
    bytes_max: u64,
    signal_at: Option<u64>,
) -> Simulated {
    let how = How {
        total_ms,
        slow_at,
        bytes_max,
        signal_at,
        cool_down_ms: 0,
        ended: Ended::Asked,
    };
    how.simulate()
}

pub(super) struct How<'a> {
    pub(super) total_ms: u64,
    pub(super) slow_at: &'a [u64],
    pub(super) bytes_max: u64,
    pub(super) signal_at: Option<u64>,
    pub(super) cool_down_ms: u64,
    pub(super) ended: Ended,
}

impl How<'_> {
    pub(super) fn simulate(self) -> Simulated {
        let How {
            total_ms,
            slow_at,
            bytes_max,
            signal_at,
            ..
        } = self;
        let files = RefCell::new(Vec::new());
        let asked = Cell::new(false);
        let now = Cell::new(0);
        let mut open = |start| {
            let meta = RecordingMeta { start, ..meta() };
            Ok((PathBuf::from("x"), TraceWriter::new(Vec::new(), &meta)?))
        };
        let mut saved = |_: &PathBuf, out: Vec<u8>, _: &Summary| {
            files.borrow_mut().push(out);
            Ok(())
        };
        let options = FlightOptions {
            before: Duration::from_secs(2),
            after: Duration::from_secs(1),
            cool_down: Duration::from_millis(self.cool_down_ms),
            bytes_max,
            at_exit: Some("exit".into()),
            recording: sync(0),
            frequency: TscFrequency(1_000_000_000),
        };
        let parts = FlightParts {
            triggers: Triggers::new(vec![Trigger {
                text: "slow > 20ms".into(),
                functions: vec![SLOW],
                ticks: 20 * MS,
            }]),
            asked: &|| asked.take().then(|| "SIGUSR1".to_owned()),
            open: &mut open,
            saved: &mut saved,
            now: &|| sync(now.get()),
        };
        let mut flight = Flight::new(options, parts);
        let mut stamps = vec![Vec::new(), Vec::new()];
        let mut most_bytes = 0;
        for ix in 0..2 {
            let entry = ThreadEntry {
                ix: ThreadIx(ix),
                process: ProcessIx(0),
                tid: 7 + ix as i32,
                comm: "nf".into(),
            };
            flight.thread(&entry).unwrap();
        }
        let mut next = [0, 0];
        for visit in 0..total_ms / 100 {
            let began = (visit + 1) * 100 * MS;
            now.set(began);
            for thread in 0..2usize {
                let mut records = Vec::new();
                let mut at = visit * 100;
                while at < (visit + 1) * 100 {
                    let takes = if thread == 0 && slow_at.contains(&at) {
                        50
                    } else {
                        1
                    };
                    for (at, kind) in [(at, RecordKind::Entry), (at + takes, RecordKind::Exit)] {
                        stamps[thread].push(at * MS);
                        records.push(Record::new(at * MS, SLOW, kind, 4096));
                    }
                    at += takes.max(10);
                }
                let batch = RecordBatch {
                    thread: ThreadIx(thread as u32),
                    first_index: next[thread],
                    lost_before: 0,
                    torn_before: 0,
                    records: &records,
                };
                next[thread] += records.len() as u64;
                flight.records(batch).unwrap();
            }
            let row = OffCpu {
                out: Tsc(began - 60 * MS),
                back: Tsc(began - 50 * MS),
                preempted: true,
            };
            let batch = Switches {
                thread: ThreadIx(1),
                lost_before: 0,
                rows: &[row],
            };
            flight.switches(batch).unwrap();
            asked.set(signal_at.is_some_and(|at| at / 100 == visit));
            flight.visited(Tsc(began)).unwrap();
            most_bytes = most_bytes.max(flight.held.bytes());
        }
        let counts = flight.finish(&self.ended).unwrap();
        let files = files.into_inner().into_iter();
        Simulated {
            files: files.map(|f| TraceReader::from_bytes(f).unwrap()).collect(),
            counts,
            stamps,
            most_bytes,
        }
    }
}
