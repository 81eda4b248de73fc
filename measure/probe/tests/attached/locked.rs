//! A target that locks all memory it maps: ours is neither filled at once nor locked.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_probe::live::remove::{self, Reaped};

fn locked(pid: i32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmLck:"));
    line.unwrap().to_owned()
}

#[test]
fn nothing_of_ours_is_locked() {
    let mut target = Target::start(&compile("threads"), "0");
    assert_eq!(target.line(), "ready");
    let before = locked(target.pid());
    assert!(!before.ends_with("\t       0 kB"), "{before}");
    let (plan, items) = choose(&target, &["kept_function"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    assert_eq!(locked(target.pid()), before);
    target.tell();
    assert_eq!(target.line(), "OK");
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let reaped = remove::reap(target.pid(), memory, table, None).unwrap();
    assert_eq!(reaped, Reaped::Unmapped);
    assert_eq!(locked(target.pid()), before);
    target.tell();
    assert_eq!(target.line(), "OK");
}
