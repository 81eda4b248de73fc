//! syscall(2): calls by their numbers (libuv closes so, and sends and receives many datagrams) are taken as those by name. Every SAFETY
//! comment "as libc's" says: the program passes what the call of that number takes.
use super::addresses::{getpeername, getsockname};
use super::aliases::{preadv2, pwritev2};
use super::descriptors::{close, close_range, dup, dup2, dup3, fcntl, ioctl};
use super::epolling::{
    epoll_create, epoll_create1, epoll_ctl, epoll_pwait, epoll_pwait2, epoll_wait,
};
use super::executing::{execve, execveat};
use super::files::{read, readv, recvfrom, sendto, write, writev};
use super::memory::fail;
use super::messages::{
    getsockopt, recvmmsg, recvmsg, sendfile, sendmmsg, sendmsg, setsockopt, splice,
};
use super::polling::{poll, ppoll};
use super::processes::_exit;
use super::selecting::{pselect, select};
use super::sockets::{accept, accept4, bind, connect, listen, shutdown, socket};
use super::{io_uring, lock, real};
use nix::libc::{self, c_int, c_long};

/// What a call by number has as an argument.
trait Argument {
    fn of(word: usize) -> Self;
}

impl<T> Argument for *const T {
    fn of(word: usize) -> Self {
        word as Self
    }
}

impl<T> Argument for *mut T {
    fn of(word: usize) -> Self {
        word as Self
    }
}

macro_rules! numbers {
    ($($kind:ty)*) => { $(
        impl Argument for $kind {
            fn of(word: usize) -> Self {
                word as Self
            }
        }
    )* }
}

numbers!(i32 u32 i64 u64 usize);

/// `call(a, b)`, of the words that it takes.
macro_rules! call {
    ($call:ident $(, $word:expr)*) => {
        // SAFETY: as libc's.
        unsafe { $call($(Argument::of($word)),*) as c_long }
    };
}

/// A mask is as long as the kernel's (NSIG / 8): the libc functions have no length.
const MASK_LEN: usize = 8;

/// pselect6(2)'s last argument.
#[repr(C)]
struct Mask {
    at: *const libc::sigset_t,
    len: usize,
}

/// # Safety
/// `at` is null, or may be read.
unsafe fn mask(at: *const Mask) -> *const libc::sigset_t {
    match at.is_null() {
        true => std::ptr::null(),
        // SAFETY: the caller's promise.
        false => unsafe { super::memory::get(&raw const (*at).at) },
    }
}

/// `None`: no call that may be of a socket.
fn taken(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    Some(match number {
        libc::SYS_read => call!(read, a, b, c),
        libc::SYS_write => call!(write, a, b, c),
        libc::SYS_readv => call!(readv, a, b, c),
        libc::SYS_writev => call!(writev, a, b, c),
        // The kernel has the offset in two halves, of which one is empty on 64 bits.
        libc::SYS_preadv2 => call!(preadv2, a, b, c, d, f),
        libc::SYS_pwritev2 => call!(pwritev2, a, b, c, d, f),
        libc::SYS_recvfrom => call!(recvfrom, a, b, c, d, e, f),
        libc::SYS_sendto => call!(sendto, a, b, c, d, e, f),
        libc::SYS_recvmsg => call!(recvmsg, a, b, c),
        libc::SYS_sendmsg => call!(sendmsg, a, b, c),
        libc::SYS_recvmmsg => call!(recvmmsg, a, b, c, d, e),
        libc::SYS_sendmmsg => call!(sendmmsg, a, b, c, d),
        libc::SYS_sendfile => call!(sendfile, a, b, c, d),
        libc::SYS_splice => call!(splice, a, b, c, d, e, f),
        libc::SYS_socket => call!(socket, a, b, c),
        libc::SYS_bind => call!(bind, a, b, c),
        libc::SYS_listen => call!(listen, a, b),
        libc::SYS_accept => call!(accept, a, b, c),
        libc::SYS_accept4 => call!(accept4, a, b, c, d),
        libc::SYS_connect => call!(connect, a, b, c),
        libc::SYS_shutdown => call!(shutdown, a, b),
        libc::SYS_getsockname => call!(getsockname, a, b, c),
        libc::SYS_getpeername => call!(getpeername, a, b, c),
        libc::SYS_getsockopt => call!(getsockopt, a, b, c, d, e),
        libc::SYS_setsockopt => call!(setsockopt, a, b, c, d, e),
        libc::SYS_close => call!(close, a),
        libc::SYS_close_range => call!(close_range, a, b, c),
        libc::SYS_dup => call!(dup, a),
        libc::SYS_dup2 => call!(dup2, a, b),
        libc::SYS_dup3 => call!(dup3, a, b, c),
        libc::SYS_fcntl => call!(fcntl, a, b, c),
        libc::SYS_ioctl => call!(ioctl, a, b, c),
        libc::SYS_poll => call!(poll, a, b, c),
        libc::SYS_ppoll if d == 0 || e == MASK_LEN => call!(ppoll, a, b, c, d),
        libc::SYS_select => call!(select, a, b, c, d, e),
        libc::SYS_pselect6 => {
            // SAFETY: as libc's.
            let mask = unsafe { mask(f as *const Mask) };
            call!(pselect, a, b, c, d, e, mask as usize)
        }
        libc::SYS_epoll_create => call!(epoll_create, a),
        libc::SYS_epoll_create1 => call!(epoll_create1, a),
        libc::SYS_epoll_ctl => call!(epoll_ctl, a, b, c, d),
        libc::SYS_epoll_wait => call!(epoll_wait, a, b, c, d),
        libc::SYS_epoll_pwait if e == 0 || f == MASK_LEN => call!(epoll_pwait, a, b, c, d, e),
        libc::SYS_epoll_pwait2 if e == 0 || f == MASK_LEN => call!(epoll_pwait2, a, b, c, d, e),
        libc::SYS_execve => call!(execve, a, b, c),
        libc::SYS_execveat => call!(execveat, a, b, c, d, e),
        // SAFETY: as libc's.
        libc::SYS_exit_group => unsafe { _exit(a as c_int) },
        libc::SYS_io_uring_setup if io_uring::is_refused() => fail(libc::ENOSYS) as c_long,
        _ => return None,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let ours = match lock::is_filled() {
        true => taken(number, [a, b, c, d, e, f]),
        false => None,
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::syscall(number, a, b, c, d, e, f) })
}
