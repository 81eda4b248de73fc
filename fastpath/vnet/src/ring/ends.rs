//! What both layouts of a queue can do, so that the ends above need not know which it is.
use super::{Chain, Memory, RingError, Segment};
use crate::policy::Peer;

/// The device's end of a queue, whatever its layout. After an error the queue is to be stopped.
pub trait DeviceRing {
    /// Whether an entry could be taken now.
    ///
    /// # Errors
    /// What the driver wrote cannot be.
    fn more(&self, memory: &Memory) -> Result<bool, RingError>;

    /// Entries that could be taken now, as far as one look tells: all of a split ring, one of a packed ring.
    ///
    /// # Errors
    /// As for [`DeviceRing::more`].
    fn look(&mut self, memory: &Memory) -> Result<u16, RingError>;

    /// Entries that the last look found, [`DeviceRing::pop`]'s too, and that were not taken since.
    fn known(&self) -> u16;

    /// Takes the oldest available entry.
    ///
    /// # Errors
    /// What the driver wrote is no chain.
    fn pop(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError>;

    /// Puts the entry that was taken last back: it is the next to be taken again.
    fn untake(&mut self, last: &Chain);

    /// Where this end goes on after a restart, when it has no entry: as in `VHOST_USER_GET_VRING_BASE`.
    fn base(&self) -> u32;

    /// Gives an entry back with `len` bytes written; the driver sees it after [`DeviceRing::publish`].
    ///
    /// # Errors
    /// The queue is not in the guest's memory.
    fn give_back(&mut self, memory: &Memory, id: u16, len: u32) -> Result<(), RingError>;

    /// Shows everything given back to the driver, at once.
    ///
    /// # Errors
    /// As for [`DeviceRing::give_back`].
    fn publish(&mut self, memory: &Memory) -> Result<(), RingError>;

    /// Whether the driver asks to be called for what was published since [`DeviceRing::announced`].
    /// Asking does not change the answer.
    ///
    /// # Errors
    /// As for [`DeviceRing::give_back`].
    fn driver(&self, memory: &Memory) -> Result<Peer, RingError>;

    /// The driver was called, or needs no call.
    fn announced(&mut self);

    /// Asks for a kick at the entry (split) or descriptor (packed) `ahead` of the next one, and says
    /// whether it came meanwhile: true means look again. Only the event index asks further ahead than 0.
    ///
    /// # Errors
    /// As for [`DeviceRing::give_back`].
    fn ask(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError>;

    /// Asks for no kicks while this end looks by itself.
    ///
    /// # Errors
    /// As for [`DeviceRing::give_back`].
    fn hush(&mut self, memory: &Memory) -> Result<(), RingError>;
}

/// The driver's end of a queue, whatever its layout.
pub trait DriverRing {
    /// Descriptors that are free: an entry takes one for each segment.
    fn free(&self) -> u16;

    /// Puts an entry into the ring, where the device can see it, and gives its number.
    ///
    /// # Errors
    /// More segments than free descriptors, or none.
    fn add(&mut self, memory: &Memory, segments: &[Segment]) -> Result<u16, RingError>;

    /// Takes back the oldest used entry: its number, and how many bytes were written.
    ///
    /// # Errors
    /// The device gave back what it does not have.
    fn reclaim(&mut self, memory: &Memory) -> Result<Option<(u16, u32)>, RingError>;

    /// Whether the device asks to be kicked for what was published since [`DriverRing::announced`].
    /// Asking does not change the answer.
    ///
    /// # Errors
    /// The queue is not in the memory.
    fn device(&self, memory: &Memory) -> Result<Peer, RingError>;

    /// The device was kicked, or needs no kick.
    fn announced(&mut self);

    /// Asks for a call at the used entry (split) or descriptor (packed) `ahead` of the next one; true
    /// when it is there already.
    ///
    /// # Errors
    /// As for [`DriverRing::device`].
    fn ask(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError>;

    /// Asks for no calls while this end looks by itself.
    ///
    /// # Errors
    /// As for [`DriverRing::device`].
    fn hush(&mut self, memory: &Memory) -> Result<(), RingError>;
}

impl<R: DeviceRing + ?Sized> DeviceRing for Box<R> {
    fn more(&self, memory: &Memory) -> Result<bool, RingError> {
        (**self).more(memory)
    }

    fn look(&mut self, memory: &Memory) -> Result<u16, RingError> {
        (**self).look(memory)
    }

    fn known(&self) -> u16 {
        (**self).known()
    }

    fn pop(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError> {
        (**self).pop(memory)
    }

    fn untake(&mut self, last: &Chain) {
        (**self).untake(last);
    }

    fn base(&self) -> u32 {
        (**self).base()
    }

    fn give_back(&mut self, memory: &Memory, id: u16, len: u32) -> Result<(), RingError> {
        (**self).give_back(memory, id, len)
    }

    fn publish(&mut self, memory: &Memory) -> Result<(), RingError> {
        (**self).publish(memory)
    }

    fn driver(&self, memory: &Memory) -> Result<Peer, RingError> {
        (**self).driver(memory)
    }

    fn announced(&mut self) {
        (**self).announced();
    }

    fn ask(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        (**self).ask(memory, ahead)
    }

    fn hush(&mut self, memory: &Memory) -> Result<(), RingError> {
        (**self).hush(memory)
    }
}

impl<R: DriverRing + ?Sized> DriverRing for Box<R> {
    fn free(&self) -> u16 {
        (**self).free()
    }

    fn add(&mut self, memory: &Memory, segments: &[Segment]) -> Result<u16, RingError> {
        (**self).add(memory, segments)
    }

    fn reclaim(&mut self, memory: &Memory) -> Result<Option<(u16, u32)>, RingError> {
        (**self).reclaim(memory)
    }

    fn device(&self, memory: &Memory) -> Result<Peer, RingError> {
        (**self).device(memory)
    }

    fn announced(&mut self) {
        (**self).announced();
    }

    fn ask(&mut self, memory: &Memory, ahead: u16) -> Result<bool, RingError> {
        (**self).ask(memory, ahead)
    }

    fn hush(&mut self, memory: &Memory) -> Result<(), RingError> {
        (**self).hush(memory)
    }
}
