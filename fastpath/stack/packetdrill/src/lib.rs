//! The engine below packetdrill: `packetdrill --so_filename=libhopscope_stack_packetdrill.so SCRIPT`.
//!
//! Time is virtual: it passes when packetdrill sleeps or waits for a packet. Preloaded as well, the library answers the
//! getsockopt(TCP_INFO) that scripts' embedded code calls in libc.
#![deny(unsafe_code)]

mod blocking;
mod calls;
mod descriptors;
mod epoll;
#[allow(unsafe_code)]
mod interface;
mod options;
mod stack;
mod sysctls;
