//! connect, listen and accept of sockets that the instance has. SAFETY comments "as libc's" say: the program passes what libc's call of
//! that name takes.
use super::told::{errno, is_nonblocking, is_shut, take_error};
use crate::hooks::memory::{done, fail, put_address};
use crate::hooks::{lock, real};
use crate::instance::{Instance, lost};
use crate::kernel;
use crate::rows;
use crate::stack::now;
use crate::state::State;
use crate::table::{self, Entry};
use hopscope_stack_abi::address;
use hopscope_stack_engine::Ns;
use hopscope_stack_instance::programs::passing;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::{Accepted, Name};
use nix::libc::{self, c_int, sockaddr, socklen_t};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::os::fd::IntoRawFd;

/// SO_RCVTIMEO or SO_SNDTIMEO of the descriptor.
fn span(fd: c_int, name: c_int) -> Option<Ns> {
    // SAFETY: zero is a value of this structure of integers.
    let mut span: libc::timeval = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&span) as socklen_t;
    let into = (&raw mut span).cast();
    // SAFETY: both live over the call.
    let got = unsafe { real::getsockopt(fd, libc::SOL_SOCKET, name, into, &raw mut len) };
    let span = Ns(span.tv_sec as u64 * 1_000_000_000 + span.tv_usec as u64 * 1_000);
    (got == 0 && span.0 > 0).then_some(span)
}

/// Its end leaves the bell, also where the thread is cancelled.
struct AtBell(Option<c_int>);

impl Drop for AtBell {
    fn drop(&mut self) {
        if let Some(bell) = self.0 {
            let _ = lock::with(|state| state.leave_bell(bell));
        }
    }
}

/// Until a listener is ready, or another file.
fn wait_to_accept(fd: c_int, until: Option<Ns>) -> Result<bool, c_int> {
    let bell = AtBell(lock::with(State::wait_at_bell).unwrap_or(None));
    let watched = [Some(fd), bell.0].into_iter().flatten();
    wait_for(
        watched.map(|fd| crate::sleeper::watch(fd, libc::POLLIN)),
        until,
    )
}

fn wait(fd: c_int, events: i16, until: Option<Ns>) -> Result<bool, c_int> {
    wait_for([crate::sleeper::watch(fd, events)].into_iter(), until)
}

/// Until one is ready, a point at which the thread may be cancelled. `false`: not in time.
fn wait_for(fds: impl Iterator<Item = libc::pollfd>, until: Option<Ns>) -> Result<bool, c_int> {
    let mut fds: Vec<_> = fds.collect();
    loop {
        let left = until.map(crate::sleeper::span_until);
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: both live over the call; no mask.
        let ready =
            unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as u64, left, std::ptr::null()) };
        match ready {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ if errno() == libc::EINTR
                && until.is_none()
                && !kernel::has_interrupting_handler() => {}
            _ => return Err(errno()),
        }
    }
}

/// Waits until connect(2) is over. EINPROGRESS: not in time.
pub fn connected(fd: c_int, name: Name) -> Result<(), c_int> {
    let until = span(fd, libc::SO_SNDTIMEO).map(|span| now() + span);
    loop {
        let socket = rows::state(name);
        if let Some(error) = take_error(name, socket) {
            return Err(error);
        }
        if socket.phase != Phase::Connecting {
            return Ok(());
        }
        if socket.errno != 0 {
            return Err(libc::ECONNABORTED);
        }
        if !wait(fd, libc::POLLOUT, until)? {
            return Err(libc::EINPROGRESS);
        }
        if rows::state(name) == socket && is_hung_up(fd) {
            return Err(lost());
        }
    }
}

fn is_hung_up(fd: c_int) -> bool {
    let mut fds = [crate::sleeper::watch(fd, 0)];
    kernel::poll_now(&mut fds) == Ok(1) && fds[0].revents & libc::POLLHUP != 0
}

/// connect(2), which was just begun.
pub fn after_connect(fd: c_int, name: Name) -> c_int {
    let over = match is_nonblocking(fd) {
        false => connected(fd, name),
        // Also where it is over already, as by the kernel on loopback.
        true => Err(libc::EINPROGRESS),
    };
    if over == Err(libc::EINPROGRESS) || over == Err(libc::EINTR) {
        let _ = of_instance(|instance| instance.connect_goes_on(name));
    }
    done(over.map(|()| 0)) as c_int
}

fn of_instance<T>(what: impl FnOnce(&mut Instance) -> T) -> Option<T> {
    lock::with(|state| state.instance.as_mut().map(what)).ok()?
}

