//! The rings of the threads that are there have their memory before the first record.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_event::layout::ring_bytes;

const RING_RECORDS_LOG2: u32 = 14;
const THREADS: usize = 2;

/// What of this process's mapping that begins at `at` is in memory.
fn resident_bytes(at: usize) -> usize {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let start = format!("{at:x}-");
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
    let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let kb: usize = rss.trim().trim_end_matches(" kB").parse().unwrap();
    kb << 10
}

#[test]
fn rings_have_their_memory_before_the_first_record() {
    let mut target = Target::start(&compile("deep"), "64");
    assert_eq!(target.line(), "deep");
    let (plan, items) = choose(&target, &["kept_function"]);
    let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    let at = installed.pool.words().as_ptr().addr();
    assert_eq!(installed.threads.len(), THREADS);
    assert!(resident_bytes(at) >= THREADS * ring_bytes(RING_RECORDS_LOG2));
    target.tell();
    assert_eq!(target.line(), "OK");
}
