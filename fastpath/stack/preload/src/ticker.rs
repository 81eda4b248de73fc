//! Turns while no thread of the program waits: a thread that watches the port as the last resort, and is parked while others do.
use crate::kernel;
use crate::say::say;
use crate::sleeper::span_until;
use crate::stack::now;
use hopscope_stack_engine::Ns;
use nix::libc;
use nix::sys::signal::SigSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// 1: parked. A futex: a wake-up costs a system call when it is parked, and nothing otherwise.
static PARKED: AtomicU32 = AtomicU32::new(0);
/// So long its first user waits for the thread at most.
const BEGINS_WITHIN: Ns = Ns::from_ms(50);
/// 1: the thread is there. A futex.
static BEGUN: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Ticker {
    /// The thread.
    run: fn(),
    started: bool,
    runs: bool,
    /// Turns that were done by whomever, seen at the last look.
    pub seen: u64,
    /// The same of calls.
    pub calls_seen: u64,
    pub calm: u32,
    pub bell: Option<i32>,
}

/// What the thread does next.
#[derive(Debug)]
pub enum Next {
    Rest,
    Park,
    Watch(Vec<libc::pollfd>, Option<libc::timespec>),
}

impl Ticker {
    pub fn new(run: fn()) -> Ticker {
        Ticker {
            run,
            started: false,
            runs: false,
            seen: 0,
            calls_seen: 0,
            calm: 0,
            bell: None,
        }
    }

    pub fn start(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        PARKED.store(0, Ordering::Relaxed);
        // Signals are for the program's own threads.
        let before = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
        let builder = std::thread::Builder::new().name("hopscope".into());
        BEGUN.store(0, Ordering::Relaxed);
        let run = self.run;
        let begin = move || {
            BEGUN.store(1, Ordering::Relaxed);
            kernel::futex_wake(&BEGUN, 1);
            run();
        };
        match builder.stack_size(256 << 10).spawn(begin) {
            Ok(_) => {
                self.runs = true;
                // A thread that begins without memory ends the program (__cxa_thread_atexit_impl in glibc): here there is some. It takes the
                // loader's lock, which this thread has in a constructor under dlopen: not for ever.
                let end = now() + BEGINS_WITHIN;
                while BEGUN.load(Ordering::Relaxed) == 0 && now() < end {
                    let _ = kernel::futex_wait(&BEGUN, 0, Some(span_until(end)));
                }
            }
            Err(error) => say(&format!(
                "no thread for timers while the program computes: {error}"
            )),
        }
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
    }

    /// A child has no thread but its first.
    pub fn forked(&mut self) {
        *self = Ticker::new(self.run);
    }

    /// It looks soon.
    pub fn is_awake(&self) -> bool {
        self.runs && PARKED.load(Ordering::Relaxed) == 0
    }

    pub fn wake(&self) {
        if self.started && PARKED.swap(0, Ordering::Relaxed) == 1 {
            kernel::futex_wake(&PARKED, 1);
        }
    }

    /// It watches until a time that is too late.
    pub fn ring(&self) {
        if let Some(bell) = self.bell {
            let _ = kernel::write(bell, &1_u64.to_ne_bytes());
        }
    }
}

/// Until somebody wakes it, or it has no patience any more.
pub fn park(patience: fn() -> Option<libc::timespec>) {
    while PARKED.load(Ordering::Relaxed) == 1 {
        let most = patience();
        let _ = kernel::futex_wait(&PARKED, 1, most);
        if most.is_some() {
            PARKED.store(0, Ordering::Relaxed);
        }
    }
}

/// Under the lock: a wake-up after it is not missed.
pub fn will_park() {
    PARKED.store(1, Ordering::Relaxed);
}
