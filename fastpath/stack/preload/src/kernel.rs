//! System calls without libc: neither a hook nor a point at which a thread can be cancelled.
#![allow(unsafe_code)]
use nix::libc::{self, c_int, c_long};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

/// What the call returns, or errno.
pub type Answer = Result<i64, i32>;

/// # Safety
/// As the call says of its arguments.
pub unsafe fn call(number: c_long, arguments: [usize; 6]) -> Answer {
    let answer: i64;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel changes rax, rcx and r11, and the memory that the call's arguments name.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if (-4095..0).contains(&answer) {
        return Err(-answer as i32);
    }
    Ok(answer)
}

/// A call whose arguments are numbers alone.
fn plain(number: c_long, arguments: &[c_int]) -> Answer {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(arguments) {
        *to = *from as usize;
    }
    // SAFETY: no memory is named.
    unsafe { call(number, all) }
}

pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Answer {
    plain(libc::SYS_socket, &[domain, kind, protocol])
}

pub fn close(fd: c_int) {
    let _ = plain(libc::SYS_close, &[fd]);
}

pub fn fcntl(fd: c_int, command: c_int, value: c_int) -> Answer {
    plain(libc::SYS_fcntl, &[fd, command, value])
}

pub fn listen(fd: c_int, backlog: c_int) -> Answer {
    plain(libc::SYS_listen, &[fd, backlog])
}

pub fn shutdown(fd: c_int, how: c_int) -> Answer {
    plain(libc::SYS_shutdown, &[fd, how])
}

/// A connection of the kernel's listener, without its address.
pub fn accept(fd: c_int, flags: c_int) -> Answer {
    plain(libc::SYS_accept4, &[fd, 0, 0, flags])
}

pub fn process() -> i32 {
    plain(libc::SYS_getpid, &[]).unwrap_or(0) as i32
}

