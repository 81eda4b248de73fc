//! Signals that come while a call looks for events end its sleep (EINTR), as in the kernel: a handler that ran before that would be missed
//! by a program that looks at what it has set (nginx' SIGQUIT) before it waits.
use nix::libc::{self, sigset_t};

/// Those that are told of at once: what the thread itself has done.
const OWN: [libc::c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Until its end, or a sleep with [`Held::mask`], they wait.
pub struct Held(sigset_t);

impl Held {
    pub fn new() -> Held {
        // SAFETY: zero is a value of these structures of integers, which live over the calls.
        unsafe {
            let (mut all, mut before): (sigset_t, sigset_t) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            for signal in OWN {
                libc::sigdelset(&raw mut all, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            Held(before)
        }
    }

    /// For the sleep: what the program has asked for, or as it was.
    pub fn mask(&self, asked: *const sigset_t) -> *const sigset_t {
        match asked.is_null() {
            true => &raw const self.0,
            false => asked,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it lives over the call.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}
