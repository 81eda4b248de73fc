//! Socket calls of an unmodified program, on the stack's engine in the program's own process.
//!
//! ```text
//! program ── hooks ── table: the kernel's? ── libc
//!              └─ lock ── State: descriptions, epoll sets ── Engine ── port
//! ```
//!
//! A descriptor of the kernel takes no lock: [`table`] says with one load whose it is. All else is under one lock. Who waits
//! sleeps in the kernel's ppoll on the port, on the program's descriptors and on a doorbell; whoever wakes up does a turn of the
//! stack's loop ([`stack`]) and rings the doorbells of those that it concerns ([`sleep`]). Nobody waits where there is a thread that
//! computes: then [`tick`] does the turns.
#![deny(unsafe_code)]

mod accept;
mod attach;
mod bells;
mod close;
mod connect;
mod control;
mod data;
mod datagram;
mod description;
mod edges;
mod epoll;
mod free_ports;
mod hooks;
mod instance;
mod kernel;
mod kernel_parts;
mod listen;
mod made;
mod numbers;
mod options;
mod owner;
mod pieces;
mod policy;
mod privileged;
mod process;
mod remote;
mod remote_datagrams;
mod returning;
mod rows;
mod say;
mod sending;
mod sending_there;
mod set;
mod sets;
mod sleep;
mod sleeper;
mod spares;
mod stack;
mod state;
mod step;
mod table;
mod tick;
mod ticker;
mod together;
mod told;
mod unlistening;
