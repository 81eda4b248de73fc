//! Filters that kill: what they forbid is refused, and the target lives.
use super::target::{Target, compile};
use hopscope_process::{AttachError, stop_one};
use nix::libc;
use std::path::PathBuf;
use std::sync::OnceLock;

fn filtered(by: &str) -> Target {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut target = Target::start(PROGRAM.get_or_init(|| compile("filtered")), by);
    assert_eq!(target.line(), "ready");
    assert_eq!(target.line(), "filtered");
    target
}

fn ends_well(mut target: Target) {
    target.close_input();
    assert_eq!(target.line(), "OK");
    assert_eq!(target.exit_code(), Some(0));
}

/// Filters are shown to CAP_SYS_ADMIN only; to others every filtered process is refused.
fn unreadable(refused: &AttachError) -> bool {
    !nix::unistd::geteuid().is_root() && matches!(refused, AttachError::SeccompUnreadable { .. })
}

fn refuses(by: &str, call: i64) {
    let target = filtered(by);
    let mut stopped = stop_one(target.pid()).unwrap();
    let refused = stopped.remote_call(libc::SYS_getpid, [0; 6]).unwrap_err();
    assert!(
        matches!(refused, AttachError::SeccompForbids { nr, .. } if nr == call)
            || unreadable(&refused),
        "{refused}"
    );
    drop(stopped);
    ends_well(target);
}

#[test]
fn a_forbidden_number_is_not_tried() {
    refuses("memfd_create", libc::SYS_memfd_create);
}

#[test]
fn a_forbidden_argument_is_not_tried() {
    refuses("mmap_exec", libc::SYS_mmap);
}

#[test]
fn what_could_not_be_undone_is_not_begun() {
    refuses("munmap", libc::SYS_munmap);
}

#[test]
fn a_filter_that_does_not_concern_us_is_no_obstacle() {
    let target = filtered("close_high");
    let mut stopped = stop_one(target.pid()).unwrap();
    if let Err(refused) = stopped.remote_call(libc::SYS_getpid, [0; 6]) {
        assert!(unreadable(&refused), "{refused}");
        return;
    }
    let closed = stopped.remote_call(libc::SYS_close, [999, 0, 0, 0, 0, 0]);
    assert_eq!(closed.unwrap(), -i64::from(libc::EBADF));
    let refused = stopped.remote_call(libc::SYS_close, [1000, 0, 0, 0, 0, 0]);
    assert!(matches!(
        refused,
        Err(AttachError::SeccompForbids {
            nr: libc::SYS_close,
            ..
        })
    ));
    stopped.resume().unwrap();
    ends_well(target);
}
