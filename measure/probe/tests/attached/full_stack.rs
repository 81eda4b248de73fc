//! A stack of which every page is in use, and the thread at its end: it has to grow, as for the thread itself.
use super::attaching::{attach, choose};
use super::target::{Target, compile};

#[test]
fn a_stack_in_use_to_its_end_grows() {
    let mut target = Target::start(&compile("full_stack"), "");
    assert_eq!(target.line(), "deep");
    let (plan, items) = choose(&target, &["measured_function"]);
    let installed = attach(&target, &plan, &items, 12).expect("attached");
    assert!(installed.refused.is_empty(), "{:?}", installed.refused);
    target.tell();
    assert_eq!(target.line(), "OK");
    assert_eq!(target.exit_code(), Some(0));
}
