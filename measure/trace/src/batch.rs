//! Records of one thread as they lie in a chunk: a fixed head, then the encoded records.
use crate::codec;
use crate::format::BATCH_HEADER_BYTES;
use hopscope_event::{Record, ThreadIx};

/// The head of a batch of records, readable without decoding them.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | thread |
/// | 4 | 4 | number of records |
/// | 8 | 8 | ring index of the first record |
/// | 16 | 8 | records overwritten before the first |
/// | 24 | 8 | slots reserved and never stored, before or among these |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHead {
    pub thread: ThreadIx,
    pub records: u32,
    /// Free-running ring index of the first record.
    pub first_index: u64,
    /// Overwritten since the previous batch of this thread.
    pub lost_before: u64,
    pub torn_before: u64,
}

impl BatchHead {
    pub(crate) fn to_bytes(self) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.thread.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.records.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first_index.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lost_before.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.torn_before.to_le_bytes());
        bytes
    }

    /// `None` when `payload` is shorter than a head, or than its number of records allows.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<BatchHead> {
        let (head, records) = payload.split_first_chunk::<BATCH_HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let head = BatchHead {
            thread: ThreadIx(word(0) as u32),
            records: (word(0) >> 32) as u32,
            first_index: word(8),
            lost_before: word(16),
            torn_before: word(24),
        };
        (head.records as usize <= records.len() / codec::BEST).then_some(head)
    }
}

/// Records of one thread, in ring order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost_before: u64,
    pub torn_before: u64,
    pub records: Vec<Record>,
}

impl OwnedBatch {
    pub(crate) fn of_payload(payload: &[u8]) -> Option<OwnedBatch> {
        let head = BatchHead::of_payload(payload)?;
        let records = codec::decode(&payload[BATCH_HEADER_BYTES..], head.records as usize)?;
        Some(OwnedBatch {
            thread: head.thread,
            first_index: head.first_index,
            lost_before: head.lost_before,
            torn_before: head.torn_before,
            records,
        })
    }
}
