//! Calls and packets one by one, as far as the windows of the page reach, laid out for its script:
//! columns of numbers, calls by thread and depth.
use super::column::encode;
use super::windows::Windows;
use hopscope_analyze::{Packet, PlacedCall, Run, RunIx};
use hopscope_event::{FunctionId, StampFlags, ThreadIx, Tsc};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Rows of calls drawn for one thread.
const DEPTH_MAX: u32 = 32;
/// Bit of a packet's flags that no stamp has: it never arrived.
const LOST: i64 = 1 << 4;

/// What the page shows one by one.
#[derive(Debug)]
pub struct Detail {
    pub windows: Windows,
    calls: Vec<PlacedCall>,
    packets: Vec<Packet>,
    runs: Vec<ShownRun>,
    /// Called deeper than is drawn.
    deeper: u64,
    /// In the windows, and beyond the budget.
    left_out: u64,
}

#[derive(Debug, Clone, Copy)]
struct ShownRun {
    ix: RunIx,
    thread: ThreadIx,
    start: Tsc,
    end: Tsc,
    complete: bool,
    calls: u64,
    off_cpu_ticks: u64,
}

impl Detail {
    pub fn new(windows: Windows) -> Detail {
        Detail {
            windows,
            calls: Vec::new(),
            packets: Vec::new(),
            runs: Vec::new(),
            deeper: 0,
            left_out: 0,
        }
    }

    pub fn call(&mut self, call: &PlacedCall) {
        let end = call.entry + call.ticks.max(0) as u64;
        if call.ticks < 0 || !self.windows.touches(call.entry, end) {
            return;
        }
        // Windows are chosen from bins of time; within one the density may vary.
        if self.calls.len() as u64 >= self.windows.budget.calls * 5 / 4 {
            self.left_out += 1;
        } else if call.depth >= DEPTH_MAX {
            self.deeper += 1;
        } else {
            self.calls.push(*call);
        }
    }

    pub fn packet(&mut self, packet: &Packet) {
        let stamp = &packet.stamp;
        let begin = stamp.intended.min(stamp.sent);
        if !self.windows.touches(begin, stamp.received.unwrap_or(begin)) {
            return;
        }
        if (self.packets.len() as u64) < self.windows.budget.packets * 5 / 4 {
            self.packets.push(*packet)
        } else {
            self.left_out += 1
        }
    }

    /// Whether a run lies in what is shown.
    pub fn wants(&self, run: &Run) -> bool {
        self.windows.touches(run.start, run.end)
    }

    pub fn run(&mut self, run: &Run) {
        if !self.wants(run) {
            return;
        }
        if (self.runs.len() as u64) < self.windows.budget.calls {
            self.runs.push(ShownRun {
                ix: run.ix,
                thread: run.thread,
                start: run.start,
                end: run.end,
                complete: run.complete,
                calls: run.calls.len() as u64 + run.calls_left_out,
                off_cpu_ticks: run.off_cpu_ticks,
            })
        } else {
            self.left_out += 1
        }
    }

    pub(crate) fn calls_shown(&self) -> u64 {
        self.calls.len() as u64
    }

    pub(crate) fn packets_shown(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(crate) fn deeper(&self) -> u64 {
        self.deeper
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Functions that calls here name, in order: the dense numbers that the script knows them by.
    pub(crate) fn functions(&self) -> Vec<FunctionId> {
        let mut functions: Vec<FunctionId> = self.calls.iter().map(|c| c.function).collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    pub(crate) fn calls_json(&mut self, base: Tsc, functions: &[FunctionId]) -> Value {
        self.calls
            .sort_by_key(|c| (c.thread, c.depth, c.entry, c.ticks));
        let mut lanes: BTreeMap<(ThreadIx, u32), u64> = BTreeMap::new();
        for call in &self.calls {
            *lanes.entry((call.thread, call.depth)).or_default() += 1;
        }
        let lanes: Vec<_> = lanes
            .iter()
            .map(|((thread, depth), n)| json!({"thread": thread.0, "depth": depth, "n": n}))
            .collect();
        let number: HashMap<_, _> = functions.iter().zip(0i64..).collect();
        let of = |c: &PlacedCall| number.get(&c.function).copied().unwrap_or(-1);
        json!({
            "lanes": lanes,
            "entry": encode(self.calls.iter().map(|c| c.entry - base)),
            "ticks": encode(self.calls.iter().map(|c| c.ticks)),
            "function": encode(self.calls.iter().map(of)),
        })
    }

    pub(crate) fn packets_json(&mut self, base: Tsc) -> Value {
        self.packets
            .sort_by_key(|p| (p.stream, p.stamp.intended, p.stamp.seq));
        let column = |of: &dyn Fn(&Packet) -> i64| encode(self.packets.iter().map(of));
        let stamp = |p: &Packet| p.stamp;
        json!({
            "n": self.packets.len(),
            "stream": column(&|p| i64::from(p.stream.0)),
            "seq": column(&|p| stamp(p).seq as i64),
            "flow": column(&|p| i64::from(stamp(p).flow)),
            "bytes": column(&|p| i64::from(stamp(p).len)),
            "intended": column(&|p| stamp(p).intended - base),
            "left_after": column(&|p| stamp(p).sent - stamp(p).intended),
            "latency": column(&|p| stamp(p).latency_ticks().unwrap_or(0)),
            "flags": column(&|p| flags(p)),
            "run": column(&|p| p.run.map_or(-1, |run| run.0 as i64)),
        })
    }

    pub(crate) fn runs_json(&mut self, base: Tsc) -> Value {
        self.runs.sort_by_key(|r| (r.thread, r.start, r.ix));
        let column = |of: &dyn Fn(&ShownRun) -> i64| encode(self.runs.iter().map(of));
        json!({
            "n": self.runs.len(),
            "ix": column(&|r| r.ix.0 as i64),
            "thread": column(&|r| i64::from(r.thread.0)),
            "start": column(&|r| r.start - base),
            "ticks": column(&|r| r.end - r.start),
            "complete": column(&|r| i64::from(r.complete)),
            "calls": column(&|r| r.calls as i64),
            "off_cpu": column(&|r| r.off_cpu_ticks as i64),
        })
    }
}

fn flags(packet: &Packet) -> i64 {
    let lost = match packet.stamp.received {
        None if !packet.stamp.flags.contains(StampFlags::DUPLICATE) => LOST,
        _ => 0,
    };
    i64::from(packet.stamp.flags.bits()) | lost
}
