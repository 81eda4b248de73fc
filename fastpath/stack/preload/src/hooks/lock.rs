//! One lock over all state. It knows its holder, because a signal's handler may call what the interrupted call holds, and it can be
//! held over fork.
use super::real;
use crate::kernel;
use crate::say::say;
use crate::state::State;
use nix::libc::{self, c_void};
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

struct Lock {
    /// 0 free, 1 held, 2 held and waited for.
    word: AtomicU32,
    /// The thread pointer of its holder.
    holder: AtomicUsize,
    state: UnsafeCell<Option<State>>,
}

// SAFETY: the state is touched by the lock's holder alone; all in it may be moved between threads, or is the kernel's mappings,
// which are not bound to a thread.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock {
    word: AtomicU32::new(0),
    holder: AtomicUsize::new(0),
    state: UnsafeCell::new(None),
};

static FILLED: AtomicBool = AtomicBool::new(false);

/// The library has a configuration.
pub fn is_filled() -> bool {
    FILLED.load(Ordering::Relaxed)
}

/// A fault of this library: nothing of the stack works any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// A page that a child has empty (MADV_WIPEONFORK, Linux 4.14): one that libc did not fork (clone(2) by number, _Fork(3)) is found by that.
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
static IN_COPY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `in_copy` is called before the first use in a child that no hook has heard of.
pub fn mark(in_copy: extern "C" fn()) {
    const PAGE: usize = 4096;
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, which is kept.
    let page = unsafe { libc::mmap(null_mut(), PAGE, access, kind, -1, 0) };
    // SAFETY: of that mapping.
    if page == libc::MAP_FAILED || unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0
    {
        return;
    }
    IN_COPY.store(in_copy as *mut c_void, Ordering::Relaxed);
    MARK.store(page.cast(), Ordering::Relaxed);
    is_known();
}

/// This process is no copy from now on.
fn is_known() {
    // SAFETY: null, or a page that is kept.
    if let Some(mark) = unsafe { MARK.load(Ordering::Relaxed).as_ref() } {
        mark.store(1, Ordering::Relaxed);
    }
}

fn is_copy() -> bool {
    // SAFETY: null, or a page that is kept.
    let mark = unsafe { MARK.load(Ordering::Relaxed).as_ref() };
    mark.is_some_and(|mark| mark.load(Ordering::Relaxed) == 0)
}

/// As behind fork(3), but nobody held the lock meanwhile: where another thread had it, the state may be half changed.
#[cold]
fn in_copy() {
    is_known();
    if LOCK.word.load(Ordering::Relaxed) != 0 {
        BROKEN.store(true, Ordering::Relaxed);
        say(
            "a child that was not made by fork(3), amid a call of another thread: its calls on sockets of the stack fail",
        );
        return;
    }
    // SAFETY: a function's address was stored there before the mark.
    let call = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn()>(IN_COPY.load(Ordering::Relaxed))
    };
    call();
}

/// Of the calling thread: its thread pointer.
pub fn thread() -> usize {
    let pointer;
    // SAFETY: the ABI has the thread's own address at its thread pointer.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}

pub fn acquire() {
    let word = &LOCK.word;
    if word
        .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        while word.swap(2, Ordering::Acquire) != 0 {
            let _ = kernel::futex_wait(word, 2, None);
        }
    }
    LOCK.holder.store(thread(), Ordering::Relaxed);
}

pub fn release() {
    LOCK.holder.store(0, Ordering::Relaxed);
    if LOCK.word.swap(0, Ordering::Release) == 2 {
        kernel::futex_wake(&LOCK.word, 1);
    }
}

pub fn is_mine() -> bool {
    LOCK.holder.load(Ordering::Relaxed) == thread()
}

/// A thread is not cancelled while it has the lock.
fn cancellable(on: bool) -> bool {
    let mut before = 0;
    let state = if on { 0 } else { 1 };
    // SAFETY: PTHREAD_CANCEL_ENABLE and _DISABLE; `before` lives over the call.
    unsafe { real::pthread_setcancelstate(state, &mut before) };
    before == 0
}

/// # Errors
/// EDEADLK: a signal's handler interrupted a call of the library in this thread. EIO: the library is at fault.
pub fn with<R>(call: impl FnOnce(&mut State) -> R) -> Result<R, i32> {
    if is_mine() {
        return Err(libc::EDEADLK);
    }
    if is_copy() {
        in_copy();
    }
    if BROKEN.load(Ordering::Relaxed) {
        return Err(libc::EIO);
    }
    let was_cancellable = cancellable(false);
    acquire();
    // SAFETY: the lock is held, and was not by this thread.
    let state = unsafe { &mut *LOCK.state.get() };
    let done = match state {
        Some(state) => catch_unwind(AssertUnwindSafe(|| call(state))).map_err(|_| {
            BROKEN.store(true, Ordering::Relaxed);
            say("a fault of this library (above): calls on sockets of the stack fail from now on");
            libc::EIO
        }),
        None => Err(libc::EIO),
    };
    release();
    if was_cancellable {
        cancellable(true);
    }
    done
}

/// For whoever acquired it.
pub fn held(call: impl FnOnce(&mut State)) {
    assert!(is_mine(), "the lock is held");
    // SAFETY: the lock is held by this thread, which is in no other call of the library: `with` asks that.
    if let Some(state) = unsafe { &mut *LOCK.state.get() } {
        call(state);
    }
}

/// Before any other thread can have it.
pub fn fill(state: State) {
    acquire();
    // SAFETY: the lock is held.
    unsafe { *LOCK.state.get() = Some(state) };
    release();
    FILLED.store(true, Ordering::Relaxed);
}

/// In the only thread of a child whose parent's held the lock: for the call, and then it is free.
pub fn in_child(call: impl FnOnce(&mut State)) {
    is_known();
    LOCK.holder.store(thread(), Ordering::Relaxed);
    // SAFETY: the lock is held by this thread, the only one.
    if let Some(state) = unsafe { &mut *LOCK.state.get() } {
        call(state);
    }
    LOCK.holder.store(0, Ordering::Relaxed);
    LOCK.word.store(0, Ordering::Release);
}
