//! The symbols behind ours, found when they are first called.
use crate::say::TRACE;
use hopscope_stack_abi::mark;
use nix::libc::{self, c_int, c_long, c_uint, c_void, sockaddr, socklen_t};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// That end with null.
pub type Strings = *const *const libc::c_char;

/// For a symbol that nobody has.
unsafe extern "C-unwind" fn absent() -> isize {
    super::memory::fail(libc::ENOSYS)
}

/// By itself: a call of dlsym takes the caller's return address (RTLD_NEXT), and a function with one cannot be measured by a copy.
#[cold]
#[inline(never)]
fn find(at: &AtomicPtr<c_void>, name: &'static str) -> *mut c_void {
    // SAFETY: the name ends with 0.
    let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) };
    if found.is_null() {
        found = absent as *mut c_void;
    }
    at.store(found, Ordering::Relaxed);
    found
}

/// What `name`, which ends with 0, is behind this library; kept in `at`.
#[inline]
pub fn symbol(at: &AtomicPtr<c_void>, name: &'static str) -> *mut c_void {
    let found = at.load(Ordering::Relaxed);
    match found.is_null() {
        true => find(at, name),
        false => found,
    }
}

/// With `--trace`: whoever looks at system calls from outside sees by the mark that a hook has this one made.
#[cold]
#[inline(never)]
fn marked<T>(call: impl FnOnce() -> T) -> T {
    let mut mark = [0_u64; 2];
    let words = [mark::WORD, (&raw const mark) as u64];
    // SAFETY: a local variable; volatile, since it is read by others.
    unsafe { (&raw mut mark).write_volatile(words) };
    let out = call();
    // SAFETY: as above. What lies there later must not have it.
    unsafe { (&raw mut mark).write_volatile([0; 2]) };
    out
}

macro_rules! real {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)*) => { $(
        /// # Safety
        /// As libc's.
        #[inline]
        pub unsafe fn $name($($arg: $kind),*) -> $out {
            static AT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            let found = symbol(&AT, concat!(stringify!($name), "\0"));
            // SAFETY: the symbol of that name has this signature.
            let call: unsafe extern "C-unwind" fn($($kind),*) -> $out = unsafe { std::mem::transmute(found) };
            if TRACE.load(Ordering::Relaxed) {
                // SAFETY: the caller's promise.
                return marked(|| unsafe { call($($arg),*) });
            }
            // SAFETY: the caller's promise.
            unsafe { call($($arg),*) }
        }
    )* }
}

real! {
    read(fd: c_int, into: *mut c_void, len: usize) -> isize;
    readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize;
    preadv2(fd: c_int, parts: *const libc::iovec, count: c_int, at: libc::off_t, flags: c_int) -> isize;
    pwritev2(fd: c_int, parts: *const libc::iovec, count: c_int, at: libc::off_t, flags: c_int) -> isize;
    write(fd: c_int, from: *const c_void, len: usize) -> isize;
    writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize;
    recv(fd: c_int, into: *mut c_void, len: usize, flags: c_int) -> isize;
    recvfrom(fd: c_int, into: *mut c_void, len: usize, flags: c_int, from: *mut sockaddr, from_len: *mut socklen_t) -> isize;
    recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize;
    recvmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, span: *mut libc::timespec) -> c_int;
    send(fd: c_int, from: *const c_void, len: usize, flags: c_int) -> isize;
    sendto(fd: c_int, from: *const c_void, len: usize, flags: c_int, to: *const sockaddr, to_len: socklen_t) -> isize;
    sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize;
    sendmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int;
    sendfile(to: c_int, from: c_int, at: *mut libc::off_t, len: usize) -> isize;
    splice(from: c_int, from_at: *mut libc::loff_t, to: c_int, to_at: *mut libc::loff_t, len: usize, flags: c_uint) -> isize;
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    bind(fd: c_int, local: *const sockaddr, len: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    accept(fd: c_int, from: *mut sockaddr, len: *mut socklen_t) -> c_int;
    accept4(fd: c_int, from: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, peer: *const sockaddr, len: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    getsockname(fd: c_int, into: *mut sockaddr, len: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, into: *mut sockaddr, len: *mut socklen_t) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, into: *mut c_void, len: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    close(fd: c_int) -> c_int;
    fdopen(fd: c_int, mode: *const libc::c_char) -> *mut libc::FILE;
    fileno(stream: *mut libc::FILE) -> c_int;
    fileno_unlocked(stream: *mut libc::FILE) -> c_int;
    __vdprintf_chk(fd: c_int, flag: c_int, format: *const libc::c_char, arguments: *mut c_void) -> c_int;
    fclose(stream: *mut libc::FILE) -> c_int;
    freopen(path: *const libc::c_char, mode: *const libc::c_char, stream: *mut libc::FILE) -> *mut libc::FILE;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;
    ioctl(fd: c_int, request: libc::c_ulong, argument: usize) -> c_int;
    poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
    ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, span: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    select(count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set, span: *mut libc::timeval) -> c_int;
    pselect(count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set, span: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    epoll_create(size: c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int;
    epoll_wait(epoll: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int) -> c_int;
    epoll_pwait(epoll: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int, mask: *const libc::sigset_t) -> c_int;
    epoll_pwait2(epoll: c_int, events: *mut libc::epoll_event, most: c_int, span: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    fork() -> c_int;
    execve(path: *const libc::c_char, arguments: Strings, environment: Strings) -> c_int;
    execvpe(file: *const libc::c_char, arguments: Strings, environment: Strings) -> c_int;
    fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int;
    execveat(folder: c_int, path: *const libc::c_char, arguments: Strings, environment: Strings, flags: c_int) -> c_int;
    posix_spawn(child: *mut libc::pid_t, path: *const libc::c_char, actions: *const libc::posix_spawn_file_actions_t, attributes: *const libc::posix_spawnattr_t, arguments: Strings, environment: Strings) -> c_int;
    posix_spawnp(child: *mut libc::pid_t, file: *const libc::c_char, actions: *const libc::posix_spawn_file_actions_t, attributes: *const libc::posix_spawnattr_t, arguments: Strings, environment: Strings) -> c_int;
    io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint) -> c_int;
    io_uring_queue_init_params(entries: c_uint, ring: *mut c_void, parameters: *mut c_void) -> c_int;
    io_uring_queue_init_mem(entries: c_uint, ring: *mut c_void, parameters: *mut c_void, memory: *mut c_void, len: usize) -> c_int;
    io_uring_setup(entries: c_uint, parameters: *mut c_void) -> c_int;
    syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
    pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    pthread_exit(value: *mut c_void) -> ();
}
