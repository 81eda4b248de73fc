//! Processes whose threads cannot be told apart, that use gs themselves, or that have no room:
//! refused, and unharmed.
use super::attaching::{attach, choose};
use super::target::{Target, compile, compile_with};
use hopscope_probe::live::LiveError;
use std::process::Command;

fn refused(flag: &str) -> LiveError {
    let flags = ["-nostdlib", "-static", "-fno-stack-protector", flag];
    let mut target = Target::start(&compile_with("unsuited", &flags), "");
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["one_step"]);
    let error = attach(&target, &plan, &items, 12).err().expect("no way");
    target.tell();
    assert_eq!(target.exit_code(), Some(0), "{error}");
    error
}

#[test]
fn a_gs_base_in_use_is_left_alone() {
    let error = refused("-DGS");
    assert!(matches!(error, LiveError::GsInUse { .. }), "{error}");
}

#[test]
fn a_thread_without_a_control_block_is_refused() {
    let error = refused("-O1");
    assert!(
        matches!(error, LiveError::NoThreadPointer { .. }),
        "{error}"
    );
}

/// The rings come last: what was mapped before them goes again.
#[test]
fn a_process_without_room_for_the_rings_keeps_nothing() {
    let mut target = Target::start(&compile("held"), "inside");
    assert_eq!(target.line(), "ready");
    let maps = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let pid = target.pid();
    let (plan, items) = choose(&target, &["wait_inside"]);
    let before = maps(pid);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let size = status.lines().find_map(|l| l.strip_prefix("VmSize:"));
    let kib: u64 = size
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let limit = format!("--as={}", (kib + 2048) << 10);
    let mut prlimit = Command::new("prlimit");
    let done = prlimit.args(["--pid", &pid.to_string(), &limit]).status();
    assert!(done.unwrap().success());
    // Two rings of 4 MiB.
    let error = attach(&target, &plan, &items, 18).err().expect("no room");
    assert!(error.to_string().contains("mmap"), "{error}");
    assert_eq!(maps(pid), before, "after: {error}");
    target.tell();
    assert_eq!(target.line(), "again");
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}
