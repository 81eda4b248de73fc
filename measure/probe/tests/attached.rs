//! What a process can tell of being stopped and used for system calls: nothing.
use nix::libc;

#[path = "attached/attaching.rs"]
mod attaching;
#[path = "attached/coroutine.rs"]
mod coroutine;
#[path = "attached/deep.rs"]
mod deep;
#[path = "attached/forked.rs"]
mod forked;
#[path = "attached/full_stack.rs"]
mod full_stack;
#[path = "attached/fused.rs"]
mod fused;
#[path = "attached/held.rs"]
mod held;
#[path = "attached/instructions.rs"]
mod instructions;
#[path = "attached/interrupted.rs"]
mod interrupted;
#[path = "attached/large.rs"]
mod large;
#[path = "attached/launched.rs"]
mod launched;
#[path = "attached/locked.rs"]
mod locked;
#[path = "attached/populated.rs"]
mod populated;
#[path = "attached/repatched.rs"]
mod repatched;
#[path = "attached/restartable.rs"]
mod restartable;
#[path = "attached/ringless.rs"]
mod ringless;
#[path = "attached/seccomp.rs"]
mod seccomp;
#[path = "attached/signalled.rs"]
mod signalled;
#[path = "attached/silent.rs"]
mod silent;
#[path = "attached/stale.rs"]
mod stale;
#[path = "attached/stopped.rs"]
mod stopped;
#[path = "attached/stops.rs"]
mod stops;
#[path = "attached/target.rs"]
mod target;
#[path = "attached/unloaded.rs"]
mod unloaded;
#[path = "attached/unsuited.rs"]
mod unsuited;

/// The cheapest remote system call with an answer that is known.
fn getpid(stopped: &mut hopscope_process::StoppedProcess) {
    let pid = stopped.remote_call(libc::SYS_getpid, [0; 6]).unwrap();
    assert_eq!(pid, i64::from(stopped.pid()));
}
