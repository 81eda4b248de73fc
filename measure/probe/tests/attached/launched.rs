//! A command that is held before its first instruction.
use hopscope_process::launch;

fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.chars().next().unwrap()
}

/// It uses no processor time meanwhile, however long the attach takes.
#[test]
fn a_held_command_sleeps_and_then_runs() {
    let command = ["sh", "-c", "exit 7"].map(str::to_owned);
    let held = launch(&command, &[]).unwrap();
    while state(held.pid()) != 'S' {
        std::thread::yield_now();
    }
    let mut child = held.start().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}
