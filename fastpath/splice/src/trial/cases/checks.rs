//! How a case says what it found.
use crate::trial::Outcome;
use crate::trial::pair::Pair;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

pub(super) type Tried = Result<Outcome, Outcome>;

pub(super) fn flat(tried: Tried) -> Outcome {
    tried.unwrap_or_else(|outcome| outcome)
}

pub(super) fn failed(error: impl std::fmt::Display) -> Outcome {
    Outcome::Unknown(error.to_string())
}

/// A call that waited in vain is what these faults look like.
pub(super) fn hung(what: &str) -> impl FnOnce(io::Error) -> Outcome {
    move |error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Outcome::Broken(format!("{what}: nothing comes"))
        }
        ErrorKind::UnexpectedEof => Outcome::Broken(format!("{what}: it ends too early")),
        _ => Outcome::Broken(format!("{what}: {error}")),
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
    match read == sent {
        true => Ok(Outcome::Ok(format!("{} bytes, all right", sent.len()))),
        false => Err(Outcome::Broken(format!(
            "{} bytes came of {}, or others",
            read.len(),
            sent.len()
        ))),
    }
}

pub(super) fn wait_readable(pair: &Pair) -> Result<(), Outcome> {
    let mut fds = [PollFd::new(pair.server.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(400u16)) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Outcome::Broken(
            "poll(2) never says that there is something".into(),
        )),
        Err(errno) => Err(failed(errno)),
    }
}
