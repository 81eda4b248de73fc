//! Regions of the guest's memory, and from the front end's addresses to the guest's.
use super::Refused;
use vm_memory::GuestAddress;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Guest physical.
    pub guest: u64,
    pub len: u64,
    /// Where the front end has it in its own memory: queues are told by such addresses.
    pub user: u64,
    /// Of the region, within what its descriptor maps.
    pub offset: u64,
}

impl Region {
    fn last(self) -> Option<u64> {
        let (len, last) = (self.len, self.len.checked_sub(1)?);
        self.user.checked_add(last)?;
        self.offset.checked_add(len)?;
        self.guest.checked_add(last)
    }
}

/// # Errors
/// A region that is none, or two of the same address.
pub(super) fn check(regions: &[Region]) -> Result<(), Refused> {
    for (n, region) in regions.iter().enumerate() {
        let fair = region.last().is_some_and(|last| {
            let apart = |other: &Region| {
                let (start, other_last) = (other.guest, other.last().unwrap_or(u64::MAX));
                last < start || other_last < region.guest
            };
            regions[..n].iter().all(apart)
        });
        if !fair {
            let (guest, len) = (region.guest, region.len);
            return Err(Refused::Region { guest, len });
        }
    }
    Ok(())
}

pub(super) fn guest(regions: &[Region], user: u64) -> Option<GuestAddress> {
    regions.iter().find_map(|region| {
        let offset = user.checked_sub(region.user)?;
        (offset < region.len).then(|| GuestAddress(region.guest + offset))
    })
}
