#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `at` is the byte offset in the expression; its length where something is missing at the end.
    #[error("filter: {said}, at byte {at}")]
    Refused { said: String, at: usize },
    #[error(
        "filter: bytes of a link header, which packets do not have yet at their first hook, at byte {at}"
    )]
    LinkBytes { at: usize },
    #[error("filter: a NUL byte, at byte {at}")]
    Nul { at: usize },
    #[error(
        "filter: not decidable from packet bytes (inbound, outbound, ifindex); use -i and the regions' points"
    )]
    Metadata,
    #[error("filter: it needs a loop (protochain), which a program in the kernel cannot have")]
    Loop,
    #[error("filter: libpcap made {insns} instructions of it; 4096 are the most")]
    Length { insns: usize },
    #[error(
        "filter: instruction {insn} of libpcap's program is not understood; please report the expression"
    )]
    Malformed { insn: usize },
    #[error(
        "filter: it reads up to byte {end} of the packet, and {reach} from the network header are copied; test an earlier one"
    )]
    TooFar { end: u64, reach: u32 },
    #[error(
        "filter: {needed} instructions, and the kernel program has room for {room}; make it shorter"
    )]
    TooLong { needed: usize, room: usize },
    #[error(
        "filter: compiled for packets with a link header, and the hook's begin at the network header"
    )]
    LinkHeader,
}

impl FilterError {
    /// Byte offset in the expression, where the error is at one place of it.
    pub fn at(&self) -> Option<usize> {
        match self {
            FilterError::Refused { at, .. }
            | FilterError::LinkBytes { at }
            | FilterError::Nul { at } => Some(*at),
            _ => None,
        }
    }
}