/// In effect, of this thread. `false`: there is no answer.
pub fn has_capability(number: u32) -> bool {
    // _LINUX_CAPABILITY_VERSION_3, of the caller; sets of 32, each effective, permitted and inheritable (capget(2)).
    let header = [0x2008_0522_u32, 0];
    let mut sets = [[0_u32; 3]; 2];
    let arguments = [
        header.as_ptr() as usize,
        sets.as_mut_ptr() as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel reads the header, and writes two sets.
    let got = unsafe { call(libc::SYS_capget, arguments) };
    got.is_ok() && sets[(number / 32) as usize][0] >> (number % 32) & 1 == 1
}

/// This thread's number: of a process's first one the process's.
pub fn thread() -> i32 {
    plain(libc::SYS_gettid, &[]).unwrap_or(0) as i32
}

pub fn eventfd() -> Answer {
    plain(
        libc::SYS_eventfd2,
        &[0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK],
    )
}

pub fn write(fd: c_int, bytes: &[u8]) -> Answer {
    let arguments = [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: `bytes` lives over the call.
    unsafe { call(libc::SYS_write, arguments) }
}

pub fn read_at(fd: c_int, into: &mut [u8], at: u64) -> Answer {
    let arguments = [
        fd as usize,
        into.as_mut_ptr() as usize,
        into.len(),
        at as usize,
        0,
        0,
    ];
    // SAFETY: `into` lives over the call.
    unsafe { call(libc::SYS_pread64, arguments) }
}

pub fn write_at(fd: c_int, bytes: &[u8], at: u64) -> Answer {
    let arguments = [
        fd as usize,
        bytes.as_ptr() as usize,
        bytes.len(),
        at as usize,
        0,
        0,
    ];
    // SAFETY: `bytes` lives over the call.
    unsafe { call(libc::SYS_pwrite64, arguments) }
}

pub fn read(fd: c_int, into: &mut [u8]) -> Answer {
    let arguments = [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0];
    // SAFETY: `into` lives over the call.
    unsafe { call(libc::SYS_read, arguments) }
}

pub fn random(into: &mut [u8]) -> Answer {
    let arguments = [into.as_mut_ptr() as usize, into.len(), 0, 0, 0, 0];
    // SAFETY: `into` lives over the call.
    unsafe { call(libc::SYS_getrandom, arguments) }
}

/// What of `fds` is ready now.
pub fn poll_now(fds: &mut [libc::pollfd]) -> Answer {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let arguments = [
        fds.as_mut_ptr() as usize,
        fds.len(),
        &raw const now as usize,
        0,
        0,
        0,
    ];
    // SAFETY: both live over the call.
    unsafe { call(libc::SYS_ppoll, arguments) }
}

/// Sleeps with all signals as they are.
pub fn poll_until(fds: &mut [libc::pollfd], span: Option<libc::timespec>) -> Answer {
    let span = span
        .as_ref()
        .map_or(0, |span| std::ptr::from_ref(span) as usize);
    let arguments = [fds.as_mut_ptr() as usize, fds.len(), span, 0, 0, 0];
    // SAFETY: all live over the call.
    unsafe { call(libc::SYS_ppoll, arguments) }
}

/// A socket's address, its own (SYS_getsockname) or its peer's, in the bytes of a sockaddr.
pub fn address(number: c_long, fd: c_int) -> Result<Vec<u8>, i32> {
    let mut bytes = vec![0; 128];
    let mut len = bytes.len() as libc::socklen_t;
    let arguments = [
        fd as usize,
        bytes.as_mut_ptr() as usize,
        &raw mut len as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes at most `len` bytes to `bytes`, which is as long.
    unsafe { call(number, arguments) }?;
    bytes.truncate(len as usize);
    Ok(bytes)
}

/// What a receipt by the kernel's socket gave.
#[derive(Debug)]
pub struct Message {
    pub count: i64,
    pub from: Vec<u8>,
    pub control: Vec<u8>,
    pub flags: c_int,
}

/// recvmsg into `parts`, with room for so many bytes of control messages.
pub fn receive(
    fd: c_int,
    parts: &mut [&mut [u8]],
    flags: c_int,
    control_room: usize,
) -> Result<Message, i32> {
    let mut vectors: Vec<libc::iovec> = parts
        .iter_mut()
        .map(|part| libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        })
        .collect();
    let mut from = vec![0_u8; 128];
    let mut control = vec![0_u8; control_room];
    // SAFETY: zero is a value of this structure of numbers and pointers.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = from.as_mut_ptr().cast();
    header.msg_namelen = from.len() as u32;
    header.msg_iov = vectors.as_mut_ptr();
    header.msg_iovlen = vectors.len();
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len();
    let arguments = [
        fd as usize,
        &raw mut header as usize,
        flags as usize,
        0,
        0,
        0,
    ];
    // SAFETY: all that the header names lives over the call, and is as long as it says.
    let count = unsafe { call(libc::SYS_recvmsg, arguments) }?;
    from.truncate(header.msg_namelen as usize);
    control.truncate(header.msg_controllen);
    Ok(Message {
        count,
        from,
        control,
        flags: header.msg_flags,
    })
}

/// connect to AF_UNSPEC.
pub fn disconnect(fd: c_int) {
    let nobody = [0_u8; 16];
    let arguments = [fd as usize, nobody.as_ptr() as usize, nobody.len(), 0, 0, 0];
    // SAFETY: `nobody` lives over the call.
    let _ = unsafe { call(libc::SYS_connect, arguments) };
}

pub fn connect(fd: c_int, address: &[u8]) -> Answer {
    let (at, len) = (address.as_ptr() as usize, address.len());
    // SAFETY: `address` lives over the call.
    unsafe { call(libc::SYS_connect, [fd as usize, at, len, 0, 0, 0]) }
}

pub fn bind(fd: c_int, address: &[u8]) -> Answer {
    let arguments = [
        fd as usize,
        address.as_ptr() as usize,
        address.len(),
        0,
        0,
        0,
    ];
    // SAFETY: `address` lives over the call.
    unsafe { call(libc::SYS_bind, arguments) }
}

pub fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, events: u32, data: u64) -> Answer {
    let event = libc::epoll_event { events, u64: data };
    let arguments = [
        epoll as usize,
        operation as usize,
        fd as usize,
        &raw const event as usize,
        0,
        0,
    ];
    // SAFETY: `event` lives over the call.
    unsafe { call(libc::SYS_epoll_ctl, arguments) }
}

pub fn epoll() -> Answer {
    plain(libc::SYS_epoll_create1, &[libc::EPOLL_CLOEXEC])
}

/// What there is now, and how many.
pub fn epoll_now(epoll: c_int, events: &mut [libc::epoll_event]) -> Answer {
    let arguments = [
        epoll as usize,
        events.as_mut_ptr() as usize,
        events.len(),
        0,
        0,
        0,
    ];
    // SAFETY: `events` lives over the call.
    unsafe { call(libc::SYS_epoll_wait, arguments) }
}

/// Sleeps while `word` holds `seen`, at most so long.
pub fn futex_wait(
    word: &std::sync::atomic::AtomicU32,
    seen: u32,
    span: Option<libc::timespec>,
) -> Answer {
    let span = span
        .as_ref()
        .map_or(0, |span| std::ptr::from_ref(span) as usize);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let arguments = [
        word.as_ptr() as usize,
        operation as usize,
        seen as usize,
        span,
        0,
        0,
    ];
    // SAFETY: the word and the time live over the call.
    unsafe { call(libc::SYS_futex, arguments) }
}

pub fn futex_wake(word: &std::sync::atomic::AtomicU32, count: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let arguments = [
        word.as_ptr() as usize,
        operation as usize,
        count as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the word lives over the call.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// A lock that the kernel takes back when this process ends, and that children do not inherit; false: another has it.
pub fn lock_file(fd: c_int, locked: bool) -> bool {
    // SAFETY: zero is a value of this structure of integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = if locked { libc::F_WRLCK } else { libc::F_UNLCK } as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_len = 1;
    let arguments = [
        fd as usize,
        libc::F_SETLK as usize,
        &raw const lock as usize,
        0,
        0,
        0,
    ];
    // SAFETY: `lock` lives over the call.
    unsafe { call(libc::SYS_fcntl, arguments) }.is_ok()
}

/// Whether a signal has a handler after which the kernel does not restart calls (no SA_RESTART).
pub fn has_interrupting_handler() -> bool {
    (1..=64).any(|signal: usize| {
        // The kernel's: handler, flags, restorer, mask.
        let mut action = [0usize; 4];
        let arguments = [signal, 0, action.as_mut_ptr() as usize, 8, 0, 0];
        // SAFETY: the kernel writes four words.
        let asked = unsafe { call(libc::SYS_rt_sigaction, arguments) };
        let handled = action[0] != libc::SIG_DFL && action[0] != libc::SIG_IGN;
        asked.is_ok() && handled && action[1] & libc::SA_RESTART as usize == 0
    })
}

pub fn dup3(fd: c_int, to: c_int, flags: c_int) -> Answer {
    plain(libc::SYS_dup3, &[fd, to, flags])
}

/// The same, under the lowest number that is free, and closed by exec.
pub fn again(fd: c_int) -> Answer {
    fcntl(fd, libc::F_DUPFD_CLOEXEC, 0)
}

pub fn set_option(fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Answer {
    let arguments = [
        fd as usize,
        level as usize,
        name as usize,
        value.as_ptr() as usize,
        value.len(),
        0,
    ];
    // SAFETY: `value` lives over the call.
    unsafe { call(libc::SYS_setsockopt, arguments) }
}

/// An option that is a number.
pub fn option(fd: c_int, level: c_int, name: c_int) -> Result<i32, i32> {
    let (mut value, mut len) = (0_i32, 4 as libc::socklen_t);
    let arguments = [
        fd as usize,
        level as usize,
        name as usize,
        &raw mut value as usize,
        &raw mut len as usize,
        0,
    ];
    // SAFETY: both live over the call; the kernel writes no more than `len` bytes.
    unsafe { call(libc::SYS_getsockopt, arguments) }?;
    Ok(value)
}

/// Of a stream of unix(7), or one of messages, which is what the instance's sockets are.
pub fn pair_inode(fd: c_int) -> Option<u64> {
    let of = |name| option(fd, libc::SOL_SOCKET, name);
    let is_pair = matches!(
        of(libc::SO_TYPE),
        Ok(libc::SOCK_STREAM | libc::SOCK_SEQPACKET)
    );
    if of(libc::SO_DOMAIN) != Ok(libc::AF_UNIX) || !is_pair {
        return None;
    }
    // SAFETY: zero is a value of this structure of integers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    let arguments = [fd as usize, &raw mut stat as usize, 0, 0, 0, 0];
    // SAFETY: `stat` lives over the call.
    unsafe { call(libc::SYS_fstat, arguments) }.ok()?;
    Some(stat.st_ino)
}

/// For a call.
pub fn borrow(fd: c_int) -> BorrowedFd<'static> {
    // SAFETY: it is a number that the kernel is asked about; whoever closed it meanwhile hears EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A descriptor that nobody else owns.
pub fn own(fd: c_int) -> OwnedFd {
    // SAFETY: the caller has it from the kernel, and gives it away.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// As Linux does for a write to a connection that is shut.
pub fn raise_sigpipe() {
    let thread = plain(libc::SYS_gettid, &[]).unwrap_or(0) as i32;
    let _ = plain(libc::SYS_tgkill, &[process(), thread, libc::SIGPIPE]);
}
