//! Calls from copy to copy: the words that they go by.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_probe::live::install::Installed;
use hopscope_probe::live::remove;
use std::collections::HashSet;

const RING_RECORDS_LOG2: u32 = 12;
const STAGES: [&str; 4] = ["stages", "first", "second", "third"];

/// How many lead into a copy, and how many to the function itself.
fn words(installed: &Installed) -> (usize, usize) {
    let word = |at| {
        let mut word = [0; 8];
        installed.memory.read(at, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let fused = &installed.table.fused;
    let led = fused.iter().filter(|f| word(f.at) == f.replaced).count();
    let own = fused.iter().filter(|f| word(f.at) == f.function).count();
    (led, own)
}

fn goes_on(target: &mut Target) {
    target.tell();
    assert_eq!(target.line(), "again");
}

#[test]
fn words_are_given_back_with_the_entries() {
    let mut target = Target::start(&compile("fused"), "");
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &STAGES);
    let mut installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    goes_on(&mut target);
    assert_eq!(words(&installed), (2, 0));
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    assert_eq!(words(&installed), (0, 2));
    goes_on(&mut target);
    installed.detach().unwrap();
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}

/// Of the pair of two functions both may be left out: what comes behind an exit that is not recorded reads the clock.
#[test]
fn words_are_given_back_with_one_of_both_functions() {
    for (left_out, led) in [("first", 1), ("second", 0), ("third", 1), ("stages", 2)] {
        let mut target = Target::start(&compile("fused"), "");
        assert_eq!(target.line(), "ready");
        let (plan, items) = choose(&target, &STAGES);
        let mut installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
        let of_name = plan.functions.iter().filter(|f| f.name == left_out);
        let ids: HashSet<_> = of_name.map(|f| f.id).collect();
        installed.leave_out(&ids).unwrap();
        assert_eq!(words(&installed), (led, 2 - led), "{left_out}");
        goes_on(&mut target);
        installed.detach().unwrap();
        target.close_input();
        assert_eq!(target.exit_code(), Some(0));
    }
}
