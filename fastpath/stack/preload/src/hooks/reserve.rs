//! Memory for what the library needs where the program's has run out (RLIMIT_AS; malloc(3) returns NULL): without it a call that the kernel
//! would do, or fail, ends the program. Reserved at the start, and untouched until then.
//!
//! What is in it is for calls under way, and for sockets that there are. New ones are refused ([`is_scarce`]).
use crate::say::once;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What is given out, and its alignment: a cache line.
const GRANULE: usize = 64;
const GRANULES: usize = 1 << 15;
const BYTES: usize = GRANULE * GRANULES;
/// An engine's chunk of buffers: it goes on without, so that the rest is kept for what cannot.
const CHUNK: usize = 4096;
/// Another thread has the lock for some microseconds; in a child, one that was not forked with it has it for ever.
const TRIES: u32 = 1 << 20;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[repr(C, align(64))]
struct Reserve {
    memory: UnsafeCell<[u8; BYTES]>,
    /// A bit for each granule that is given out. Under the lock.
    given: UnsafeCell<[u64; GRANULES / 64]>,
    lock: AtomicBool,
    /// Granules that are given out.
    used: AtomicUsize,
}

// SAFETY: what is in cells is read and written under the lock, but for memory that is given out, which is its owner's.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve {
    memory: UnsafeCell::new([0; BYTES]),
    given: UnsafeCell::new([0; GRANULES / 64]),
    lock: AtomicBool::new(false),
    used: AtomicUsize::new(0),
};

static SAID: AtomicBool = AtomicBool::new(false);

/// Nothing is begun that holds memory for long, which is said once.
pub fn is_scarce() -> bool {
    let is = RESERVE.used.load(Ordering::Relaxed) > GRANULES / 4;
    if is {
        once(&SAID, || {
            "the program has no memory left: its new sockets are refused (ENOBUFS)".into()
        });
    }
    is
}

impl Reserve {
    fn begin(&self) -> *mut u8 {
        self.memory.get().cast()
    }

    fn has(&self, at: *const u8) -> bool {
        (at as usize).wrapping_sub(self.begin() as usize) < BYTES
    }

    /// `None`: there is no lock to be had.
    fn locked<T>(&self, work: impl FnOnce(&mut [u64; GRANULES / 64]) -> T) -> Option<T> {
        let free = |_: &u32| {
            let taken = self.lock.swap(true, Ordering::Acquire);
            if taken {
                std::hint::spin_loop();
            }
            !taken
        };
        (0..TRIES).find(free)?;
        // SAFETY: the lock is this thread's, and `work` neither allocates nor leaves early.
        let done = work(unsafe { &mut *self.given.get() });
        self.lock.store(false, Ordering::Release);
        Some(done)
    }

    fn take(&self, layout: Layout) -> *mut u8 {
        let count = layout.size().div_ceil(GRANULE).max(1);
        let used = self.used.load(Ordering::Relaxed);
        let is_kept_back = layout.size() == CHUNK && used > GRANULES / 2;
        if layout.align() > GRANULE || count > GRANULES || is_kept_back {
            return null_mut();
        }
        let place = self.locked(|given| take_run(given, count)).flatten();
        let Some(place) = place else {
            return null_mut();
        };
        self.used.fetch_add(count, Ordering::Relaxed);
        // SAFETY: within the memory.
        unsafe { self.begin().add(place * GRANULE) }
    }

    fn give_back(&self, at: *mut u8, layout: Layout) {
        let count = layout.size().div_ceil(GRANULE).max(1);
        let place = (at as usize - self.begin() as usize) / GRANULE;
        // Without the lock it stays given.
        if self
            .locked(|given| mark(given, place..place + count, false))
            .is_some()
        {
            self.used.fetch_sub(count, Ordering::Relaxed);
        }
    }
}

/// The first free run of so many granules, which is given from now on.
fn take_run(given: &mut [u64], count: usize) -> Option<usize> {
    let (mut first, mut place) = (0, 0);
    while place < given.len() * 64 {
        let word = given[place / 64] >> (place % 64);
        if word & 1 == 1 {
            place += word.trailing_ones() as usize;
            first = place;
            continue;
        }
        place += (word.trailing_zeros() as usize).min(64 - place % 64);
        if place - first >= count {
            mark(given, first..first + count, true);
            return Some(first);
        }
    }
    None
}

fn mark(given: &mut [u64], places: std::ops::Range<usize>, are: bool) {
    for place in places {
        let bit = 1 << (place % 64);
        match are {
            true => given[place / 64] |= bit,
            false => given[place / 64] &= !bit,
        }
    }
}

// SAFETY: memory of the system's allocator, or of the reserve, where no one else has it; each goes back where it is from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { System.alloc(layout) };
        match at.is_null() {
            false => at,
            true => RESERVE.take(layout),
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        match RESERVE.has(at) {
            // SAFETY: the caller's promise.
            false => unsafe { System.dealloc(at, layout) },
            true => RESERVE.give_back(at, layout),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { System.alloc_zeroed(layout) };
        if !at.is_null() {
            return at;
        }
        let at = RESERVE.take(layout);
        if !at.is_null() {
            // SAFETY: it is as long, and this call's.
            unsafe { at.write_bytes(0, layout.size()) };
        }
        at
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        if !RESERVE.has(at) {
            // SAFETY: the caller's promise.
            let moved = unsafe { System.realloc(at, layout, len) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise; the alignment is a layout's.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(len, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(at, layout.size().min(len));
                self.dealloc(at, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_apart_and_come_back() {
        let mut given = [0_u64; 4];
        let all: Vec<_> = [3, 64, 1, 100]
            .map(|count| take_run(&mut given, count))
            .into();
        assert_eq!(all, [Some(0), Some(3), Some(67), Some(68)]);
        assert_eq!(take_run(&mut given, 89), None);
        assert_eq!(take_run(&mut given, 88), Some(168));
        assert_eq!(take_run(&mut given, 1), None);
        mark(&mut given, 3..67, false);
        assert_eq!(take_run(&mut given, 65), None);
        assert_eq!(
            [take_run(&mut given, 60), take_run(&mut given, 4)],
            [Some(3), Some(63)]
        );
        mark(&mut given, 0..256, false);
        assert_eq!((given, take_run(&mut given, 256)), ([0; 4], Some(0)));
    }

    #[test]
    fn what_is_taken_is_the_takers_alone() {
        let layout = |len| Layout::from_size_align(len, 8).unwrap();
        let mut held: Vec<(*mut u8, usize)> = Vec::new();
        for n in 0..20_000_usize {
            let len = 1 + n * 37 % 500;
            let at = RESERVE.take(layout(len));
            if at.is_null() || n % 3 == 0 {
                for (at, len) in held.drain(..held.len() / 2) {
                    // SAFETY: taken before, and that long.
                    let bytes = unsafe { std::slice::from_raw_parts(at, len) };
                    assert!(bytes.iter().all(|byte| *byte == len as u8));
                    RESERVE.give_back(at, layout(len));
                }
            }
            if !at.is_null() {
                assert!(RESERVE.has(at) && (at as usize).is_multiple_of(8));
                // SAFETY: just taken.
                unsafe { at.write_bytes(len as u8, len) };
                held.push((at, len));
            }
        }
        for (at, len) in held {
            RESERVE.give_back(at, layout(len));
        }
        assert!(RESERVE.used.load(Ordering::Relaxed) == 0 && !is_scarce());
        assert!(RESERVE.take(layout(BYTES + 1)).is_null());
    }
}
