//! Threads that do not leave a copy, or a probe, for as long as they like: nothing is taken away from
//! under them, and what must stay needs neither gs nor a ring.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_probe::live::clear_leftovers;
use hopscope_probe::live::remove::{self, Arena, Extent, Reaped};
use hopscope_probe::live::table::{Area, PatchTable};
use hopscope_process::memory::TargetMemory;

const RING_RECORDS_LOG2: u32 = 18;

/// The last field is the instruction pointer; a thread that runs has none.
fn sleeps_in(pid: i32, table: &PatchTable) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
    let rip = call.trim_end().rsplit_once(" 0x");
    let rip = rip.and_then(|(_, rip)| u64::from_str_radix(rip, 16).ok());
    rip.is_some_and(|rip| table.segments.iter().any(|s| s.contains(rip)))
}

#[test]
fn a_thread_that_sleeps_in_a_copy_goes_on_in_it() {
    let mut target = Target::start(&compile("held"), "inside");
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["wait_inside"]);
    let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    // Out of the original, and into the copy.
    target.tell();
    assert_eq!(target.line(), "again");
    let (memory, table) = (&installed.memory, &installed.table);
    while !sleeps_in(target.pid(), table) {
        std::thread::yield_now();
    }
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let kept = remove::reap(target.pid(), memory, table, None).unwrap();
    assert!(matches!(kept, Reaped::Kept(_)), "{kept:?}");
    let retired = remove::reap(target.pid(), memory, table, Some(Arena::Mapped)).unwrap();
    assert!(matches!(retired, Reaped::Retired(_)), "{retired:?}");
    for _ in 0..3 {
        target.tell();
        assert_eq!(target.line(), "again", "after {retired:?}");
    }
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}

/// What each probe has: cmp rcx, gs:[0].
const OF_A_PROBE: [u8; 9] = [0x65, 0x48, 0x3b, 0x0c, 0x25, 0, 0, 0, 0];

/// Probes that are not jumped over.
fn armed(memory: &TargetMemory, table: &PatchTable) -> usize {
    let of_one = |segment: &Area| {
        let mut code = vec![0; segment.len as usize];
        memory.read(segment.at, &mut code).unwrap();
        let probes = code.windows(18).filter(|w| w[9..] == OF_A_PROBE);
        probes.filter(|w| w[0] != 0xe9).count()
    };
    table.segments.iter().map(of_one).sum()
}

#[test]
fn a_thread_that_is_held_in_a_probe_finds_the_rest_of_it() {
    let full = std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full");
    let rounds = if full { 1000 } else { 40 };
    let mut target = Target::start(&compile("held"), "anywhere");
    assert_eq!(target.line(), "ready");
    let pid = target.pid();
    let (plan, items) = choose(&target, &["one_step"]);
    let (mut kept, mut retired) = (0, 0);
    for round in 0..rounds {
        let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
        target.tell();
        assert_eq!(target.line(), "held");
        let (memory, table) = (&installed.memory, &installed.table);
        remove::restore(pid, memory, table, remove::Origin::Ourselves).unwrap();
        assert!(armed(memory, table) > 1);
        let reaped = remove::reap(pid, memory, table, Some(Arena::Mapped)).unwrap();
        // A thread that runs from probe to probe would be in one each time that it is stopped.
        assert!(reaped == Reaped::Unmapped || armed(memory, table) == 0);
        kept += usize::from(matches!(reaped, Reaped::Kept(_)));
        retired += usize::from(matches!(reaped, Reaped::Retired(_)));
        target.tell();
        assert_eq!(target.line(), "let go", "round {round}, {reaped:?}");
        // Once it has gone on, nothing has to stay; where it runs then is its own affair.
        match reaped {
            Reaped::Kept(_) => {
                while remove::reap(pid, memory, table, None).unwrap() != Reaped::Unmapped {}
            }
            Reaped::Retired(_) => {
                while clear_leftovers::take_away(pid, Extent::Limited)
                    .unwrap()
                    .recordings
                    == 0
                {}
            }
            Reaped::Unmapped => {}
        }
    }
    println!("{rounds} rounds: {kept} times held in a probe, {retired} times elsewhere in a copy");
    assert!(kept > 0, "never held in a probe");
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}
