use super::*;
use RecordKind::{Entry, Escape, Exit, TailExit};

/// What came out: index, lost before, the numbers of the records.
#[derive(Default)]
struct Out(Vec<(u64, u64, Vec<u64>)>);

impl Sink for Out {
    fn thread(&mut self, _: &ThreadEntry) -> Result<(), TraceError> {
        Ok(())
    }
    fn records(&mut self, batch: RecordBatch<'_>) -> Result<(), TraceError> {
        let numbers = batch.records.iter().map(|r| r.tsc).collect();
        self.0.push((batch.first_index, batch.lost_before, numbers));
        Ok(())
    }
    fn clock(&mut self, _: ClockSync) -> Result<(), TraceError> {
        Ok(())
    }
    fn flush(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}

const ROOT: u32 = 3;

fn record(number: u64, kind: RecordKind, function: u32, rsp: u32) -> Record {
    Record::new(number, FunctionId(function), kind, rsp)
}

/// A run of four records: root, one call, both ends.
fn run(from: u64) -> Vec<Record> {
    vec![
        record(from, Entry, ROOT, 800),
        record(from + 1, Entry, 5, 400),
        record(from + 2, Exit, 5, 400),
        record(from + 3, Exit, ROOT, 800),
    ]
}

fn feed(every: u64, batches: &[(u64, u64, Vec<Record>)]) -> (ThinEntry, Out) {
    let mut out = Out::default();
    let mut thin = Thin::new(&mut out, vec![FunctionId(ROOT)], every);
    for (first_index, lost_before, records) in batches {
        let batch = RecordBatch {
            thread: ThreadIx(0),
            first_index: *first_index,
            lost_before: *lost_before,
            torn_before: 0,
            records,
        };
        thin.records(batch).expect("nothing fails here");
    }
    (thin.finish(), out)
}

fn numbers(out: &Out) -> Vec<u64> {
    out.0.iter().flat_map(|(_, _, n)| n.clone()).collect()
}

#[test]
fn each_nth_run_is_kept_whole_across_batches() {
    let all: Vec<Record> = (0..7).flat_map(|n| run(10 * n + 1)).collect();
    for cut in 0..all.len() {
        let (first, second) = all.split_at(cut);
        let batches = [(0, 0, first.to_vec()), (cut as u64, 0, second.to_vec())];
        let (entry, out) = feed(3, &batches);
        assert_eq!(numbers(&out), [1, 2, 3, 4, 31, 32, 33, 34, 61, 62, 63, 64]);
        assert_eq!((entry.runs_seen, entry.runs_kept), (7, 3));
        assert_eq!((entry.runs_cut, entry.records_left_out), (0, 16));
        let mut next = 0;
        for (first_index, _, numbers) in out.0 {
            assert_eq!(first_index, next);
            next += numbers.len() as u64;
        }
    }
}

#[test]
fn a_run_with_a_loss_in_it_is_left_out_whole() {
    let whole = run(1);
    let batches = [
        (0, 0, whole[..2].to_vec()),
        (7, 5, [&whole[3..], &run(21)[..]].concat()),
    ];
    let (entry, out) = feed(1, &batches);
    assert_eq!(out.0, [(5, 5, vec![21, 22, 23, 24])]);
    assert_eq!((entry.runs_seen, entry.runs_kept), (2, 1));
    assert_eq!((entry.runs_cut, entry.records_left_out), (1, 3));
}

#[test]
fn recursion_is_one_run_and_calls_outside_belong_to_none() {
    let records = vec![
        record(1, Entry, 5, 900),
        record(2, Exit, 5, 900),
        record(3, Entry, ROOT, 800),
        record(4, Entry, ROOT, 600),
        record(5, Exit, ROOT, 600),
        record(6, Exit, ROOT, 800),
        record(7, Entry, 5, 800),
        record(8, Exit, 5, 800),
    ];
    let (entry, out) = feed(1, &[(0, 0, records)]);
    assert_eq!(numbers(&out), [3, 4, 5, 6]);
    assert_eq!((entry.runs_seen, entry.runs_kept), (1, 1));
    assert_eq!(entry.records_left_out, 4);
}

/// What a root has left to by a jump is a part of the run when it is measured: the entry that comes
/// next, at the same place of the stack. Another root's entry there is another run.
#[test]
fn a_run_goes_on_where_its_root_jumps_to() {
    let records = vec![
        record(1, Entry, ROOT, 800),
        record(2, TailExit, ROOT, 800),
        record(3, Entry, 5, 800),
        record(4, TailExit, 5, 800),
        record(5, Entry, 6, 800),
        record(6, Exit, 6, 800),
        record(7, Entry, 5, 800),
        record(8, Exit, 5, 800),
        record(11, Entry, ROOT, 800),
        record(12, TailExit, ROOT, 800),
        record(13, Exit, 7, 960),
        record(21, Entry, ROOT, 800),
        record(22, TailExit, ROOT, 800),
        record(31, Entry, ROOT, 800),
        record(32, Exit, ROOT, 800),
    ];
    for cut in 0..=records.len() {
        let (first, second) = records.split_at(cut);
        let batches = [(0, 0, first.to_vec()), (cut as u64, 0, second.to_vec())];
        let (entry, out) = feed(1, &batches);
        assert_eq!(numbers(&out), [1, 2, 3, 4, 5, 6, 11, 12, 21, 22, 31, 32]);
        assert_eq!(
            (entry.runs_seen, entry.runs_kept, entry.runs_cut),
            (4, 4, 0)
        );
        assert_eq!(entry.records_left_out, 3);
    }
}

#[test]
fn a_run_left_without_an_exit_is_cut() {
    let records = [
        vec![
            record(1, Entry, ROOT, 800),
            record(2, Entry, 5, 400),
            record(3, Escape, ROOT, 800),
        ],
        run(11),
        vec![record(31, Entry, ROOT, 800)],
    ];
    let (entry, out) = feed(1, &[(0, 0, records.concat())]);
    assert_eq!(numbers(&out), [11, 12, 13, 14]);
    assert_eq!((entry.runs_seen, entry.runs_kept), (3, 1));
    assert_eq!((entry.runs_cut, entry.records_left_out), (2, 4));
}
