//! What C libraries keep at a thread's fs base.

/// Offsets of the kernel thread id from the fs base: glibc (`struct pthread.tid`), musl.
pub const TID_OFFSETS: [u32; 2] = [0x2d0, 0x30];
