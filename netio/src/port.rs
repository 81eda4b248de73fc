//! The trait: bursts in, bursts out, what the port can do, and a descriptor to wait for.
use crate::error::PortError;
use crate::offload::{Accepts, Offload};
use crate::scattered::Scattered;
use hopscope_event::clock::Tsc;
use serde::Serialize;
use std::os::fd::BorrowedFd;

/// A received frame, in the port's memory: it is gone when the visitor returns.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// From the Ethernet header on, without FCS.
    pub bytes: &'a [u8],
    /// Length on the wire; more than `bytes` when the port cut the frame.
    pub wire_len: usize,
    /// When the port saw it; a capture reads the clock once for each burst.
    pub received: Tsc,
    pub offload: Offload,
}

/// What a filler wrote into the slot that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// Bytes used from the start of the slot; 0: nothing to send, and the burst ends here.
    pub len: usize,
    pub offload: Offload,
}

impl Outgoing {
    /// Bytes to be sent; `None` where the burst ends.
    pub(crate) fn checked(self, name: &str, max: usize) -> Result<Option<usize>, PortError> {
        match self.len {
            0 => Ok(None),
            len if len <= max => Ok(Some(len)),
            len => Err(PortError::TooLong {
                name: name.into(),
                len,
                max,
                next_step: "send shorter frames, or use a port with a larger MTU",
            }),
        }
    }
}

/// What a port can do, so that a user is told instead of surprised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// Longest frame that can be sent or received, in bytes.
    pub max_frame_len: usize,
    /// [`Offload`] is honoured in both directions.
    pub offload: bool,
}

/// Since the port was opened. What the kernel dropped is asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    pub received: u64,
    pub received_bytes: u64,
    /// Arrived, and lost before they could be received: ring full, no buffer.
    pub receive_dropped: u64,
    /// The device is gone: `receive_dropped` is what was read last, and more may have been.
    pub device_gone: bool,
    /// Longer than [`Capabilities::max_frame_len`], handed over cut.
    pub receive_cut: u64,
    /// Taken over by the port.
    pub sent: u64,
    pub sent_bytes: u64,
    /// Taken over, and given up by the kernel or the medium. Part of `sent`.
    pub send_failed: u64,
}

/// Looks at received frames, one after the other.
pub type Visit<'a> = &'a mut dyn FnMut(Frame<'_>);

/// Writes a frame into the slot that it is given.
pub type Fill<'a> = &'a mut dyn FnMut(&mut [u8]) -> Outgoing;

/// A place where frames come in and go out. Nothing here blocks.
pub trait PacketIo: Send {
    fn capabilities(&self) -> Capabilities;

    /// Readable when frames may have arrived; `None` where there is nothing to wait for.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Shows up to `max` frames to `visit`, oldest first, and returns how many there were.
    ///
    /// # Errors
    /// When the device is gone or refuses: [`PortError`] says which and what to do.
    /// [`PortError::Ended`] when no frame can come again.
    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError>;

    /// Lets `fill` write up to `count` frames where the port will send them from, and returns how
    /// many were taken over: fewer when there is no room now. `fill` is given a slot of
    /// [`Capabilities::max_frame_len`] bytes with unspecified content. Frames may wait in the
    /// port until [`PacketIo::flush`]. Zero from a full port is not an error: receive, or wait.
    ///
    /// # Errors
    /// As for [`PacketIo::receive`]; [`PortError::TooLong`] when `fill` claims more than the slot.
    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError>;

    /// Hands on what [`PacketIo::send`] took over, as far as there is room: what is left waits for
    /// the next call. Returns how many frames still wait.
    ///
    /// # Errors
    /// As for [`PacketIo::receive`].
    fn flush(&mut self) -> Result<usize, PortError>;

    /// False while the device is down: frames cannot be sent, and none come, until it is up again. To be asked after
    /// [`PortError::Down`], and when the descriptor has an error, which is taken from it.
    ///
    /// # Errors
    /// [`PortError::Gone`]: the device was deleted.
    fn is_up(&mut self) -> Result<bool, PortError> {
        Ok(true)
    }

    /// Readable when [`PacketIo::is_up`] and [`PacketIo::mtu`] may say something else than before, until the former is asked. `None`: they
    /// are to be asked now and then.
    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The device's MTU as it is now, in bytes of IP packets, but no more than fits the port's frames: those of a port without offload are
    /// as long as the MTU was when it was opened. `None`: there is no device.
    ///
    /// # Errors
    /// As for [`PacketIo::is_up`].
    fn mtu(&mut self) -> Result<Option<usize>, PortError> {
        Ok(None)
    }

    /// Since the last call a frame was refused because it is longer than the device's MTU, which is another one than before. Segments that
    /// are left to the kernel never are: it cuts them to any size, and what is too long is lost without a word.
    fn takes_less(&mut self) -> bool {
        false
    }

    /// What the kernel may leave undone of frames from now on, where it can be told: a TAP port that was opened
    /// with offload. Elsewhere nothing changes.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn accept(&mut self, _what: Accepts) -> Result<(), PortError> {
        Ok(())
    }

    /// The port's way without a copy in between, where it has one.
    fn scattered(&mut self) -> Option<&mut dyn Scattered> {
        None
    }

    /// # Errors
    /// When the kernel does not answer.
    fn counters(&mut self) -> Result<Counters, PortError>;
}