pub fn connect(fd: c_int, name: Name, peer: &[u8]) -> c_int {
    let peer = match address::from_bytes(peer) {
        Ok(Some(peer)) => peer,
        Ok(None) => return fail(libc::EAFNOSUPPORT) as c_int,
        Err(error) => return fail(error) as c_int,
    };
    match lock::with(|state| state.connect_again(name, fd, peer)) {
        // It may have got another name.
        Ok(Ok(())) => match table::get(fd) {
            Entry::Instance(name) => after_connect(fd, name),
            _ => fail(libc::EBADF) as c_int,
        },
        // A second call waits for the first.
        Ok(Err(libc::EALREADY)) if !is_nonblocking(fd) => {
            let over = connected(fd, name);
            if over.is_ok() {
                let _ = of_instance(|instance| instance.take_begun(name));
            }
            done(over.map(|()| 0)) as c_int
        }
        Ok(Err(libc::EISCONN))
            if of_instance(|instance| instance.take_begun(name)) == Some(true) =>
        {
            0
        }
        Ok(Err(error)) | Err(error) => fail(error) as c_int,
    }
}

pub fn listen(fd: c_int, name: Name, backlog: c_int) -> c_int {
    let asked = lock::with(|state| state.listen_again(name, fd, backlog));
    done(asked.and_then(|asked| asked).map(|()| 0)) as c_int
}

/// # Safety
/// As libc's accept4.
pub unsafe fn accept4(
    fd: c_int,
    listener: Name,
    from: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let until = span(fd, libc::SO_RCVTIMEO).map(|span| now() + span);
    let (new, what) = loop {
        if rows::state(listener).phase != Phase::Listening {
            return fail(libc::EINVAL) as c_int;
        }
        let came = match accepted(fd, listener) {
            // In the place of a listener whose instance has gone.
            Err(libc::ENOTSOCK) => match lock::with(|state| state.look_for_return(fd)) {
                Ok(Ok(())) => Err(libc::EAGAIN),
                _ => Err(libc::ENETDOWN),
            },
            came => came,
        };
        match came {
            Ok(accepted) => break accepted,
            Err(libc::EAGAIN) if !is_nonblocking(fd) => match wait_to_accept(fd, until) {
                Ok(true) => {}
                Ok(false) => return fail(libc::EAGAIN) as c_int,
                Err(error) => return fail(error) as c_int,
            },
            Err(error) => return fail(error) as c_int,
        }
    };
    if flags & libc::SOCK_CLOEXEC == 0 {
        let _ = kernel::fcntl(new, libc::F_SETFD, 0);
    }
    let of_file = kernel::fcntl(new, libc::F_GETFL, 0).unwrap_or(0) as c_int;
    let nonblocking = match flags & libc::SOCK_NONBLOCK {
        0 => 0,
        _ => libc::O_NONBLOCK,
    };
    let wanted = of_file & !libc::O_NONBLOCK | nonblocking;
    if wanted != of_file {
        let _ = kernel::fcntl(new, libc::F_SETFL, wanted);
    }
    let peer = match what {
        Accepted::Ours(name) => {
            table::set(new, Entry::Instance(name));
            rows::row(name).map(|row| row.address(false).to_vec())
        }
        Accepted::Kernel => kernel::address(libc::SYS_getpeername, new).ok(),
        Accepted::Unlistened => None,
    };
    // SAFETY: as libc's.
    let _ = unsafe { put_address(&peer.unwrap_or_default(), from, len) };
    new
}

fn is_back(fd: c_int, listener: Name) -> bool {
    let looked = lock::with(|state| state.look_for_return(fd));
    looked == Ok(Ok(())) && table::get(fd) != Entry::Instance(listener)
}

/// A connection that is there.
fn accepted(fd: c_int, listener: Name) -> Result<(c_int, Accepted), c_int> {
    // Without a number for it the connection would be lost on its way.
    let number = kernel::again(fd)? as c_int;
    kernel::close(number);
    let mut message = [0; Accepted::BYTES];
    let passed = loop {
        match passing::receive(kernel::borrow(fd), &mut message, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            // It is filled, which its instance left unread.
            Err(Errno::CONNRESET) => break None,
            Err(error) => return Err(error.raw_os_error()),
            Ok(passed) => break Some(passed).filter(|passed| passed.len > 0),
        }
    };
    let Some(mut passed) = passed else {
        return Err(match is_shut(listener) {
            true => libc::EINVAL,
            false => {
                lost();
                let waits = lock::with(|state| state.wait_for_return(fd, listener));
                // It may be back already, which nothing would tell any more.
                match waits == Ok(true) && is_back(fd, listener) {
                    true => libc::EAGAIN,
                    false => libc::ENETDOWN,
                }
            }
        });
    };
    match (Accepted::from_bytes(message), passed.fds.pop()) {
        (Some(Accepted::Unlistened), None) => {
            // It is for all who wait, and this call was under way before it was told.
            if rows::state(listener).phase == Phase::Bound {
                let _ = lock::with(|state| state.wake_those_at(listener));
                return Err(libc::EINVAL);
            }
            accepted(fd, listener)
        }
        (Some(what), Some(new)) => Ok((new.into_raw_fd(), what)),
        // Another thread took the last number.
        _ if passed.cut => Err(libc::EMFILE),
        _ => Err(libc::ECONNABORTED),
    }
}
