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
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Of each instance that this process has had, the last one behind the others: what they said last of their sockets stays.
static TABLES: [Table; MOST] = [const { Table::new() }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// An instance that comes back more often is not followed.
const MOST: usize = 64;

const WORDS: usize = ROW_BYTES / 4;

struct Table {
    at: AtomicPtr<AtomicU32>,
    rows: AtomicU32,
}

impl Table {
    const fn new() -> Table {
        Table {
            at: AtomicPtr::new(null_mut()),
            rows: AtomicU32::new(0),
        }
    }

    fn word(&self, row: u32, at: usize) -> Option<u32> {
        let table = self.at.load(Ordering::Acquire);
        if table.is_null() || row >= self.rows.load(Ordering::Relaxed) || at >= WORDS {
            return None;
        }
        // SAFETY: within the mapping, which stays; words are aligned, and the instance writes them whole.
        let word = unsafe { &*table.add(row as usize * WORDS + at) };
        Some(word.load(Ordering::Acquire))
    }
}

/// Children have it, too. Under the lock.
///
/// # Errors
/// errno of fstat(2) and mmap(2); EMFILE: there were too many.
pub fn map(fd: i32) -> Result<(), i32> {
    let count = COUNT.load(Ordering::Relaxed);
    let table = TABLES.get(count).ok_or(libc::EMFILE)?;
    let file = rustix::fs::fstat(kernel::borrow(fd)).map_err(Errno::raw_os_error)?;
    let rows = (file.st_size as u64 / ROW_BYTES as u64).min(ROWS_MAX.into()) as u32;
    let len = rows as usize * ROW_BYTES;
    let (access, how) = (libc::PROT_READ as usize, libc::MAP_SHARED as usize);
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let at = unsafe { kernel::call(libc::SYS_mmap, [0, len, access, how, fd as usize, 0]) }?;
    table.rows.store(rows, Ordering::Relaxed);
    table.at.store(at as *mut AtomicU32, Ordering::Release);
    COUNT.store(count + 1, Ordering::Release);
    Ok(())
}

/// Of the table that has the socket.
fn word(name: Name, at: usize) -> Option<u32> {
    let tables = TABLES.get(..COUNT.load(Ordering::Acquire))?;
    let mut tables = tables.iter().rev();
    let of = tables.find(|table| table.word(name.row, 0) == Some(name.generation));
    of?.word(name.row, at)
}

/// The instance that there is has it.
pub fn is_there(name: Name) -> bool {
    let last = COUNT.load(Ordering::Acquire).checked_sub(1);
    let last = last.and_then(|last| TABLES.get(last));
    last.is_some_and(|table| table.word(name.row, 0) == Some(name.generation))
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
