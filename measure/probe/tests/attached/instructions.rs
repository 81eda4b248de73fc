//! What a measured call costs more than a bare one, in instructions that its thread executes:
//! counted step by step, so the same on every machine and however busy it is.
use super::attaching::{attach_with, choose};
use super::target::{Target, compile};
use hopscope_event::layout::{Context, OFF};
use hopscope_event::record::{Record, RecordKind};
use hopscope_event::ring::{Position, Visit};
use hopscope_probe::live::install::{InstallOptions, Stores};
use hopscope_probe::plan::Item;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::mem::offset_of;

const CALLS: usize = 3;
/// From a stop in `read` to the second function it is some hundred.
const STEPS_AT_MOST: usize = 100_000;

const RECORD: InstallOptions = InstallOptions {
    contexts: 2,
    ring_records_log2: 12,
    // What any machine can execute: `mov` and `shr` where `rorx` is one instruction.
    bmi2: false,
    stores: Stores::Records,
    switchable: false,
    ordered_stamps: false,
    follow_forks: false,
    fused_stamps: true,
};

/// A thread that executes one instruction at a time.
struct Stepped(Pid);

impl Stepped {
    fn seize(tid: i32) -> Stepped {
        let tid = Pid::from_raw(tid);
        ptrace::seize(tid, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(tid).unwrap();
        let stop = waitpid(tid, Some(WaitPidFlag::__WALL)).unwrap();
        assert!(matches!(stop, WaitStatus::PtraceEvent(..)), "{stop:?}");
        Stepped(tid)
    }

    fn step(&self) {
        ptrace::step(self.0, None).unwrap();
        let stop = waitpid(self.0, Some(WaitPidFlag::__WALL)).unwrap();
        assert_eq!(stop, WaitStatus::Stopped(self.0, Signal::SIGTRAP));
    }

    /// Goes on until this instruction is the next; how many were executed.
    fn reach(&self, at: u64) -> usize {
        self.reach_looking(at, &mut || ())
    }

    fn reach_looking(&self, at: u64, look: &mut impl FnMut()) -> usize {
        for steps in 0..STEPS_AT_MOST {
            if ptrace::getregs(self.0).unwrap().rip == at {
                return steps;
            }
            self.step();
            look();
        }
        panic!("{at:#x} is not reached");
    }

    /// Instructions of the next call of this function, its `ret` included.
    fn next_call(&self, entry: u64) -> usize {
        self.reach(entry);
        let stack = ptrace::getregs(self.0).unwrap().rsp;
        let back = ptrace::read(self.0, stack as ptrace::AddressType).unwrap();
        self.reach(back as u64)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Counted {
    /// Of `nothing` and of `increment`.
    instructions: [[usize; 2]; CALLS],
    records: usize,
    /// Calls of threads that found no ring, and of those with a gs base that is not ours.
    unmeasured: u64,
    foreign: u64,
}

fn counted(argument: &str, options: Option<InstallOptions>) -> Counted {
    counted_with(argument, options, true)
}

/// With the probes of the main thread on or off.
fn counted_with(argument: &str, options: Option<InstallOptions>, on: bool) -> Counted {
    let mut target = Target::start(&compile("instructions"), argument);
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["nothing", "increment"]);
    let entries: Vec<u64> = items
        .iter()
        .map(Item::selected)
        .map(|s| s.pieces[0].svma.wrapping_add(s.bias))
        .collect();
    let installed = options.map(|o| attach_with(&target, &plan, &items, &o).unwrap());
    if let (Some(installed), false) = (&installed, on) {
        assert_eq!(installed.not_switched, 0);
        let context = u64::from(installed.threads[0].1) * size_of::<Context>() as u64;
        let at = installed.table.contexts.at + context + offset_of!(Context, switch) as u64;
        let word = OFF.to_le_bytes();
        installed.memory.write(at, &word).unwrap();
    }
    target.tell();
    let thread = Stepped::seize(target.line().parse().unwrap());
    let instructions = [(); CALLS].map(|()| {
        target.tell();
        [entries[0], entries[1]].map(|entry| thread.next_call(entry))
    });
    ptrace::detach(thread.0, None).unwrap();
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
    let mut records: Vec<Record> = Vec::new();
    let (mut unmeasured, mut foreign) = (0, 0);
    if let Some(installed) = &installed {
        assert_eq!(installed.refused, []);
        let pool = installed.pool();
        for ring in (0..pool.contexts()).filter_map(|n| pool.ring(n)) {
            let mut position = Default::default();
            ring.drain(&mut position, Visit::Final, usize::MAX, &mut records);
        }
        (unmeasured, foreign) = (pool.calls_unmeasured(), pool.calls_foreign());
    }
    Counted {
        instructions,
        records: records.len(),
        unmeasured,
        foreign,
    }
}

/// With these costs at the two entries and at an exit.
fn each_call(entry: [usize; 2], exit: usize) -> [usize; 2] {
    const JUMP: usize = 1;
    [2 + JUMP + entry[0] + exit, 3 + JUMP + entry[1] + exit]
}

#[test]
fn bare_calls() {
    let bare = counted("present", None);
    assert_eq!(bare.instructions, [[2, 3]; CALLS]);
}

#[test]
fn record_pairs() {
    let done = counted("present", Some(RECORD));
    assert_eq!(done.instructions, [each_call([32, 24], 32); CALLS]);
    assert_eq!(done.records, 4 * CALLS);
}

/// The test of whether probes are on: with the flags and without.
#[test]
fn pairs_that_can_be_switched_off() {
    let options = InstallOptions {
        switchable: true,
        ..RECORD
    };
    let done = counted("present", Some(options));
    assert_eq!(done.instructions, [each_call([32 + 4, 24 + 2], 32); CALLS]);
    assert_eq!(done.records, 4 * CALLS);
}

/// No exit probe: the original body returns.
#[test]
fn pairs_that_are_switched_off() {
    let options = InstallOptions {
        switchable: true,
        ..RECORD
    };
    let done = counted_with("present", Some(options), false);
    // Saved, tested, counted and put back. The jump replaced all of the first function; of the second
    // its first instruction, and a jump leads back to the others.
    let entry = [6 + 4 + 1 + 6, 2 + 1 + 1];
    assert_eq!(done.instructions, [each_call(entry, 0); CALLS]);
    assert_eq!(done.records, 0);
}

#[test]
fn record_pairs_with_bmi2() {
    let options = InstallOptions {
        bmi2: true,
        ..RECORD
    };
    if !hopscope_probe::live::install::host_has_bmi2() {
        println!("SKIP: no BMI2 here");
        return;
    }
    let done = counted("present", Some(options));
    assert_eq!(done.instructions, [each_call([31, 23], 31); CALLS]);
    assert_eq!(done.records, 4 * CALLS);
}

/// One `lfence` in each probe.
#[test]
fn record_pairs_with_ordered_stamps() {
    let options = InstallOptions {
        ordered_stamps: true,
        ..RECORD
    };
    let done = counted("present", Some(options));
    assert_eq!(done.instructions, [each_call([33, 25], 33); CALLS]);
    assert_eq!(done.records, 4 * CALLS);
}

#[test]
fn empty_pairs() {
    let options = InstallOptions {
        stores: Stores::Nothing,
        ..RECORD
    };
    let done = counted("present", Some(options));
    assert_eq!(done.instructions, [each_call([12, 4], 12); CALLS]);
    assert_eq!(done.records, 0);
}

#[test]
fn stamps_only() {
    let options = InstallOptions {
        stores: Stores::Stamps,
        ..RECORD
    };
    let done = counted("present", Some(options));
    // rdtsc between the pushes and pops of what it overwrites and is in use.
    assert_eq!(done.instructions, [each_call([5, 3], 5); CALLS]);
    assert_eq!(done.records, 0);
}

/// A ring of 16 records, three times round: whatever instruction is the next, what its slots say is stored is the record of
/// that slot and lap.
#[test]
fn no_instruction_leaves_a_record_in_part() {
    const ROUNDS: u64 = 12;
    let options = InstallOptions {
        ring_records_log2: 4,
        ..RECORD
    };
    let mut target = Target::start(&compile("instructions"), "present");
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["nothing", "increment"]);
    let entries: Vec<u64> = items
        .iter()
        .map(Item::selected)
        .map(|s| s.pieces[0].svma.wrapping_add(s.bias))
        .collect();
    let installed = attach_with(&target, &plan, &items, &options).unwrap();
    target.tell();
    let thread = Stepped::seize(target.line().parse().unwrap());
    let pool = installed.pool();
    let ring = pool.ring(installed.threads[0].1 as usize).unwrap();
    let (mut read, mut all): (Position, Vec<Record>) = Default::default();
    let mut look = || {
        let known = all.len();
        let seen = ring.drain(&mut read, Visit::Live, usize::MAX, &mut all);
        assert_eq!((seen.lost, seen.torn, seen.damaged), (0, 0, false));
        assert!(all.len() - known <= 1, "one more at most");
        let [.., before, new] = &all[..] else { return };
        assert!(new.tsc > before.tsc, "{before:?}, then {new:?}");
        let kinds = [before.kind().unwrap(), new.kind().unwrap()];
        match kinds {
            [RecordKind::Entry, RecordKind::Exit] => {
                assert_eq!(before.function(), new.function());
                assert_eq!(before.rsp_lo32(), new.rsp_lo32());
            }
            other => assert_eq!(other, [RecordKind::Exit, RecordKind::Entry]),
        }
    };
    // Each call of the target is made again from its entry.
    for _ in 0..CALLS {
        target.tell();
        for entry in &entries {
            thread.reach(*entry);
            let registers = ptrace::getregs(thread.0).unwrap();
            let stack = registers.rsp as ptrace::AddressType;
            let back = ptrace::read(thread.0, stack).unwrap() as u64;
            for round in 0..ROUNDS / CALLS as u64 {
                if round > 0 {
                    ptrace::setregs(thread.0, registers).unwrap();
                }
                thread.reach_looking(back, &mut look);
            }
        }
    }
    ptrace::detach(thread.0, None).unwrap();
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
    assert_eq!(all.len() as u64, 4 * ROUNDS);
}

/// Only the first probe of a thread claims a ring.
#[test]
fn the_first_call_of_a_new_thread() {
    let done = counted("new", Some(RECORD));
    let later = each_call([32, 24], 32);
    let first = [later[0] + 40, later[1]];
    assert_eq!(done.instructions, [first, later, later]);
    assert_eq!(done.records, 4 * CALLS);
}

#[test]
fn calls_of_threads_that_find_no_ring() {
    let options = InstallOptions {
        contexts: 1,
        ..RECORD
    };
    let done = counted("new", Some(options));
    assert_eq!(done.instructions, [each_call([40, 32], 39); CALLS]);
    assert_eq!((done.records, done.unmeasured), (0, 2 * CALLS as u64));
}

#[test]
fn calls_with_a_gs_base_that_is_not_ours() {
    let done = counted("foreign", Some(RECORD));
    assert_eq!(done.instructions, [each_call([36, 28], 33); CALLS]);
    assert_eq!((done.records, done.foreign), (0, 2 * CALLS as u64));
}
