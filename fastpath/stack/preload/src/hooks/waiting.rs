//! poll, select and epoll over descriptors of both.
use super::memory::{fail, get, is_nowhere, put};
use super::wait::{bed, doze};
use super::{lock, real};
use crate::kernel;
use crate::sleeper::{Nap, watch};
use crate::stack::now;
use crate::state::State;
use crate::table::{self, Entry};
use hopscope_stack_engine::Ns;
use nix::libc::{self, c_int, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

/// When a wait ends at the latest.
#[derive(Clone, Copy)]
enum Limit {
    Now,
    At(Ns),
    Never,
}

impl Limit {
    fn ms(timeout: c_int) -> Limit {
        match timeout {
            0 => Limit::Now,
            1.. => Limit::At(now() + Ns::from_ms(timeout as u64)),
            _ => Limit::Never,
        }
    }

    /// # Safety
    /// `span` is null or points to a time.
    unsafe fn span(span: *const timespec) -> Result<Limit, i32> {
        if span.is_null() {
            return Ok(Limit::Never);
        }
        // SAFETY: the caller's promise.
        let span = unsafe { get(span) };
        if span.tv_sec < 0 || !(0..1_000_000_000).contains(&span.tv_nsec) {
            return Err(libc::EINVAL);
        }
        let span = (span.tv_sec as u64).saturating_mul(1_000_000_000) + span.tv_nsec as u64;
        Ok(match span {
            0 => Limit::Now,
            _ => Limit::At(Ns(now().0.saturating_add(span))),
        })
    }

    fn at(self) -> Option<Ns> {
        match self {
            Limit::At(at) => Some(at),
            Limit::Now | Limit::Never => None,
        }
    }

    fn is_over(self) -> bool {
        match self {
            Limit::Now => true,
            Limit::At(at) => at <= now(),
            Limit::Never => false,
        }
    }
}

fn is_ours(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Ours(_))
}

/// What of `fds` is the stack's and ready, in their revents; descriptions of all that are.
fn look(state: &mut State, fds: &mut [pollfd]) -> (i32, Vec<u32>) {
    let (mut ready, mut ours) = (0, Vec::new());
    for poll in fds {
        if !is_ours(poll.fd) {
            continue;
        }
        let Some(index) = state.index_of(poll.fd) else {
            continue;
        };
        ours.push(index);
        let always = (libc::POLLERR | libc::POLLHUP) as u32;
        let level = state.poll_level(index) & (poll.events as u16 as u32 | always);
        poll.revents = level as i16;
        ready += i32::from(level != 0);
    }
    (ready, ours)
}

/// The kernel's of `fds`, with others left out (-1).
fn kernels(fds: &[pollfd], epolls: &mut Vec<(usize, c_int)>) -> Vec<pollfd> {
    let mut all: Vec<pollfd> = fds.to_vec();
    for (at, poll) in all.iter_mut().enumerate() {
        if is_ours(poll.fd) {
            // An epoll descriptor is also the kernel's.
            if matches!(poll_kind(poll.fd), Some(true)) {
                epolls.push((at, poll.fd));
            } else {
                poll.fd = -1;
            }
        }
        poll.revents = 0;
    }
    all
}

fn poll_kind(fd: c_int) -> Option<bool> {
    lock::with(|state| state.index_of(fd).map(|index| state.is_epoll(index))).ok()?
}

