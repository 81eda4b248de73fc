//! Threads that have no ring: their calls work as ever, and what is not recorded is counted.
use super::attaching::{attach, choose, reap};
use super::target::{Target, compile};
use hopscope_event::record::Record;
use hopscope_event::ring::Visit;
use hopscope_probe::live::remove;

const RING_RECORDS_LOG2: u32 = 14;

/// Records, probes of threads without a ring, probes with a gs base that is not ours. Whoever shares
/// the rings has put `forged` into the queue of free ones.
fn counted(argument: &str, forged: &[u32]) -> (usize, u64, u64) {
    let mut target = Target::start(&compile("ringless"), argument);
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    assert_eq!(installed.refused, []);
    forged.iter().for_each(|n| installed.pool().offer(*n));
    target.tell();
    assert_eq!(target.line(), "0 wrong");
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let pool = installed.pool();
    let mut records: Vec<Record> = Vec::new();
    for ring in (0..pool.contexts()).filter_map(|n| pool.ring(n)) {
        ring.drain(
            &mut Default::default(),
            Visit::Final,
            usize::MAX,
            &mut records,
        );
    }
    let notes = reap(&installed);
    target.tell();
    assert_eq!(target.exit_code(), Some(0), "{notes:?}");
    (records.len(), pool.calls_unmeasured(), pool.calls_foreign())
}

#[test]
fn a_gs_base_that_is_not_ours_is_not_read_through() {
    assert_eq!(counted("foreign", &[]), (0, 0, 1000));
}

/// Two rings: the main thread has one, the first of three threads takes the other.
#[test]
fn calls_of_threads_that_find_no_ring_are_counted() {
    assert_eq!(counted("threads", &[]), (2000, 2000, 0));
}

/// Forked children share the queue, with fewer rights maybe: they must not choose where their parent
/// writes.
#[test]
fn a_free_ring_that_does_not_exist_is_not_taken() {
    assert_eq!(counted("threads", &[2, 1 << 20, u32::MAX]), (2000, 2000, 0));
}
