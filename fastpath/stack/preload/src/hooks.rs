//! The C symbols that stand in libc's place, and all that is unsafe: pointers of the program, system calls, the lock. What is behind
//! takes slices and values. Nothing here is called with the lock held.
//!
//! Each hook first asks the table; what is the kernel's goes on to the symbol behind (libc's, or another preloaded library's). Such a
//! call may be a point at which the thread is cancelled: hooks are `C-unwind` and hold nothing there.
#![allow(unsafe_code)]

mod addresses;
mod aliases;
mod both;
mod by_number;
mod descriptors;
mod epolling;
mod executing;
mod files;
mod first_thread;
mod instance;
mod io_uring;
mod jumps;
mod limit;
mod lock;
mod memory;
mod messages;
mod naming;
mod polling;
mod printing;
mod processes;
mod real;
mod reserve;
mod selecting;
mod signals;
mod socket_streams;
mod sockets;
mod start;
mod streams;
mod turns;
mod wait;
