//! Calls that may wait: tried under the lock, and where they cannot go on, slept on without it.
use super::signals::Held;
use super::{lock, memory, real};
use crate::kernel;
use crate::sleeper::{Nap, Whose, span_until, watch};
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use crate::table::{self, Entry};
use nix::libc::{self, c_int};

/// Of a call under way.
enum Next {
    Return(Result<i64, i32>),
    Pass,
    Sleep(Nap),
}

/// Its end takes the sleeper out of bed, also where the thread is cancelled.
struct Bed(u32);

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = lock::with(|state| state.wake_up(self.0));
    }
}

/// A call that sleeps is not ended by a close of its descriptor elsewhere.
struct Pin(Option<u32>);

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(index) = self.0 {
            let _ = lock::with(|state| state.unpin(index));
        }
    }
}

/// A socket call on `fd`: `None` where the kernel's socket is to answer.
pub fn call(fd: c_int, mut attempt: impl FnMut(&mut State, u32) -> Step) -> Option<isize> {
    match table::get(fd) {
        Entry::Kernel | Entry::KernelEpoll(_) | Entry::Instance(_) | Entry::Datagrams(_) => {
            return None;
        }
        Entry::Internal => return Some(memory::fail(libc::EBADF)),
        Entry::Ours(_) => {}
    }
    let whose = here();
    let mut pin = Pin(None);
    let mut until = None;
    let mut interrupted = false;
    let mut held: Option<Held> = None;
    loop {
        let next = lock::with(|state| {
            let Some(index) = pin.0.or_else(|| state.index_of(fd)) else {
                return Next::Pass;
            };
            state.calls += 1;
            let step = loop {
                let step = attempt(state, index);
                let blocks = matches!(step, Step::Block { .. });
                let sleeps = matches!(step, Step::Block { now: false, .. });
                if sleeps && held.is_none() {
                    held = Some(Held::new());
                }
                // What has come meanwhile may have it go on.
                let came = blocks && state.turn();
                state.called(index);
                let waits = state.together.has_begun() || !sleeps && state.together.holds(now);
                let looped = !waits && state.flush();
                if !blocks || !came && !looped {
                    break step;
                }
            };
            state.mind_the_leader();
            let (at_once, span, partial, otherwise, kernel) = match step {
                Step::Done(value) => return Next::Return(Ok(value)),
                Step::Fail(errno) => return Next::Return(Err(errno)),
                Step::Pass => return Next::Pass,
                Step::Block {
                    now,
                    span,
                    partial,
                    otherwise,
                    kernel,
                } => (now, span, partial, otherwise, kernel),
            };
            let result = |errno| if partial > 0 { Ok(partial) } else { Err(errno) };
            if until.is_none() {
                until = span.map(|span| now() + span);
            }
            if at_once || until.is_some_and(|until| until <= now()) {
                return Next::Return(result(otherwise));
            }
            if interrupted && (partial > 0 || span.is_some() || kernel::has_interrupting_handler())
            {
                return Next::Return(result(libc::EINTR));
            }
            if pin.0.is_none()
                && let Some(description) = state.description_mut(index)
            {
                description.pins += 1;
                pin.0 = Some(index);
            }
            match state.fall_asleep(
                vec![index],
                until,
                Whose {
                    pin: pin.0,
                    ..whose
                },
            ) {
                Ok(mut nap) => {
                    nap.fds.extend(kernel.map(|fd| watch(fd, libc::POLLIN)));
                    Next::Sleep(nap)
                }
                Err(errno) => Next::Return(Err(errno)),
            }
        });
        match next {
            Ok(Next::Return(result)) => return Some(memory::done(result)),
            Ok(Next::Pass) => return None,
            Ok(Next::Sleep(mut nap)) => {
                let _bed = Bed(nap.sleeper);
                let mask = held
                    .as_ref()
                    .map_or(std::ptr::null(), |held| held.mask(std::ptr::null()));
                // SAFETY: the descriptors are ours; the mask is null, or lives over the call.
                interrupted = unsafe { doze(&mut nap, mask) } == Err(libc::EINTR);
            }
            Err(errno) => return Some(memory::fail(errno)),
        }
    }
}

/// Behind a call that the kernel's socket is to answer: another thread's connect, bind or listen has made it the instance's meanwhile,
/// and what is the kernel's is one end of a pair.
pub fn has_become_the_instances(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Instance(_) | Entry::Datagrams(_))
}

/// # Safety
/// `mask` is null or a set of signals.
pub unsafe fn doze(nap: &mut Nap, mask: *const libc::sigset_t) -> Result<i32, i32> {
    let span = nap.until.map(span_until);
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: all live over the call; the mask by the caller's promise.
    let ready = unsafe { real::ppoll(nap.fds.as_mut_ptr(), nap.fds.len() as u64, span, mask) };
    if ready < 0 {
        // SAFETY: libc's address of this thread's errno.
        return Err(unsafe { *libc::__errno_location() });
    }
    Ok(ready)
}

/// For sleeps of the calling function, where it is inlined.
#[inline(always)]
pub fn here() -> Whose {
    let frame;
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    Whose {
        thread: lock::thread(),
        frame,
        pin: None,
    }
}

/// Takes a sleeper out of bed at the end of a scope.
pub fn bed(nap: &Nap) -> impl Drop + use<> {
    Bed(nap.sleeper)
}
