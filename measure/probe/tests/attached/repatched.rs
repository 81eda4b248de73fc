//! One hot function is patched and put back again and again while a thread on another processor
//! runs it: 100,000 times in a soak.
use super::attaching::{attach, choose, reap};
use super::target::{Target, compile};
use hopscope_event::record::{Record, RecordKind};
use hopscope_event::ring::Visit;
use hopscope_probe::live::remove;

/// More than a thread that does nothing else makes between two stops.
const RING_RECORDS_LOG2: u32 = 18;

#[test]
fn a_running_function_is_patched_and_put_back_again_and_again() {
    let full = std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full");
    let cycles = if full { 100_000 } else { 300 };
    let mut target = Target::start(&compile("repatched"), "");
    assert_eq!(target.line(), "ready");
    let pid = target.pid();
    let (plan, items) = choose(&target, &["hot_function"]);
    let (mut recorded, mut cut, mut late, mut stays) = (0, 0, 0, 0);
    for cycle in 0..cycles {
        let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
        let (written, _) = remove::restore(
            pid,
            &installed.memory,
            &installed.table,
            remove::Origin::Ourselves,
        )
        .unwrap();
        if installed.refused.is_empty() {
            assert_eq!(
                (written.sites.len(), written.left_out.len()),
                (1, 0),
                "{cycle}"
            );
        } else {
            late += 1;
        }
        let mut records = Vec::new();
        for (_, context) in &installed.threads {
            let pool = installed.pool();
            let ring = pool.ring(*context as usize).unwrap();
            let mut position = Default::default();
            ring.drain(&mut position, Visit::Final, usize::MAX, &mut records);
        }
        let notes = reap(&installed);
        stays += usize::from(!notes.is_empty());
        cut += usize::from(cut_calls(&records, cycle));
        recorded += records.len();
    }
    target.tell();
    let said = target.line();
    println!(
        "{cycles} cycles: {recorded} records, {cut} times in the middle of a call, \
         {late} times not patched, {stays} times the copy stayed; {said}"
    );
    assert!(said.ends_with(", 0 wrong"), "{said}");
    assert_eq!(target.exit_code(), Some(0));
    assert!(recorded > cycles && late < cycles / 2, "hardly measured");
}

/// Every call that begins ends, but for the one in which the measurement began or ended.
fn cut_calls(records: &[Record], cycle: usize) -> bool {
    let ends_first = records.first().and_then(|first| first.kind()) == Some(RecordKind::Exit);
    for (n, record) in records.iter().enumerate() {
        let expected = match (n % 2 == 0) ^ ends_first {
            true => RecordKind::Entry,
            false => RecordKind::Exit,
        };
        assert_eq!(record.kind(), Some(expected), "cycle {cycle}, record {n}");
    }
    let in_order = records.windows(2).all(|w| w[0].tsc < w[1].tsc);
    assert!(in_order, "cycle {cycle}");
    ends_first || records.len() % 2 == 1
}
