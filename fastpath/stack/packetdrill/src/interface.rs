//! packetdrill's interface for stacks in shared objects (its packetdrill.h): the only unsafe module. Everything behind
//! it takes slices and values.
mod calls;
mod device;
mod memory;
mod preload;

use crate::blocking::shared;
use nix::libc::{self, c_int, c_void};

type Call<A, R> = unsafe extern "C" fn(*mut c_void, A) -> R;

/// Field for field `struct packetdrill_interface`.
#[repr(C)]
pub struct Interface {
    userdata: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    socket: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    bind: unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr, libc::socklen_t) -> c_int,
    listen: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    accept: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut libc::sockaddr,
        *mut libc::socklen_t,
    ) -> c_int,
    connect:
        unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr, libc::socklen_t) -> c_int,
    read: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize) -> isize,
    readv: unsafe extern "C" fn(*mut c_void, c_int, *const libc::iovec, c_int) -> isize,
    recv: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize, c_int) -> isize,
    recvfrom: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut libc::sockaddr,
        *mut libc::socklen_t,
    ) -> isize,
    recvmsg: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::msghdr, c_int) -> isize,
    write: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> isize,
    writev: unsafe extern "C" fn(*mut c_void, c_int, *const libc::iovec, c_int) -> isize,
    send: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int) -> isize,
    sendto: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_void,
        usize,
        c_int,
        *const libc::sockaddr,
        libc::socklen_t,
    ) -> isize,
    sendmsg: unsafe extern "C" fn(*mut c_void, c_int, *const libc::msghdr, c_int) -> isize,
    /// Variadic in C: on x86-64 and aarch64 the third argument of an integer or pointer is passed as a named one.
    fcntl: unsafe extern "C" fn(*mut c_void, c_int, c_int, usize) -> c_int,
    ioctl: unsafe extern "C" fn(*mut c_void, c_int, libc::c_ulong, *mut c_int) -> c_int,
    close: Call<c_int, c_int>,
    shutdown: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    getsockopt: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        c_int,
        c_int,
        *mut c_void,
        *mut libc::socklen_t,
    ) -> c_int,
    setsockopt: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        c_int,
        c_int,
        *const c_void,
        libc::socklen_t,
    ) -> c_int,
    poll: unsafe extern "C" fn(*mut c_void, *mut libc::pollfd, libc::nfds_t, c_int) -> c_int,
    netdev_send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    netdev_receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut i64) -> c_int,
    usleep: Call<u32, c_int>,
    gettimeofday: unsafe extern "C" fn(*mut c_void, *mut libc::timeval, *mut c_void) -> c_int,
    epoll_create: Call<c_int, c_int>,
    epoll_ctl:
        unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *const libc::epoll_event) -> c_int,
    epoll_wait:
        unsafe extern "C" fn(*mut c_void, c_int, *mut libc::epoll_event, c_int, c_int) -> c_int,
    pipe: Call<*mut c_int, c_int>,
    splice:
        unsafe extern "C" fn(*mut c_void, c_int, *mut i64, c_int, *mut i64, usize, u32) -> isize,
}

/// packetdrill calls it after it has loaded the library.
///
/// # Safety
/// `interface` points to a `struct packetdrill_interface` that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    _flags: *const libc::c_char,
    interface: *mut Interface,
) {
    shared();
    let filled = Interface {
        userdata: std::ptr::null_mut(),
        free: calls::free,
        socket: calls::socket,
        bind: calls::bind,
        listen: calls::listen,
        accept: calls::accept,
        connect: calls::connect,
        read: calls::read,
        readv: calls::readv,
        recv: calls::recv,
        recvfrom: calls::recvfrom,
        recvmsg: calls::recvmsg,
        write: calls::write,
        writev: calls::writev,
        send: calls::send,
        sendto: calls::sendto,
        sendmsg: calls::sendmsg,
        fcntl: calls::fcntl,
        ioctl: calls::ioctl,
        close: calls::close,
        shutdown: calls::shutdown,
        getsockopt: calls::getsockopt,
        setsockopt: calls::setsockopt,
        poll: calls::poll,
        netdev_send: device::netdev_send,
        netdev_receive: device::netdev_receive,
        usleep: device::usleep,
        gettimeofday: device::gettimeofday,
        epoll_create: calls::epoll_create,
        epoll_ctl: calls::epoll_ctl,
        epoll_wait: calls::epoll_wait,
        pipe: calls::pipe,
        splice: calls::splice,
    };
    // SAFETY: the caller's promise.
    unsafe { interface.write(filled) };
}
