//! epoll: the kernel's set, and the stack's beside it.
use super::both::is_ours;
use super::limit::{Limit, end};
use super::memory::{fail, is_nowhere};
use super::signals::Held;
use super::wait::{bed, doze};
use super::{lock, real};
use crate::kernel;
use crate::sleeper::{Nap, watch};
use crate::table::{self, Entry};
use nix::libc::{self, c_int, sigset_t, timespec};

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: as libc's.
    made(unsafe { real::epoll_create(size) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: as libc's.
    made(unsafe { real::epoll_create1(flags) })
}

fn made(fd: c_int) -> c_int {
    if fd < 0 || !lock::is_filled() {
        return fd;
    }
    match lock::with(|state| state.epoll_opened(fd)) {
        Ok(true) => fd,
        Ok(false) => {
            kernel::close(fd);
            fail(libc::EMFILE) as c_int
        }
        Err(error) => {
            kernel::close(fd);
            fail(error) as c_int
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    if is_ours(fd) || table::get(fd) == Entry::Internal {
        if is_nowhere(event) && operation != libc::EPOLL_CTL_DEL {
            return fail(libc::EFAULT) as c_int;
        }
        let (mut events, mut data) = (0, 0);
        if operation != libc::EPOLL_CTL_DEL {
            // SAFETY: as libc's.
            (events, data) = unsafe { ((*event).events, (*event).u64) };
        }
        let done = lock::with(|state| {
            let done = state.epoll_control(epoll, operation, fd, events, data);
            state.mind_the_leader();
            done
        });
        match done {
            Ok(Ok(true)) => return 0,
            // The kernel's set, and the kernel's descriptor.
            Ok(Ok(false)) => {}
            Ok(Err(error)) | Err(error) => return fail(error) as c_int,
        }
    }
    // SAFETY: as libc's.
    unsafe { real::epoll_ctl(epoll, operation, fd, event) }
}

/// # Safety
/// As libc's.
unsafe fn epoll_both(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: Limit,
    mask: *const sigset_t,
) -> Result<i32, i32> {
    if most <= 0 {
        return Err(libc::EINVAL);
    }
    if is_nowhere(events) {
        return Err(libc::EFAULT);
    }
    let most = most as usize;
    let held = (!matches!(limit, Limit::Now)).then(Held::new);
    let mask = held.as_ref().map_or(mask, |held| held.mask(mask));
    let mut found: Vec<libc::epoll_event> = Vec::new();
    loop {
        found.clear();
        let of_kernel = lock::with(|state| {
            // The stack's, up to a share that leaves room for the kernel's.
            let index = state.index_of(epoll).ok_or(libc::EBADF)?;
            state.claim();
            state.turn();
            state.flush();
            let share = state.epoll_share(index, most);
            let mut push = |events, data| found.push(libc::epoll_event { events, u64: data });
            state.epoll_harvest(index, share, &mut push);
            state.together.begin_round(found.len());
            state.mind_the_leader();
            Ok::<usize, i32>(most - found.len())
        })??;
        if of_kernel > 0 {
            // SAFETY: `most` events fit, by the caller's promise.
            let theirs = unsafe { real::epoll_wait(epoll, events, of_kernel as c_int, 0) };
            if theirs < 0 {
                // SAFETY: libc's address of this thread's errno.
                let errno = unsafe { *libc::__errno_location() };
                if found.is_empty() {
                    return Err(errno);
                }
            }
            let theirs = theirs.max(0) as usize;
            // What was harvested is in the list again: twice would report it twice.
            let left = most - theirs;
            if left > 0 && found.is_empty() {
                lock::with(|state| {
                    if let Some(index) = state.index_of(epoll) {
                        let mut push =
                            |events, data| found.push(libc::epoll_event { events, u64: data });
                        state.epoll_harvest(index, left, &mut push);
                    }
                })?;
            }
            // SAFETY: together they are `most` at most.
            unsafe {
                events
                    .add(theirs)
                    .copy_from_nonoverlapping(found.as_ptr(), found.len())
            };
            let all = theirs + found.len();
            if all > 0 {
                return Ok(all as i32);
            }
        } else {
            // SAFETY: they are `most`.
            unsafe { events.copy_from_nonoverlapping(found.as_ptr(), found.len()) };
            return Ok(found.len() as i32);
        }
        if limit.is_over() {
            return Ok(0);
        }
        let nap = lock::with(|state| {
            let index = state.index_of(epoll).ok_or(libc::EBADF)?;
            if state.epoll_may_be_ready(index) {
                return Ok::<Option<Nap>, i32>(None);
            }
            let mut nap = state.fall_asleep(vec![index], limit.at())?;
            nap.fds.push(watch(epoll, libc::POLLIN));
            let listeners = state.epoll_kernel_listeners(index);
            nap.fds
                .extend(listeners.iter().map(|fd| watch(*fd, libc::POLLIN)));
            Ok(Some(nap))
        })??;
        let Some(mut nap) = nap else {
            continue;
        };
        let bed = bed(&nap);
        // SAFETY: the descriptors are ours; the mask by the caller's promise.
        unsafe { doze(&mut nap, mask) }?;
        drop(bed);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    if !is_ours(epoll) {
        // SAFETY: as libc's.
        return unsafe { real::epoll_wait(epoll, events, most, timeout) };
    }
    // SAFETY: as libc's.
    end(unsafe { epoll_both(epoll, events, most, Limit::ms(timeout), std::ptr::null()) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_pwait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    if !is_ours(epoll) {
        // SAFETY: as libc's.
        return unsafe { real::epoll_pwait(epoll, events, most, timeout, mask) };
    }
    // SAFETY: as libc's.
    end(unsafe { epoll_both(epoll, events, most, Limit::ms(timeout), mask) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn epoll_pwait2(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    span: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    if !is_ours(epoll) {
        // SAFETY: as libc's.
        return unsafe { real::epoll_pwait2(epoll, events, most, span, mask) };
    }
    // SAFETY: as libc's.
    end(unsafe { Limit::span(span).and_then(|limit| epoll_both(epoll, events, most, limit, mask)) })
}
