//! Stopped again and again while signals arrive and threads come and go: no signal is lost, and
//! whoever says that all threads stand still has looked again.
use super::target::{Target, compile};
use hopscope_process::{StoppedProcess, stop_all};

fn rounds() -> u32 {
    let full = std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full");
    if full { 20_000 } else { 500 }
}

#[test]
fn every_signal_arrives() {
    let mut target = Target::start(&compile("signalled"), "signals");
    assert_eq!(target.line(), "ready");
    for _ in 0..rounds() {
        stop_all(target.pid()).unwrap().resume().unwrap();
    }
    target.tell();
    assert_eq!(target.exit_code(), Some(0), "fewer were handled than sent");
}

#[test]
fn a_thread_made_meanwhile_stands_still_too() {
    let mut target = Target::start(&compile("signalled"), "threads");
    assert_eq!(target.line(), "ready");
    let pid = target.pid();
    for round in 0..rounds() {
        let stopped = stop_all(pid).unwrap();
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let tid = task.unwrap().file_name();
            let tid: i32 = tid.to_str().unwrap().parse().unwrap();
            let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"));
            let gone = stat.map_or(true, |s| s.contains(") Z ") || s.contains(") X "));
            assert!(
                gone || stopped.tids().contains(&tid),
                "round {round}: {tid} runs"
            );
        }
        stopped.resume().unwrap();
    }
    target.tell();
    assert_eq!(target.exit_code(), Some(0));
}

/// As many stops as [`rounds`], and the time between two is enough for all handlers: none lies on another's stack.
#[test]
fn handlers_of_a_timer_do_not_pile_up() {
    let mut target = Target::start(&compile("nested"), "");
    assert_eq!(target.line(), "ready");
    for round in 0..rounds() {
        let stopped = stop_all(target.pid()).and_then(StoppedProcess::resume);
        stopped.unwrap_or_else(|e| panic!("round {round}: {e}"));
        target.tell();
        assert_eq!(target.line(), "round", "gone in round {round}");
    }
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}
