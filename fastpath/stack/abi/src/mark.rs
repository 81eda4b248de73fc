//! The mark that the preloaded library puts on the stack while a function of libc's works for it, for who looks at its system
//! calls from outside (`stack run --trace`): two words, this one and its own address.

/// No address and no small number.
pub const WORD: u64 = 0x9d5b_7f13_e2c8_604b;
