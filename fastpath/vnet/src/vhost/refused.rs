//! Protocol errors of a front end, one line each. After any of these the connection ends.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a message of version {0}: 1 is known")]
    Version(u32),
    #[error("a message of {0} bytes: no known one is longer than {max}", max = super::limits::PAYLOAD_MAX)]
    TooLong(u32),
    #[error("{request}: {len} bytes do not make one")]
    Length { request: &'static str, len: usize },
    #[error("{request} came with {came} descriptors in place of {wanted}")]
    Descriptors {
        request: &'static str,
        came: usize,
        wanted: usize,
    },
    #[error("request {0} is not known here")]
    Unknown(u32),
    #[error(
        "live migration ({request}) is not possible with this back end: migrate without it, or stop the guest"
    )]
    Migration { request: &'static str },
    #[error("queue {queue}: there are {queues}")]
    NoQueue { queue: u32, queues: usize },
    #[error("queue {queue}: a size of {size}")]
    Size { queue: u32, size: u32 },
    #[error("queue {queue} would have to be polled: kicks need a descriptor")]
    Polling { queue: u32 },
    #[error("queue {queue}: a base of {base}, where an index has 16 bits")]
    Base { queue: u32, base: u32 },
    #[error("features {bits:#x} were acknowledged but not offered")]
    NotOffered { bits: u64 },
    #[error("{count} memory regions: 1 … {max} are known", max = super::limits::REGIONS_MAX)]
    Regions { count: u32 },
    #[error("a memory region of {len:#x} bytes at {guest:#x} wraps, is empty, or overlaps another")]
    Region { guest: u64, len: u64 },
    #[error("queue {queue}: {user:#x} is in no memory region")]
    NotMapped { queue: usize, user: u64 },
    #[error("message {asked} was answered by {len} bytes for {request}")]
    OtherAnswer { asked: u32, request: u32, len: u32 },
}
