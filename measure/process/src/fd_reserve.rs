//! File descriptors that restoring a target takes are held back from the beginning: a recorder that
//! ran out of them could not take away what it has mapped.
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// A detach has some six open at once: the process list, a memory map, a memfd that is looked at
/// and what the kernel says of it, a page map, the record of writes.
const HELD: usize = 16;
/// What a target takes for as long as it is measured: its memory, the arena.
const A_TARGET: usize = 2;

static RESERVE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Holds back what a detach takes, and what `targets` take that are yet to be attached to; raises the
/// limit of this process as far as it may.
///
/// # Errors
/// When there are too few. What could be had is held back.
pub fn reserve(targets: usize) -> io::Result<()> {
    raise_limit();
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = HELD + targets * A_TARGET;
    while reserve.len() < wanted {
        let another = match reserve.first() {
            Some(fd) => fd.try_clone()?,
            None => File::open("/dev/null")?.into(),
        };
        reserve.push(another);
    }
    Ok(())
}

/// How many files this process may have open.
pub fn limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft)
}

/// Up to the hard limit.
pub fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(e) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        log::info!("the limit of open files stays at {soft}: {e}");
    }
}

/// What is held back is free while this lives.
pub struct Lent(());

pub fn lend() -> Lent {
    RESERVE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    Lent(())
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Err(e) = reserve(0) {
            log::info!("fewer descriptors are held back than a detach may take: {e}");
        }
    }
}
