//! What both layouts of a queue can do, so that the ends above need not know which it is.
use super::{Chain, Memory, RingError, Segment};
use crate::policy::Peer;

/// The device's end of a queue, whatever its layout. After an error the queue is to be stopped.
pub trait DeviceRing {
    /// Whether an entry is available.
    ///
    /// # Errors
    /// What the driver wrote cannot be.
    fn has_avail(&self, memory: &Memory) -> Result<bool, RingError>;

    /// Reads how many entries are available: all of a split ring, one of a packed ring.
    ///
    /// # Errors
    /// As for [`DeviceRing::has_avail`].
    fn poll_avail(&mut self, memory: &Memory) -> Result<u16, RingError>;

    /// Entries that the last [`DeviceRing::poll_avail`] or [`DeviceRing::next_avail`] found, and that were not taken since.
    fn known_avail(&self) -> u16;

    /// Takes the oldest available entry.
    ///
    /// # Errors
    /// What the driver wrote is no chain.
    fn next_avail(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError>;

    /// Undoes the last [`DeviceRing::next_avail`]: the entry is the next one again.
    fn put_back_avail(&mut self, last: &Chain);

    /// Where this end resumes after a restart, when it holds no entry: as in `VHOST_USER_GET_VRING_BASE`.
    fn vring_base(&self) -> u32;

    /// Writes a used entry with `len` bytes written; the driver sees it after [`DeviceRing::publish_used`].
    ///
    /// # Errors
    /// The queue is not in the guest's memory.
    fn add_used(&mut self, memory: &Memory, id: u16, len: u32) -> Result<(), RingError>;

    /// Makes all used entries visible to the driver, at once.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    fn publish_used(&mut self, memory: &Memory) -> Result<(), RingError>;

    /// Whether the driver wants a used-buffer notification for what was published since [`DeviceRing::notified`]
    /// (virtio 1.3, 2.7.7 and 2.8.10). Reading it changes nothing.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError>;

    /// The driver was notified, or needs no notification.
    fn notified(&mut self);

    /// Enables available-buffer notifications (kicks), from the entry (split) or descriptor (packed) `ahead` of the
    /// next one on. True: it is available already, and no notification will come for it. Without the event index
    /// `ahead` is 0.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError>;

    /// Disables available-buffer notifications while this end polls.
    ///
    /// # Errors
    /// As for [`DeviceRing::add_used`].
    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError>;
}

/// The driver's end of a queue, whatever its layout.
pub trait DriverRing {
    /// Free descriptors: an entry takes one for each segment.
    fn free_descriptors(&self) -> u16;

    /// Makes an entry available to the device, and returns its number.
    ///
    /// # Errors
    /// More segments than free descriptors, or none.
    fn add_avail(&mut self, memory: &Memory, segments: &[Segment]) -> Result<u16, RingError>;

    /// Takes the oldest used entry: its number, and how many bytes the device wrote.
    ///
    /// # Errors
    /// The device used an entry that it does not have.
    fn next_used(&mut self, memory: &Memory) -> Result<Option<(u16, u32)>, RingError>;

    /// Whether the device wants an available-buffer notification (kick) for what was added since
    /// [`DriverRing::notified`]. Reading it changes nothing.
    ///
    /// # Errors
    /// The queue is not in the memory.
    fn needs_notification(&self, memory: &Memory) -> Result<Peer, RingError>;

    /// The device was notified, or needs no notification.
    fn notified(&mut self);

    /// Enables used-buffer notifications (calls, interrupts), from the used entry (split) or descriptor (packed)
    /// `ahead` of the next one on. True: it is used already.
    ///
    /// # Errors
    /// As for [`DriverRing::needs_notification`].
    fn enable_notification(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError>;

    /// Disables used-buffer notifications while this end polls.
    ///
    /// # Errors
    /// As for [`DriverRing::needs_notification`].
    fn disable_notification(&mut self, memory: &Memory) -> Result<(), RingError>;
}
