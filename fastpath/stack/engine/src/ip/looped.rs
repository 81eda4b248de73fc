//! Packets to addresses of ours: they do not leave, and are received in the engine's next [`crate::Engine::advance`].
use super::interface::Interface;
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

    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl Interface {
    pub(crate) fn looped(&self) -> usize {
        self.looped.packets.len()
    }

    /// Nothing more is to be sent until some are received.
    pub(crate) fn has_looped_enough(&self) -> bool {
        self.looped.bytes >= ENOUGH_BYTES
    }

    /// For [`Interface::receive_looped`].
    pub(crate) fn next_looped(&mut self) -> Option<(Vec<u8>, RxMeta)> {
        let packet = self.looped.packets.pop_front()?;
        self.looped.bytes -= packet.bytes.len();
        let meta = RxMeta {
            // Nothing was between.
            checksum: RxChecksum::Good,
            segment_bytes: packet.meta.segmentation.map_or(0, |s| s.segment_bytes),
        };
        Some((packet.bytes, meta))
    }
}
