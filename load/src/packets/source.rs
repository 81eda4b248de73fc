//! Where the bytes of a packet come from.
use super::frame::Frames;
use super::order::FlowOrder;
use super::replay::Replay;
use super::sizes::SizeDraw;
use super::stamp::STAMP_BYTES;
use std::sync::Arc;

pub enum Source {
    Generated(Generated),
    Replay(Replay),
}

pub struct Generated {
    pub frames: Arc<Frames>,
    pub order: FlowOrder,
    pub sizes: SizeDraw,
}

impl Source {
    /// Writes the next packet; its length and its flow.
    #[inline]
    pub fn write(
        &mut self,
        slot: &mut [u8],
        stamp: impl FnOnce(u32) -> [u8; STAMP_BYTES],
    ) -> (usize, u32) {
        match self {
            Source::Generated(generated) => {
                let flow = generated.order.next_flow();
                let size = generated.sizes.next_index();
                let len = generated.frames.write(slot, flow, size, stamp(flow));
                (len, flow)
            }
            Source::Replay(replay) => replay.write(slot),
        }
    }
}
