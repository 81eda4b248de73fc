//! Packets to addresses of ours: they do not leave, and are received in the engine's next [`crate::Engine::advance`].
use super::outbox::Frame;
use crate::frame::{RxChecksum, RxMeta, TxFrame};
use std::collections::VecDeque;

/// What is sent goes on when they were received, so that they are in the cache still.
const ENOUGH_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Looped {
    packets: VecDeque<Frame>,
    bytes: usize,
}

impl Looped {
    /// The frame in `slot`, without the link's header.
    pub(super) fn push(&mut self, slot: &[u8], link_bytes: usize, meta: TxFrame) {
        let bytes = slot.get(link_bytes..meta.len).unwrap_or_default().to_vec();
        let packet = Frame { bytes, meta };
        self.bytes += packet.bytes.len();
        self.packets.push_back(packet);
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.bytes >= ENOUGH_BYTES
    }

    pub(super) fn pop(&mut self) -> Option<(Vec<u8>, RxMeta)> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes.len();
        let meta = RxMeta {
            // Nothing was between.
            checksum: RxChecksum::Good,
            segment_bytes: packet.meta.segmentation.map_or(0, |s| s.segment_bytes),
            for_all: false,
        };
        Some((packet.bytes, meta))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes as u64
    }
}
