//! A function that a signal interrupted inside the bytes to be replaced, far up a deep stack.
use super::attaching::{attach, choose};
use super::target::{Target, compile};

fn start(kib: &str) -> Target {
    let mut target = Target::start(&compile("deep"), kib);
    assert_eq!(target.line(), "deep");
    target
}

fn ends_well(mut target: Target) {
    target.tell();
    assert_eq!(target.line(), "OK");
    assert_eq!(target.exit_code(), Some(0));
}

#[test]
fn what_a_deep_handler_interrupted_is_not_replaced() {
    let target = start("3000");
    let (plan, items) = choose(&target, &["interrupted_function", "kept_function"]);
    let installed = attach(&target, &plan, &items, 12).unwrap();
    let [(id, reason)] = &installed.refused[..] else {
        panic!("{:?}", installed.refused);
    };
    assert_eq!(plan.functions[id.0 as usize].name, "interrupted_function");
    assert!(reason.contains("a thread was executing"), "{reason}");
    assert!(installed.notes.is_empty(), "{:?}", installed.notes);
    ends_well(target);
}

#[test]
fn a_stack_that_is_too_deep_to_be_searched_is_told() {
    let target = start("30000");
    let (plan, items) = choose(&target, &["kept_function"]);
    let installed = attach(&target, &plan, &items, 12).unwrap();
    let [note] = &installed.notes[..] else {
        panic!("{:?}", installed.notes);
    };
    assert!(note.contains("1 stacks were too deep"), "{note}");
    ends_well(target);
}
