//! How a case reports its result.
use crate::trial::TrialResult;
use crate::trial::pair::Pair;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

pub(super) type Tried = Result<TrialResult, TrialResult>;

pub(super) fn flat(tried: Tried) -> TrialResult {
    tried.unwrap_or_else(|outcome| outcome)
}

pub(super) fn failed(error: impl std::fmt::Display) -> TrialResult {
    TrialResult::Unknown(error.to_string())
}

/// A call that waited in vain is what these faults look like.
pub(super) fn hung(what: &str) -> impl FnOnce(io::Error) -> TrialResult {
    move |error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            TrialResult::Broken(format!("{what}: nothing comes"))
        }
        ErrorKind::UnexpectedEof => TrialResult::Broken(format!("{what}: it ends too early")),
        _ => TrialResult::Broken(format!("{what}: {error}")),
    }
}

/// No two places alike for a long while, so that nothing can be missing or twice.
pub(super) fn bytes(length: usize) -> Vec<u8> {
    let word = |n: usize| (n as u32).wrapping_mul(0x9e37_79b9).to_le_bytes();
    (0..length.div_ceil(4))
        .flat_map(word)
        .take(length)
        .collect()
}

pub(super) fn expect(read: &[u8], sent: &[u8]) -> Tried {
    if read == sent {
        Ok(TrialResult::Ok(format!("{} bytes, all right", sent.len())))
    } else {
        Err(TrialResult::Broken(format!(
            "{} bytes came of {}, or others",
            read.len(),
            sent.len()
        )))
    }
}

pub(super) fn wait_readable(pair: &Pair) -> Result<(), TrialResult> {
    let mut fds = [PollFd::new(pair.server.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(400u16)) {
        Ok(1) => Ok(()),
        Ok(_) => Err(TrialResult::Broken(
            "poll(2) never says that there is something".into(),
        )),
        Err(errno) => Err(failed(errno)),
    }
}
