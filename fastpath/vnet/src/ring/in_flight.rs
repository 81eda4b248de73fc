//! Entries that the device has taken and not used yet.
use super::RingError;

pub(super) struct InFlight {
    /// By number: descriptors of the queue that the entry takes; 0: this end has none of that number.
    by_id: Vec<u16>,
    descriptors: u32,
}

impl InFlight {
    pub(super) fn new(size: u16) -> InFlight {
        InFlight {
            by_id: vec![0; size.into()],
            descriptors: 0,
        }
    }

    /// # Errors
    /// The driver has given the entry already, or more descriptors than there are: one would be in two entries.
    pub(super) fn take(&mut self, id: u16, count: u16) -> Result<(), RingError> {
        let size = self.by_id.len() as u32;
        let index = u32::from(id);
        let descriptors = self.descriptors + u32::from(count);
        match self.by_id.get_mut(usize::from(id)) {
            None => Err(RingError::OutOfTable { index, size }),
            Some(taken) if *taken != 0 => Err(RingError::Twice { id: index }),
            Some(_) if descriptors > size => Err(RingError::Shared { descriptors, size }),
            Some(taken) => {
                *taken = count;
                self.descriptors = descriptors;
                Ok(())
            }
        }
    }

    /// Descriptors of the entry; 0: it was not taken.
    pub(super) fn give_back(&mut self, id: u16) -> u16 {
        let taken = self.by_id.get_mut(usize::from(id));
        let count = taken.map(std::mem::take).unwrap_or(0);
        self.descriptors -= u32::from(count);
        count
    }
}
