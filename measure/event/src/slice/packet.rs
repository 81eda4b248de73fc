//! A finished packet: its record, and its bytes if they were captured.
use super::SliceRecord;
use alloc::vec::Vec;

/// The beginning of a packet, up to the snap length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SliceBytes {
    /// From `bytes[0]` to the packet's end, in bytes; more than `bytes` has where it was cut.
    pub original_len: u32,
    /// How many of `bytes` are the link's header; the network's follows. 0: not captured.
    pub link_len: u16,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sliced {
    pub record: SliceRecord,
    /// `None`: not captured, or lost ([`super::Counter::BytesLost`]).
    pub bytes: Option<SliceBytes>,
}

impl Sliced {
    /// The network header and what follows, as far as captured.
    pub fn network_bytes(&self) -> Option<&[u8]> {
        let bytes = self.bytes.as_ref()?;
        bytes.bytes.get(usize::from(bytes.link_len)..)
    }
}
