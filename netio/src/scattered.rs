//! Frames in memory that others write at any time, such as a guest's: between there and the kernel nothing is copied.
//!
//! The kernel alone touches that memory, and copies it once. What may be left undone of a frame is said by an
//! [`Offload`] of the caller's own memory, so that what was checked is what the kernel acts on.
use crate::error::PortError;
use crate::offload::Offload;
use vm_memory::VolatileSlice;

pub use crate::sys::PARTS_MAX;

/// What became of a frame that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    Sent,
    /// There is no room now, and nothing was taken over: wait as for [`crate::PacketIo::send`].
    Full,
    /// The memory could not be read, and nothing was taken over.
    Unreadable,
    /// More than [`PARTS_MAX`] parts; nothing was taken over.
    TooMany,
}

/// What came of a look for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    Nothing,
    /// In the parts in their order, then in the rest.
    Frame {
        len: usize,
        offload: Offload,
    },
    /// A frame was lost: the memory could not be written.
    Unwritable,
}

pub trait Scattered {
    /// Longest frame in bytes.
    fn max_frame_len(&self) -> usize;

    /// Sends one frame.
    ///
    /// # Errors
    /// As for [`crate::PacketIo::send`].
    fn send_from(
        &mut self,
        offload: Offload,
        parts: &[VolatileSlice<'_>],
    ) -> Result<SendStatus, PortError>;

    /// Receives one frame. Of more than [`PARTS_MAX`] parts those behind are left out.
    ///
    /// # Errors
    /// As for [`crate::PacketIo::receive`].
    fn receive_into(
        &mut self,
        parts: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Result<Arrived, PortError>;
}
