//! Generated machine code: probes, the slow path that claims a context, the translation of
//! indirect jumps. Everything here is bytes and fix-ups; nothing here writes to a process.
pub mod body_copy;
mod branches;
pub mod capture;
pub mod checked_copy;
pub mod dispatch;
pub mod follow;
pub mod frames;
pub mod fused;
pub mod head;
pub mod inlined;
pub mod lookup;
pub mod probe;
pub mod slow;
pub mod switch;
