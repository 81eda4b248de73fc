//! Whose a descriptor is, by one load.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 1024;
const PAGES: usize = 1024;

/// Beyond so many the kernel gives none (fs.nr_open).
pub const DESCRIPTORS_MAX: usize = PAGE * PAGES;

type Page = [AtomicU32; PAGE];

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
}

const INTERNAL: u32 = u32::MAX;
const EPOLL: u32 = 1 << 31;

fn word(fd: i32) -> Option<&'static AtomicU32> {
    let fd = usize::try_from(fd).ok()?;
    TABLE.get(fd / PAGE)?.get().map(|page| &page[fd % PAGE])
}

#[inline]
pub fn get(fd: i32) -> Entry {
    match word(fd).map_or(0, |word| word.load(Ordering::Relaxed)) {
        0 => Entry::Kernel,
        INTERNAL => Entry::Internal,
        word if word & EPOLL != 0 => Entry::KernelEpoll((word & !EPOLL) - 1),
        word => Entry::Ours(word - 1),
    }
}

/// False: no such descriptor can be.
pub fn set(fd: i32, entry: Entry) -> bool {
    let Some(page) = usize::try_from(fd).ok().and_then(|fd| TABLE.get(fd / PAGE)) else {
        return false;
    };
    let page = page.get_or_init(|| Box::new([const { AtomicU32::new(0) }; PAGE]));
    let word = match entry {
        Entry::Kernel => 0,
        Entry::Internal => INTERNAL,
        Entry::KernelEpoll(index) => EPOLL | (index + 1),
        Entry::Ours(index) => index + 1,
    };
    page[fd as usize % PAGE].store(word, Ordering::Relaxed);
    true
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
