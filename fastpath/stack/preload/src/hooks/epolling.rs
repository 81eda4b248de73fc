//! epoll: the kernel's set, and the stack's beside it.
use super::both::is_ours;
use super::limit::{Limit, end};
use super::memory::{fail, is_nowhere};
use super::naming::fresh;
use super::signals::Held;
use super::wait::{bed, doze, here};
use super::{lock, real};
use crate::kernel;
use crate::sleeper::{Nap, watch};
use crate::table::{self, Entry};
use nix::libc::{self, c_int, sigset_t, timespec};

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: as libc's.
    made(unsafe { real::epoll_create(size) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: as libc's.
    made(unsafe { real::epoll_create1(flags) })
}

fn made(fd: c_int) -> c_int {
    fresh(fd);
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
pub(super) unsafe extern "C-unwind" fn epoll_ctl(
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

/// Those that the kernel has now.
///
/// # Safety
/// `events` has room for `most`.
unsafe fn of_kernel(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: usize,
) -> Result<usize, i32> {
    if most == 0 {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    let found = unsafe { real::epoll_wait(epoll, events, most as c_int, 0) };
    // SAFETY: libc's address of this thread's errno.
    usize::try_from(found).map_err(|_| unsafe { *libc::__errno_location() })
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
    let whose = here();
    let most = most as usize;
    let held = (!matches!(limit, Limit::Now)).then(Held::new);
    let mask = held.as_ref().map_or(mask, |held| held.mask(mask));
    let mut found: Vec<libc::epoll_event> = Vec::new();
    loop {
        found.clear();
        let share = lock::with(|state| {
            let index = state.index_of(epoll).ok_or(libc::EBADF)?;
            state.claim();
            state.turn();
            state.flush();
            Ok::<usize, i32>(state.epoll_share_of_kernel(index, most))
        })??;
        // SAFETY: `most` events fit, by the caller's promise.
        let mut theirs = unsafe { of_kernel(epoll, events, share) };
        lock::with(|state| {
            if let Some(index) = state.index_of(epoll) {
                let left = most - theirs.unwrap_or(0);
                let mut push = |events, data| found.push(libc::epoll_event { events, u64: data });
                state.epoll_harvest(index, left, &mut push);
                state.together.begin_round(found.len());
            }
            state.mind_the_leader();
        })?;
        // What the stack had in its list is not ready any more: the kernel's may have all the room.
        if share < most && found.is_empty() && theirs == Ok(0) {
            // SAFETY: as before.
            theirs = unsafe { of_kernel(epoll, events, most) };
        }
        let theirs = match theirs {
            Err(error) if found.is_empty() => return Err(error),
            theirs => theirs.unwrap_or(0),
        };
        // SAFETY: together they are `most` at most.
        unsafe {
            events
                .add(theirs)
                .copy_from_nonoverlapping(found.as_ptr(), found.len())
        };
        if theirs + found.len() > 0 {
            return Ok((theirs + found.len()) as i32);
        }
        if limit.is_over() {
            return Ok(0);
        }
        let nap = lock::with(|state| {
            let index = state.index_of(epoll).ok_or(libc::EBADF)?;
            if state.epoll_may_be_ready(index) {
                return Ok::<Option<Nap>, i32>(None);
            }
            let mut nap = state.fall_asleep(vec![index], limit.at(), whose)?;
            nap.fds.push(watch(epoll, libc::POLLIN));
            let parts = state.epoll_kernel_parts(index);
            nap.fds
                .extend(parts.iter().map(|fd| watch(*fd, libc::POLLIN)));
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
pub(super) unsafe extern "C-unwind" fn epoll_wait(
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
pub(super) unsafe extern "C-unwind" fn epoll_pwait(
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
pub(super) unsafe extern "C-unwind" fn epoll_pwait2(
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
