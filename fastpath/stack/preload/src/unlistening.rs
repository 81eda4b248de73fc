//! shutdown(2) of an instance's listener, which may listen again.
use crate::kernel;
use crate::state::State;
use hopscope_stack_instance::programs::passing::{self, RecvFlags};
use hopscope_stack_instance::programs::wire::{Accepted, Name, Request};
use nix::libc;
use rustix::io::Errno;
use std::os::fd::AsRawFd;

impl State {
    /// Whoever waits in accept(2), poll(2) or epoll_wait(2), in whichever process, wakes up.
    pub fn unlisten(&mut self, name: Name, fd: i32) -> Result<(), i32> {
        self.ask(&Request::Unlisten { name }, None)?;
        if let Some(instance) = &mut self.instance {
            instance.made.listens_no_more(name);
        }
        self.empty(fd);
        self.wake_those_at(name);
        Ok(())
    }

    /// It stays ready, as the kernel's is, until it listens or connects.
    pub fn wake_those_at(&mut self, name: Name) {
        let _ = self.ask(&Request::WakeUp { name }, None);
    }

    /// Of one that does not listen any more: connections that nobody has accepted are reset (inet_csk_listen_stop in
    /// net/ipv4/inet_connection_sock.c).
    pub fn empty(&mut self, fd: i32) {
        let mut message = [0; Accepted::BYTES];
        loop {
            let passed = passing::receive(kernel::borrow(fd), &mut message, RecvFlags::DONTWAIT);
            let passed = match passed {
                Ok(passed) if passed.len > 0 => passed,
                Err(Errno::INTR) => continue,
                _ => return,
            };
            let at_once = [1_i32, 0].map(i32::to_ne_bytes).concat();
            let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
            match (Accepted::from_bytes(message), passed.fds.first()) {
                (Some(Accepted::Ours(name)), Some(_)) => {
                    let option = (level, option, at_once);
                    let _ = self.ask(&Request::SetOption { name, option }, None);
                }
                (Some(Accepted::Kernel), Some(fd)) => {
                    let _ = kernel::set_option(fd.as_raw_fd(), level, option, &at_once);
                }
                _ => {}
            }
        }
    }
}
