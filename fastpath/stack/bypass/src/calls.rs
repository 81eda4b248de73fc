//! Names of the calls (arch/x86/entry/syscalls/syscall_64.tbl) that `bpf/calls.h` looks at.

/// `bpf/bypass.h`
const IS_COMPAT: u32 = 1 << 31;

pub(crate) fn name(number: u32) -> &'static str {
    if number & IS_COMPAT != 0 {
        return "32-bit call";
    }
    match number {
        0 => "read",
        1 => "write",
        3 => "close",
        7 => "poll",
        16 => "ioctl",
        19 => "readv",
        20 => "writev",
        32 => "dup",
        33 => "dup2",
        40 => "sendfile",
        41 => "socket",
        42 => "connect",
        43 => "accept",
        44 => "sendto",
        45 => "recvfrom",
        46 => "sendmsg",
        47 => "recvmsg",
        48 => "shutdown",
        49 => "bind",
        50 => "listen",
        51 => "getsockname",
        52 => "getpeername",
        54 => "setsockopt",
        55 => "getsockopt",
        72 => "fcntl",
        233 => "epoll_ctl",
        271 => "ppoll",
        275 => "splice",
        288 => "accept4",
        292 => "dup3",
        299 => "recvmmsg",
        307 => "sendmmsg",
        327 => "preadv2",
        328 => "pwritev2",
        436 => "close_range",
        425 => "io_uring_setup",
        _ => "other call",
    }
}
