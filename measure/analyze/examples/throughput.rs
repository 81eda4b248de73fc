//! How many records a second the analysis takes: `cargo run --release -p hopscope-analyze
//! --example throughput`. Informs only; nothing is asserted.
use hopscope_analyze::{Analysis, Batch, Group, Index, Options};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, ProbeCost, Record, RecordKind, ThreadIx};
use std::time::Instant;

const FUNCTIONS: u32 = 1000;
const RECORDS: usize = 4_000_000;

/// Calls up to 8 deep, functions drawn by a xorshift.
fn records() -> Vec<Record> {
    let (mut random, mut tsc, mut out, mut open) =
        (88172645463325252u64, 1u64, Vec::new(), Vec::new());
    while out.len() < RECORDS || !open.is_empty() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tsc += 20 + random % 200;
        let rsp = 0x7fff_0000 - 64 * open.len() as u32;
        if out.len() < RECORDS && open.len() < 8 && (open.is_empty() || random >> 40 & 1 == 0) {
            // Like programs, not like dice: each caller has four callees.
            let caller = open.last().copied().unwrap_or(0);
            let function = (caller * 4 + (random >> 50) as u32 % 4 + 1) % FUNCTIONS;
            out.push(Record::new(
                tsc,
                FunctionId(function),
                RecordKind::Entry,
                rsp,
            ));
            open.push(function);
        } else if let Some(function) = open.pop() {
            out.push(Record::new(
                tsc,
                FunctionId(function),
                RecordKind::Exit,
                rsp + 64,
            ));
        }
    }
    out
}

/// Ten modules one after the other, as in a run-to-completion network function.
fn pipeline() -> Vec<Record> {
    let (mut tsc, mut out) = (1u64, Vec::new());
    while out.len() < RECORDS {
        tsc += 100;
        out.push(Record::new(
            tsc,
            FunctionId(0),
            RecordKind::Entry,
            0x7fff_0000,
        ));
        for module in 1..=10 {
            tsc += 20 + tsc % 7;
            out.push(Record::new(
                tsc,
                FunctionId(module),
                RecordKind::Entry,
                0x7ffe_ff00,
            ));
            tsc += 300 + tsc % 977;
            out.push(Record::new(
                tsc,
                FunctionId(module),
                RecordKind::Exit,
                0x7ffe_ff00,
            ));
        }
        out.push(Record::new(
            tsc + 30,
            FunctionId(0),
            RecordKind::Exit,
            0x7fff_0000,
        ));
    }
    out
}

fn main() {
    measure("1,000 functions", &records());
    measure("10 modules", &pipeline());
}

fn measure(program: &str, records: &[Record]) {
    let functions: Vec<_> = (0..FUNCTIONS)
        .map(|id| FunctionEntry {
            id: FunctionId(id),
            module: ModuleIx(id % 7),
            name: format!("f{id}"),
            svma: u64::from(id),
            size: 1,
            file: None,
            line: None,
        })
        .collect();
    for (what, cost) in [
        ("raw", None),
        (
            "corrected",
            Some(ProbeCost::in_a_loop([20, 22, 25], [44, 46, 50])),
        ),
    ] {
        for group in [Group::Function, Group::Module] {
            let options = Options {
                group,
                probe_cost: cost,
                ..Options::default()
            };
            let begin = Instant::now();
            let mut analysis = Analysis::new(Index::new(&functions, &[]), options);
            for round in 0..5 {
                for (place, part) in records.chunks(8192).enumerate() {
                    let first_index = (round * records.len() + place * 8192) as u64;
                    analysis.feed(&Batch {
                        thread: ThreadIx(0),
                        first_index,
                        lost: 0,
                        torn: 0,
                        records: part,
                        taken: &[],
                        early: false,
                    });
                }
            }
            let outcome = analysis.finish();
            let rate = 5.0 * records.len() as f64 / begin.elapsed().as_secs_f64() / 1e6;
            let paths = outcome.tree.nodes().len();
            println!("{program}, {what:<10} {group:?}: {rate:.1} M records/s, {paths} paths");
        }
    }
}
