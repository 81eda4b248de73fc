//! What the analysis states of a file of records, for tests of coroutines that move between threads.
pub mod world;

use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::trail::{Begun, End, Observer, Totals};
use hopscope_analyze::{Analysis, AnalysisOptions, Group, InOrder, Index, OwnedBatch, Read};
use hopscope_analyze::{StackOwners, Trail, Window};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, ProcessIx, ThreadEntry, ThreadIx, Tsc};
use std::convert::Infallible;

pub const FUNCTIONS: u32 = 4;
pub const CO: u32 = 0x1000_0000;
pub const NATIVE: u32 = 0x7000_0000;

pub fn index(threads: u32, processes: u32) -> Index {
    let function = |id: u32| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("f{id}"),
        svma: u64::from(id),
        size: 1,
        file: None,
        line: None,
    };
    let thread = |ix: u32| ThreadEntry {
        ix: ThreadIx(ix),
        process: ProcessIx(ix % processes),
        tid: ix as i32,
        comm: String::new(),
    };
    let functions: Vec<_> = (0..FUNCTIONS).map(function).collect();
    let threads: Vec<_> = (0..threads).map(thread).collect();
    Index::new(&functions, &threads)
}

/// A call that returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timed {
    pub entry: u64,
    pub function: u32,
    pub exit: u64,
    pub callees: u64,
    pub caller: Option<u32>,
}

#[derive(Default)]
pub struct Seen {
    pub calls: Vec<Timed>,
    pub unknown: Vec<(u64, Fate)>,
    pub orphans: Vec<(u64, Orphan)>,
}

impl Observer for Seen {
    fn ended(&mut self, call: &Begun, end: &End) {
        match end {
            End::Exit(times) => self.calls.push(Timed {
                entry: call.entry.0,
                function: call.function.0,
                exit: call.entry.0.wrapping_add_signed(times.total),
                callees: times.callees,
                caller: call.caller.map(|f| f.0),
            }),
            End::Unknown(fate) => self.unknown.push((call.entry.0, *fate)),
        }
    }

    fn orphan(&mut self, _: ThreadIx, _: FunctionId, at: Tsc, orphan: Orphan) {
        self.orphans.push((at.0, orphan));
    }
}

/// What the file says of the batches that follow each.
pub fn read(file: &[OwnedBatch]) -> Vec<Read> {
    let begins = |n: usize| {
        let batch = &file[n];
        let before = file[..n].iter().rev().find(|b| b.thread == batch.thread);
        let first = |b: &OwnedBatch| b.records.first().map_or(u64::MAX, |r| r.tsc);
        match before {
            Some(before) if batch.lost > 0 => first(before).min(first(batch)),
            _ => first(batch),
        }
    };
    let mut from = u64::MAX;
    let mut out: Vec<_> = (0..file.len())
        .rev()
        .map(|n| {
            let thread = file[n].thread;
            let read = Read {
                batch: file[n].clone(),
                ahead_from: Tsc(from),
                last_of_thread: !file[n + 1..].iter().any(|b| b.thread == thread),
            };
            from = from.min(begins(n));
            read
        })
        .collect();
    out.reverse();
    out
}

pub fn in_order(index: &Index, threads: u32, file: &[OwnedBatch]) -> Vec<OwnedBatch> {
    let batches = read(file).into_iter().map(Ok::<_, Infallible>);
    // In a file of thousands of records, after every few.
    let owners = StackOwners::new(index, (0..threads).map(ThreadIx)).looked_from(4);
    InOrder::new(batches, owners)
        .map(|batch| batch.unwrap_or_else(|e| match e {}))
        .collect()
}

pub fn seen(index: &Index, threads: u32, file: &[OwnedBatch]) -> (Seen, Totals) {
    let options = AnalysisOptions {
        group: Group::Thread,
        ..AnalysisOptions::default()
    };
    let mut analysis = Analysis::new(index.clone(), options);
    let mut trail = Trail::new(index.clone(), Window::default(), None);
    let mut seen = Seen::default();
    for batch in &in_order(index, threads, file) {
        trail.feed(&batch.batch(), &mut seen);
        analysis.feed(&batch.batch());
    }
    let totals = trail.finish(&mut seen);
    let outcome = analysis.finish();
    assert!(totals.balance.holds() && outcome.balance.holds());
    assert_eq!(totals.balance, outcome.balance);
    assert!(outcome.rows.iter().all(|row| row.stats.balance.holds()));
    seen.calls.sort_unstable();
    (seen, totals)
}
