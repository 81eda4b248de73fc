//! Whose a descriptor is, by one load.
use hopscope_stack_instance::programs::table::{GENERATIONS, ROWS_MAX};
use hopscope_stack_instance::programs::wire::Name;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 1024;
const PAGES: usize = 1024;

/// Beyond so many the kernel gives none (fs.nr_open).
pub const DESCRIPTORS_MAX: usize = PAGE * PAGES;

type Page = [AtomicU64; PAGE];

static TABLE: [OnceLock<Box<Page>>; PAGES] = [const { OnceLock::new() }; PAGES];

/// What a descriptor is to the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Kernel,
    /// The library's own: the program has not opened it.
    Internal,
    /// An epoll descriptor without a socket of the stack.
    KernelEpoll(u32),
    /// Of a description.
    Ours(u32),
    /// One end of a pair whose other end the instance has.
    Instance(Name),
    /// The same, of UDP: messages with headers.
    Datagrams(Name),
}

const INTERNAL: u64 = u32::MAX as u64;
const EPOLL: u64 = 1 << 31;
/// Below are the row, and above its generation, of 31 bits.
const INSTANCE: u64 = 1 << 63;
/// Of UDP: rows are fewer.
const DATAGRAMS: u64 = 1 << 31;
const _: () = assert!((ROWS_MAX as u64) < DATAGRAMS);

fn word(fd: i32) -> Option<&'static AtomicU64> {
    let fd = usize::try_from(fd).ok()?;
    TABLE.get(fd / PAGE)?.get().map(|page| &page[fd % PAGE])
}

#[inline]
pub fn get(fd: i32) -> Entry {
    match word(fd).map_or(0, |word| word.load(Ordering::Relaxed)) {
        0 => Entry::Kernel,
        INTERNAL => Entry::Internal,
        word if word & INSTANCE != 0 => {
            let name = Name {
                row: (word & !DATAGRAMS) as u32,
                generation: (word >> 32) as u32 & GENERATIONS,
            };
            match word & DATAGRAMS {
                0 => Entry::Instance(name),
                _ => Entry::Datagrams(name),
            }
        }
        word if word & EPOLL != 0 => Entry::KernelEpoll((word & !EPOLL) as u32 - 1),
        word => Entry::Ours(word as u32 - 1),
    }
}

/// False: no such descriptor can be.
pub fn set(fd: i32, entry: Entry) -> bool {
    let Some(page) = usize::try_from(fd).ok().and_then(|fd| TABLE.get(fd / PAGE)) else {
        return false;
    };
    let page = page.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE]));
    let word = match entry {
        Entry::Kernel => 0,
        Entry::Internal => INTERNAL,
        Entry::KernelEpoll(index) => EPOLL | u64::from(index + 1),
        Entry::Ours(index) => u64::from(index + 1),
        Entry::Instance(name) => INSTANCE | bits(name),
        Entry::Datagrams(name) => INSTANCE | DATAGRAMS | bits(name),
    };
    page[fd as usize % PAGE].store(word, Ordering::Relaxed);
    true
}

fn bits(name: Name) -> u64 {
    u64::from(name.generation & GENERATIONS) << 32 | u64::from(name.row)
}

/// Descriptors from `first` to `last` that are not the kernel's.
pub fn known(first: usize, last: usize) -> impl Iterator<Item = i32> {
    let last = last.min(DESCRIPTORS_MAX - 1);
    let pages = first / PAGE..=last / PAGE;
    pages
        .filter(|page| TABLE.get(*page).is_some_and(|page| page.get().is_some()))
        .flat_map(|page| page * PAGE..(page + 1) * PAGE)
        .filter(move |fd| (first..=last).contains(fd))
        .map(|fd| fd as i32)
        .filter(|fd| get(*fd) != Entry::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_there_and_back() {
        let name = Name {
            row: 32_767,
            generation: GENERATIONS,
        };
        for entry in [
            Entry::Internal,
            Entry::KernelEpoll(0),
            Entry::Ours(7),
            Entry::Instance(name),
            Entry::Datagrams(name),
            Entry::Kernel,
        ] {
            assert!(set(5_000, entry));
            assert_eq!(get(5_000), entry);
        }
        assert!(!set(-1, Entry::Internal));
    }
}
