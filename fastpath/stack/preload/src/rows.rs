//! The instance's table of all programs' sockets, read where it lies.
#![allow(unsafe_code)]
use crate::kernel;
use hopscope_stack_instance::programs::table::{
    DATAGRAMS_AT, Datagrams, Phase, ROW_BYTES, ROWS_MAX, Row, STATE_AT, State,
};
use hopscope_stack_instance::programs::wire::Name;
use nix::libc;
use rustix::io::Errno;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static TABLE: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
/// Its length, which is told before where it is.
static ROWS: AtomicU32 = AtomicU32::new(0);

const WORDS: usize = ROW_BYTES / 4;

/// Once in a process; children have it, too.
///
/// # Errors
/// errno of fstat(2) and mmap(2); EINVAL: a table of no rows.
pub fn map(fd: i32) -> Result<(), i32> {
    let file = rustix::fs::fstat(kernel::borrow(fd)).map_err(Errno::raw_os_error)?;
    let rows = (file.st_size as u64 / ROW_BYTES as u64).min(ROWS_MAX.into()) as u32;
    let len = rows as usize * ROW_BYTES;
    let (access, how) = (libc::PROT_READ as usize, libc::MAP_SHARED as usize);
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let at = unsafe { kernel::call(libc::SYS_mmap, [0, len, access, how, fd as usize, 0]) }?;
    ROWS.store(rows, Ordering::Relaxed);
    TABLE.store(at as *mut AtomicU32, Ordering::Release);
    Ok(())
}

fn word(name: Name, at: usize) -> Option<u32> {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() || name.row >= ROWS.load(Ordering::Relaxed) || at >= WORDS {
        return None;
    }
    // SAFETY: within the mapping, which stays; words are aligned, and the instance writes them whole.
    let word = unsafe { &*table.add(name.row as usize * WORDS + at) };
    Some(word.load(Ordering::Acquire))
}

/// What the socket is now; Free: its row is another's by now.
pub fn state(name: Name) -> State {
    let state = word(name, STATE_AT / 4);
    match word(name, 0) {
        Some(generation) if generation == name.generation => State::from_word(state.unwrap_or(0)),
        _ => State::of(Phase::Free),
    }
}

/// `None`: of TCP, or its row is another's by now.
pub fn datagrams(name: Name) -> Option<Datagrams> {
    let word = self::word(name, DATAGRAMS_AT / 4);
    let is = self::word(name, 0) == Some(name.generation);
    word.filter(|_| is).and_then(Datagrams::from_word)
}

pub fn row(name: Name) -> Option<Row> {
    let mut words = [0; WORDS];
    for (at, to) in words.iter_mut().enumerate() {
        *to = word(name, at)?;
    }
    // The row may have become another socket's on the way: its generation is written first.
    (word(name, 0) == Some(name.generation)).then(|| Row::from_words(words))
}
