//! Somebody who sleeps.
use crate::stack::now;
use hopscope_stack_engine::Ns;
use nix::libc;

/// Somebody in ppoll.
#[derive(Debug)]
pub struct Sleeper {
    pub bell: i32,
    pub rung: bool,
    pub on: Vec<u32>,
    pub whose: Whose,
}

/// Where a call sleeps: what a signal's handler that leaves it by longjmp(3) leaves behind is found by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    /// Its thread pointer.
    pub thread: usize,
    /// An address in its frame: what is called from there has lower ones.
    pub frame: usize,
    /// What it has pinned beside what it sleeps on.
    pub pin: Option<u32>,
}

/// What a sleeper goes to bed with.
#[derive(Debug)]
pub struct Nap {
    pub sleeper: u32,
    /// Doorbell, and for the leader the port: beside the caller's own descriptors.
    pub fds: Vec<libc::pollfd>,
    /// The engine has something to do then.
    pub until: Option<Ns>,
}

pub fn watch(fd: i32, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// From now on.
pub fn span_until(at: Ns) -> libc::timespec {
    let left = at.since(now()).0;
    libc::timespec {
        tv_sec: (left / 1_000_000_000) as i64,
        tv_nsec: (left % 1_000_000_000) as i64,
    }
}