/// # Safety
/// `mask` is null or a set of signals.
unsafe fn poll_both(fds: &mut [pollfd], limit: Limit, mask: *const sigset_t) -> Result<i32, i32> {
    let mut epolls = Vec::new();
    let kernel_fds = kernels(fds, &mut epolls);
    loop {
        let (mut ready, ours) = lock::with(|state| {
            state.claim();
            let mut found = look(state, fds);
            if found.0 == 0 && state.turn() {
                found = look(state, fds);
            }
            state.flush();
            state.mind_the_leader();
            found
        })?;
        // The kernel's, now; and signals that wait for this mask.
        let mut theirs = kernel_fds.clone();
        if ready > 0 || matches!(limit, Limit::Now) {
            if kernel::poll_now(&mut theirs)? > 0 {
                ready += merge(fds, &theirs);
            }
            return Ok(ready);
        }
        let nap = lock::with(|state| {
            // What happened between.
            if look(state, fds).0 > 0 {
                return Ok(None);
            }
            state.fall_asleep(ours, limit.at()).map(Some)
        })??;
        let Some(mut nap) = nap else {
            continue;
        };
        let mut wait = Nap {
            sleeper: nap.sleeper,
            fds: theirs,
            until: nap.until,
        };
        wait.fds.append(&mut nap.fds);
        let waits = lock::with(|state| state.kernel_listeners(fds))?;
        wait.fds
            .extend(waits.iter().map(|fd| watch(*fd, libc::POLLIN)));
        let bed = bed(&nap);
        // SAFETY: the descriptors are ours; the mask by the caller's promise.
        unsafe { doze(&mut wait, mask) }?;
        drop(bed);
        let found = merge(fds, &wait.fds[..fds.len()]);
        if found > 0 || limit.is_over() {
            let ours = lock::with(|state| {
                state.turn();
                state.flush();
                look(state, fds).0
            })?;
            let found = merge(fds, &wait.fds[..fds.len()]);
            let both = fds.iter().filter(|poll| poll.revents != 0).count() as i32;
            return Ok(both.max(found).max(ours));
        }
    }
}

/// The kernel's answers into the program's array.
fn merge(fds: &mut [pollfd], theirs: &[pollfd]) -> i32 {
    let mut found = 0;
    for (to, from) in fds.iter_mut().zip(theirs) {
        if from.fd >= 0 {
            to.revents = from.revents | if is_ours(to.fd) { to.revents } else { 0 };
            found += i32::from(from.revents != 0);
        }
    }
    found
}

/// `None`: all are the kernel's.
///
/// # Safety
/// As libc's.
unsafe fn poll_ours(
    fds: *mut pollfd,
    count: nfds_t,
    limit: impl FnOnce() -> Result<Limit, i32>,
    mask: *const sigset_t,
) -> Option<c_int> {
    if count == 0 || count > table::DESCRIPTORS_MAX as nfds_t || is_nowhere(fds) {
        return None;
    }
    let one = |at: usize| fds.wrapping_add(at);
    // SAFETY: as libc's.
    if !(0..count as usize).any(|at| is_ours(unsafe { get(one(at)) }.fd)) {
        return None;
    }
    let mut all: Vec<pollfd> = (0..count as usize)
        // SAFETY: as libc's.
        .map(|at| unsafe { get(one(at)) })
        .map(|poll| watch(poll.fd, poll.events))
        .collect();
    // SAFETY: the mask by the caller's promise.
    let done = limit().and_then(|limit| unsafe { poll_both(&mut all, limit, mask) });
    if done.is_ok() {
        for (at, poll) in all.iter().enumerate() {
            // SAFETY: as libc's.
            unsafe { put(one(at), *poll) };
        }
    }
    Some(end(done))
}

