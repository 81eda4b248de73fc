//! Recordings made by hand, of which everything is known: one process, one thread, one stream.
use anyhow::Result;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::*;
use hopscope_trace::{RecordBatch, Stamps, TraceWriter};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

pub(crate) struct Made {
    pub(crate) writer: TraceWriter<BufWriter<File>>,
    frequency: TscFrequency,
    /// Wherever a machine or a program may have put what it likes.
    text: String,
    recorded: u64,
}

const THREAD: ThreadIx = ThreadIx(0);
const STREAM: StreamIx = StreamIx(0);

/// A call's place on the stack, at this depth.
pub(crate) fn record(tsc: u64, function: u32, kind: RecordKind, depth: u32) -> Record {
    Record::new(tsc, FunctionId(function), kind, 0x7fff_0000 - depth * 64)
}

fn sync(frequency: TscFrequency, tsc: u64) -> ClockSync {
    let ns = frequency.ns(tsc as i64) as u64;
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: ns,
        realtime_ns: 1_763_701_929_000_000_000 + ns,
        window_ticks: 3,
    }
}

impl Made {
    pub(crate) fn begin(to: &Path, hz: u64, start: u64, text: &str) -> Result<Made> {
        let frequency = TscFrequency(hz);
        let meta = RecordingMeta {
            hopscope_version: "0.1.0".into(),
            command_line: ["hopscope", "record", text].map(String::from).into(),
            host: text.into(),
            kernel: "6.1".into(),
            cpu: "A CPU".into(),
            cpus_online: 2,
            tsc_frequency: frequency,
            tsc_invariant: true,
            start: sync(frequency, start),
            stride: 16,
            ring_records: 1 << 18,
            probe_cost: None,
        };
        Ok(Made {
            writer: TraceWriter::new(BufWriter::new(File::create(to)?), &meta)?,
            frequency,
            text: text.into(),
            recorded: 0,
        })
    }

    /// Each function with its module.
    pub(crate) fn process(&mut self, functions: &[(&str, &str)]) -> Result<()> {
        self.writer.process(&ProcessEntry {
            ix: ProcessIx(0),
            pid: 7,
            comm: "nf".into(),
            command_line: vec!["./nf".into(), self.text.clone()],
        })?;
        let mut modules: Vec<ModuleEntry> = Vec::new();
        let mut rows = Vec::new();
        for (&(name, path), id) in functions.iter().zip(0..) {
            let ix = modules.iter().position(|m| m.path == path);
            let ix = ix.unwrap_or_else(|| {
                modules.push(ModuleEntry {
                    ix: ModuleIx(modules.len() as u32),
                    path: path.into(),
                    build_id: String::new(),
                });
                modules.len() - 1
            });
            rows.push(FunctionEntry {
                id: FunctionId(id),
                module: ModuleIx(ix as u32),
                name: name.into(),
                svma: 0x1000 + u64::from(id) * 64,
                size: 64,
                file: Some("nf.c".into()),
                line: Some(id + 1),
            });
        }
        self.writer.modules(&modules)?;
        self.writer.functions(&rows)?;
        self.writer.thread(&ThreadEntry {
            ix: THREAD,
            process: ProcessIx(0),
            tid: 8,
            comm: self.text.clone(),
        })?;
        Ok(())
    }

    pub(crate) fn records(&mut self, records: &[Record]) -> Result<()> {
        for records in records.chunks(1 << 15) {
            self.writer.records(RecordBatch {
                thread: THREAD,
                first_index: self.recorded,
                lost_before: 0,
                torn_before: 0,
                records,
            })?;
            self.recorded += records.len() as u64;
        }
        Ok(())
    }

    /// Sent when they were due.
    pub(crate) fn stamps(&mut self, packets: impl Iterator<Item = Packet>) -> Result<()> {
        self.writer.stream(&StreamEntry {
            ix: STREAM,
            sender: self.text.clone(),
            receiver: "packet:b".into(),
            traffic: "64 B UDP".into(),
        })?;
        let stamps = packets.map(|p| Stamp {
            seq: p.seq,
            flow: p.flow,
            len: 60,
            intended: Tsc(p.sent),
            sent: Tsc(p.sent),
            received: p.received.map(Tsc),
            flags: StampFlags::NONE,
        });
        for stamps in stamps.collect::<Vec<_>>().chunks(1 << 15) {
            self.writer.stamps(Stamps {
                stream: STREAM,
                unwritten_before: 0,
                stamps,
            })?;
        }
        Ok(())
    }

    pub(crate) fn finish(self, end: u64) -> Result<()> {
        self.writer.finish(&Summary {
            end: sync(self.frequency, end),
            ended_because: self.text.clone(),
            recorded: self.recorded,
            lost: 0,
            torn: 0,
            threads_measured: 1,
            calls_unmeasured: Some(0),
            attach_pause_ns: vec![],
            detach_pause_ns: vec![],
            stops: Default::default(),
            recorder_cpu_ns: Some(0),
            notes: vec![self.text],
        })?;
        Ok(())
    }
}

/// In ticks.
pub(crate) struct Packet {
    pub(crate) seq: u64,
    pub(crate) flow: u32,
    pub(crate) sent: u64,
    pub(crate) received: Option<u64>,
}
