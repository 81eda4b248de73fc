//! What is told of such a socket, by the instance's table and by this process.
use crate::hooks::lock;
use crate::kernel;
use hopscope_stack_instance::programs::table::State as Socket;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int};

pub fn errno() -> c_int {
    // SAFETY: libc's address of this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// The error that the connection ended with, once in a process.
pub fn take_error(name: Name, socket: Socket) -> Option<c_int> {
    if socket.errno == 0 {
        return None;
    }
    let is_new = lock::with(|state| {
        let instance = state.instance.as_mut();
        instance.is_some_and(|instance| instance.take_error(name))
    });
    (is_new == Ok(true)).then_some(socket.errno.into())
}

/// This process has shut it down.
pub fn is_shut(name: Name) -> bool {
    let shut = lock::with(|state| {
        let instance = state.instance.as_ref();
        instance.is_some_and(|instance| instance.is_shut(name))
    });
    shut == Ok(true)
}

pub fn is_nonblocking(fd: c_int) -> bool {
    let flags = kernel::fcntl(fd, libc::F_GETFL, 0);
    flags.is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}