fn end(result: Result<i32, i32>) -> c_int {
    result.unwrap_or_else(|errno| fail(errno) as c_int)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let limit = || Ok(Limit::ms(timeout));
    // SAFETY: as libc's.
    let ours = unsafe { poll_ours(fds, count, limit, std::ptr::null()) };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::poll(fds, count, timeout) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: as libc's.
    unsafe { poll(fds, count, timeout) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    _room: usize,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { poll(fds, count, timeout) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    span: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as libc's.
    let limit = || unsafe { Limit::span(span) };
    // SAFETY: as libc's.
    let ours = unsafe { poll_ours(fds, count, limit, mask) };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::ppoll(fds, count, span, mask) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    span: *const timespec,
    mask: *const sigset_t,
    _room: usize,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { ppoll(fds, count, span, mask) }
}

/// A set of select as words: programs have larger ones than FD_SETSIZE, too.
struct Bits(*mut u64);

impl Bits {
    fn has(&self, fd: c_int) -> bool {
        // SAFETY: select's caller has that many bits, or none.
        !self.0.is_null() && unsafe { get(self.0.add(fd as usize / 64)) } >> (fd % 64) & 1 == 1
    }

    fn put(&self, fd: c_int, on: bool) -> i32 {
        if self.0.is_null() {
            return 0;
        }
        // SAFETY: as above.
        unsafe {
            let word = self.0.add(fd as usize / 64);
            put(
                word,
                get(word) & !(1 << (fd % 64)) | u64::from(on) << (fd % 64),
            );
        }
        i32::from(on)
    }
}

/// `None`: all are the kernel's.
///
/// # Safety
/// As libc's.
unsafe fn select_both(
    count: c_int,
    sets: [*mut fd_set; 3],
    limit: impl FnOnce() -> Result<Limit, i32>,
    mask: *const sigset_t,
) -> Option<Result<i32, i32>> {
    let count = count.min(table::DESCRIPTORS_MAX as c_int);
    let [read, write, except] = sets.map(|set| Bits(set.cast()));
    let ours = |fd| is_ours(fd) && (read.has(fd) || write.has(fd) || except.has(fd));
    if !table::known(0, count.max(1) as usize - 1).any(ours) {
        return None;
    }
    let mut fds = Vec::new();
    for fd in 0..count {
        let pairs = [
            (read.has(fd), libc::POLLIN),
            (write.has(fd), libc::POLLOUT),
            (except.has(fd), libc::POLLPRI),
        ];
        let events = pairs
            .iter()
            .filter(|(is, _)| *is)
            .fold(0, |sum, (_, bit)| sum | bit);
        if events != 0 {
            fds.push(watch(fd, events));
        }
    }
    let limit = match limit() {
        Ok(limit) => limit,
        Err(error) => return Some(Err(error)),
    };
    // SAFETY: the mask by the caller's promise.
    let polled = unsafe { poll_both(&mut fds, limit, mask) };
    if let Err(error) = polled {
        return Some(Err(error));
    }
    if fds.iter().any(|poll| poll.revents & libc::POLLNVAL != 0) {
        return Some(Err(libc::EBADF));
    }
    // As the kernel's POLLIN_SET, POLLOUT_SET and POLLEX_SET (fs/select.c).
    let mut found = 0;
    for poll in &fds {
        let has = |bits| poll.revents & bits != 0;
        let fd = poll.fd;
        let readable = has(libc::POLLIN | libc::POLLHUP | libc::POLLERR);
        let writable = has(libc::POLLOUT | libc::POLLERR);
        found += read.put(fd, readable && read.has(fd));
        found += write.put(fd, writable && write.has(fd));
        found += except.put(fd, has(libc::POLLPRI) && except.has(fd));
    }
    Some(Ok(found))
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    span: *mut timeval,
) -> c_int {
    let limit = || {
        if span.is_null() {
            return Ok(Limit::Never);
        }
        // SAFETY: as libc's.
        let span = unsafe { get(span) };
        if span.tv_sec < 0 || span.tv_usec < 0 {
            return Err(libc::EINVAL);
        }
        let exact = timespec {
            tv_sec: span.tv_sec + span.tv_usec / 1_000_000,
            tv_nsec: span.tv_usec % 1_000_000 * 1_000,
        };
        // SAFETY: it lives over the call.
        unsafe { Limit::span(&exact) }
    };
    let mut at = None;
    let limit = || {
        let limit = limit()?;
        at = limit.at();
        Ok(limit)
    };
    // SAFETY: as libc's.
    let ours = unsafe { select_both(count, [read, write, except], limit, std::ptr::null()) };
    match ours {
        Some(result) => {
            // Linux tells what is left.
            if let Some(at) = at {
                let left = at.since(now()).0 / 1_000;
                // SAFETY: as libc's; it was read above.
                unsafe {
                    put(
                        span,
                        timeval {
                            tv_sec: (left / 1_000_000) as i64,
                            tv_usec: (left % 1_000_000) as i64,
                        },
                    );
                }
            }
            end(result)
        }
        // SAFETY: as libc's.
        None => unsafe { real::select(count, read, write, except, span) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    span: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as libc's.
    unsafe {
        let limit = || Limit::span(span);
        match select_both(count, [read, write, except], limit, mask) {
            Some(result) => end(result),
            None => real::pselect(count, read, write, except, span, mask),
        }
    }
}

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
