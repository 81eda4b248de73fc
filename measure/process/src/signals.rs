//! Signals that whoever started this program wants ignored: `nohup`, SIGINT of what a shell script runs in the
//! background. A command that is started in turn begins with the same.
use super::procfs::Status;
use nix::libc::{SIGHUP, SIGINT, SIGQUIT};

/// What comes from a terminal.
const OF_A_TERMINAL: [i32; 3] = [SIGHUP, SIGINT, SIGQUIT];

/// Those that this process ignores now, before it takes any over.
pub fn ignored() -> Vec<i32> {
    let own = std::process::id() as i32;
    let mask = Status::read(own, own).ok();
    let mask = mask.as_ref().and_then(|status| status.field("SigIgn"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let is_ignored = |signal: &i32| mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1);
    OF_A_TERMINAL.into_iter().filter(is_ignored).collect()
}
