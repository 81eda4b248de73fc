//! What a policy waits for is shown in groups, and nothing stays hidden.
use super::*;
use crate::Ns;
use crate::end::Back;

/// Entries that the driver finds, after each of `count` packets with others at hand, and at the batch's end.
fn seen(call: &str, count: u16) -> (Vec<u16>, u16, u64) {
    let memory = memory();
    let (mut driver, device) = ends(&memory, 64, features(true));
    let kind = call.parse().expect("a policy");
    let mut back = Back::new(Box::new(device), kind).expect("fair").grouped();
    for n in 0..64 {
        let added = driver.add_avail(&memory, &[buffer(n, 64, false)]);
        added.expect("room");
    }
    let mut found = 0;
    let mut look = || {
        while driver.next_used(&memory).expect("fair").is_some() {
            found += 1;
        }
        found
    };
    let mut calls = 0;
    let mut after = Vec::new();
    for _ in 0..count {
        let chain = back.pop(&memory).expect("fair").expect("an entry");
        let call = back.done(&memory, chain.id, 0, true, Ns(1)).expect("fair");
        calls += u64::from(call);
        after.push(look());
    }
    calls += u64::from(back.pause(&memory, Ns(2)).expect("fair"));
    (after, look(), calls)
}

#[test]
fn what_is_waited_for_is_shown_in_groups_and_all_of_it() {
    let (after, end, calls) = seen("batch", 40);
    let groups: Vec<u16> = (1..=40).map(|n| n / 16 * 16).collect();
    assert_eq!((after, end, calls), (groups, 40, 1));
}

#[test]
fn a_policy_that_decides_on_each_sees_each() {
    let each: Vec<u16> = (1..=20).collect();
    assert_eq!(seen("plain", 20), (each.clone(), 20, 20));
    assert_eq!(seen("event-idx", 20).0, each);
    // A limit is kept to the entry: the call comes with what is announced.
    let (after, end, calls) = seen("tam:3", 20);
    let limits: Vec<u16> = (1..=20).map(|n| n / 3 * 3).collect();
    assert_eq!((after, end, calls), (limits, 20, 7));
}
