//! What a peer did that no queue allows.
use vm_memory::GuestMemoryError;

#[derive(Debug, thiserror::Error)]
pub enum RingError {
    #[error("a queue of {size} entries: a power of two up to 32768 is allowed")]
    Size { size: u16 },
    #[error("the {part} of the queue is at {address:#x}: it must be a multiple of {align}")]
    Alignment {
        part: &'static str,
        address: u64,
        align: u64,
    },
    #[error("the peer's index went from {from} to {to}: more than the queue's {size} entries")]
    IndexJump { from: u16, to: u16, size: u16 },
    #[error("descriptor {index} of a table of {size}")]
    OutOfTable { index: u32, size: u32 },
    #[error("a chain of more than {size} descriptors: a loop, or longer than the queue")]
    TooLong { size: u16 },
    #[error("an indirect table {what}")]
    Indirect { what: &'static str },
    #[error("a device-readable buffer behind a device-writable one")]
    Order,
    #[error("the peer used entry {id}, which is not outstanding")]
    NotOutstanding { id: u32 },
    #[error("entry {id} was made available twice")]
    Twice { id: u32 },
    #[error(
        "entries of {descriptors} descriptors at once: more than the queue's {size}, so some share one"
    )]
    Shared { descriptors: u32, size: u32 },
    #[error("{asked} descriptors needed, {free} are free")]
    Full { asked: usize, free: u16 },
    #[error("an empty chain")]
    Empty,
    #[error(
        "the last back end did not stop at entry {slot} (wrap counter {}) as the front end says, and the ring does not \
         say where: load the guest's driver anew", u8::from(*wrap)
    )]
    Lost { slot: u16, wrap: bool },
    #[error("the queue lies outside the guest's memory: {0}")]
    Memory(#[from] GuestMemoryError),
}
