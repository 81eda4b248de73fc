//! Waiting for descriptors of the kernel and of the stack, as poll(2) has them.
use super::limit::Limit;
use super::lock;
use super::signals::Held;
use super::wait::{bed, doze, here};
use crate::kernel;
use crate::sleeper::{Nap, watch};
use crate::state::State;
use crate::table::{self, Entry};
use nix::libc::{self, c_int, pollfd, sigset_t};

pub fn is_ours(fd: c_int) -> bool {
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

/// The kernel's of `fds`, with others left out (-1). An epoll descriptor is also the kernel's.
fn kernels(state: &State, fds: &[pollfd]) -> Vec<pollfd> {
    let is_left_out = |fd| {
        let index = state.index_of(fd).filter(|_| is_ours(fd));
        index.is_some_and(|index| !state.is_epoll(index))
    };
    let of_kernel = |poll: &pollfd| match is_left_out(poll.fd) {
        true => watch(-1, 0),
        false => watch(poll.fd, poll.events),
    };
    fds.iter().map(of_kernel).collect()
}

/// # Safety
/// `mask` is null or a set of signals.
pub unsafe fn poll_both(
    fds: &mut [pollfd],
    limit: Limit,
    mask: *const sigset_t,
) -> Result<i32, i32> {
    let whose = here();
    let held = (!matches!(limit, Limit::Now)).then(Held::new);
    let mask = held.as_ref().map_or(mask, |held| held.mask(mask));
    loop {
        // Whose they are may be decided while this waits: another thread connects one.
        let (mut ready, mut theirs) = lock::with(|state| {
            state.claim();
            state.turn();
            let mut found = look(state, fds);
            if state.flush() && found.0 == 0 {
                found = look(state, fds);
            }
            state.together.begin_round(found.0.max(0) as usize);
            state.mind_the_leader();
            (found.0, kernels(state, fds))
        })?;
        // The kernel's, now; and signals that wait for this mask.
        if ready > 0 || matches!(limit, Limit::Now) {
            if kernel::poll_now(&mut theirs)? > 0 {
                ready += merge(fds, &theirs);
            }
            return Ok(ready);
        }
        let nap = lock::with(|state| {
            // What happened between.
            let (ready, ours) = look(state, fds);
            if ready > 0 {
                return Ok(None);
            }
            let theirs = kernels(state, fds);
            let nap = state.fall_asleep(ours, limit.at(), whose)?;
            Ok::<_, i32>(Some((nap, theirs)))
        })??;
        let Some((mut nap, theirs)) = nap else {
            continue;
        };
        let mut wait = Nap {
            sleeper: nap.sleeper,
            fds: theirs,
            until: nap.until,
        };
        wait.fds.append(&mut nap.fds);
        let waits = lock::with(|state| state.kernel_parts(fds))?;
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
