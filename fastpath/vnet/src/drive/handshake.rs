//! What is agreed with the back end, and both queues told to it.
use super::arena::{Arena, Place, address};
use super::error::DriveError;
use super::wire::Wire;
use crate::common::eventfd::Eventfd;
use crate::common::feature::{
    CSUM, EVENT_IDX, GUEST_CSUM, GUEST_TSO4, GUEST_TSO6, HOST_TSO4, HOST_TSO6, MRG_RXBUF,
    Negotiated, VERSION_1,
};
use crate::vhost::{PROTOCOL_FEATURES, PROTOCOL_REPLY_ACK, RING_PACKED, Request};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// What a front end would like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) packed: bool,
    pub(super) event_idx: bool,
    /// Frames may have a checksum or segments left to be done, both ways: a TAP device is behind this end.
    pub(super) unfinished: bool,
}

/// # Errors
/// The back end lacks a required feature.
pub(super) fn negotiate(wire: &mut Wire, wanted: Wanted) -> Result<Negotiated, DriveError> {
    wire.say(&Request::SetOwner, &[])?;
    let offered = wire.say(&Request::GetFeatures, &[])?;
    if offered & PROTOCOL_FEATURES != 0 {
        let protocol = wire.say(&Request::GetProtocolFeatures, &[])? & PROTOCOL_REPLY_ACK;
        wire.say(&Request::SetProtocolFeatures(protocol), &[])?;
        wire.acks = protocol != 0;
    }
    let taken = choose(offered, wanted)?;
    wire.say(&Request::SetFeatures(taken.0), &[])?;
    Ok(taken)
}

fn choose(offered: u64, wanted: Wanted) -> Result<Negotiated, DriveError> {
    if offered & VERSION_1 == 0 {
        return Err(DriveError::NotOffered {
            feature: "VIRTIO_F_VERSION_1",
            next_step: "devices older than virtio 1.0 are not driven here",
        });
    }
    if wanted.packed && offered & RING_PACKED == 0 {
        return Err(DriveError::NotOffered {
            feature: "VIRTIO_F_RING_PACKED",
            next_step: "leave --packed out",
        });
    }
    let mut like = VERSION_1 | MRG_RXBUF | PROTOCOL_FEATURES;
    if wanted.packed {
        like |= RING_PACKED;
    }
    if wanted.event_idx {
        like |= EVENT_IDX;
    }
    let mut taken = offered & like;
    if wanted.unfinished {
        taken |= offered & (CSUM | GUEST_CSUM);
        // Segments need checksums (5.1.3.1).
        if taken & CSUM != 0 {
            taken |= offered & (HOST_TSO4 | HOST_TSO6);
        }
        if taken & GUEST_CSUM != 0 {
            taken |= offered & (GUEST_TSO4 | GUEST_TSO6);
        }
    }
    Ok(Negotiated(taken))
}

/// The eventfds of a queue.
pub(super) struct Eventfds {
    pub(super) kick: Eventfd,
    pub(super) call: Eventfd,
    /// Rung by a back end that gives the queue up.
    pub(super) error: Eventfd,
}

impl Eventfds {
    /// # Errors
    /// No descriptors are left.
    pub(super) fn new(queue: usize) -> Result<Eventfds, DriveError> {
        let bell = || {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            let eventfd = EventFd::from_value_and_flags(0, flags);
            let eventfd = eventfd.map_err(DriveError::system("making an eventfd"))?;
            Eventfd::new(queue, eventfd.into()).map_err(DriveError::from)
        };
        Ok(Eventfds {
            kick: bell()?,
            call: bell()?,
            error: bell()?,
        })
    }
}

/// Shares the memory and starts both queues, whose rings are laid out in it already.
///
/// # Errors
/// The back end refuses.
pub(super) fn start(
    wire: &mut Wire,
    arena: &Arena,
    packed: bool,
    queues: [(&Place, &Eventfds); 2],
) -> Result<(), DriveError> {
    wire.say(&Request::SetMemTable(vec![arena.region()]), &[arena.fd()])?;
    for (queue, (place, eventfds)) in (0..).zip(queues) {
        let size = place.layout.size.into();
        wire.say(&Request::SetVringNum { queue, size }, &[])?;
        // Packed rings begin in their first lap: wrap counters of 1, for both ends.
        let base = if packed { 0x8000_8000 } else { 0 };
        wire.say(&Request::SetVringBase { queue, base }, &[])?;
        wire.say(&Request::SetVringAddr(address(queue, place.layout)), &[])?;
        let descriptor = true;
        let call = Request::SetVringCall { queue, descriptor };
        wire.say(&call, &[eventfds.call.fd()])?;
        let error = Request::SetVringErr { queue, descriptor };
        wire.say(&error, &[eventfds.error.fd()])?;
        let kick = Request::SetVringKick { queue, descriptor };
        wire.say(&kick, &[eventfds.kick.fd()])?;
    }
    for queue in [0, 1] {
        wire.say(&Request::SetVringEnable { queue, on: true }, &[])?;
    }
    // Answered only after all before it.
    wire.say(&Request::GetFeatures, &[])?;
    Ok(())
}

/// Ends both queues: after this the back end touches neither.
///
/// # Errors
/// The back end is gone, or refuses.
pub(super) fn stop(wire: &mut Wire) -> Result<(), DriveError> {
    for queue in [0, 1] {
        wire.say(&Request::GetVringBase { queue }, &[])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = !0;

    fn wanted(packed: bool, event_idx: bool, unfinished: bool) -> Wanted {
        Wanted {
            packed,
            event_idx,
            unfinished,
        }
    }

    #[test]
    fn only_what_is_wanted_and_offered_is_taken() {
        let taken = |offered, wanted| choose(offered, wanted).expect("enough").0;
        let least = VERSION_1 | MRG_RXBUF | PROTOCOL_FEATURES;
        assert_eq!(taken(ALL, wanted(false, false, false)), least);
        assert_eq!(taken(VERSION_1, wanted(false, true, true)), VERSION_1);
        let both = least | RING_PACKED | EVENT_IDX;
        assert_eq!(taken(ALL, wanted(true, true, false)), both);
    }

    /// virtio 1.3, 5.1.3.1
    #[test]
    fn segments_are_taken_only_with_checksums() {
        let taken = |offered| choose(offered | VERSION_1, wanted(false, false, true));
        let taken = |offered| taken(offered).expect("enough").0 & !VERSION_1;
        assert_eq!(taken(HOST_TSO4 | GUEST_TSO6), 0);
        assert_eq!(taken(CSUM | HOST_TSO4 | GUEST_TSO4), CSUM | HOST_TSO4);
        let receive = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6;
        assert_eq!(taken(receive | HOST_TSO6), receive);
    }

    #[test]
    fn what_is_needed_is_named() {
        for (offered, packed, word) in [
            (0, false, "VERSION_1"),
            (ALL & !VERSION_1, false, "VERSION_1"),
            (VERSION_1, true, "RING_PACKED"),
        ] {
            let refused = choose(offered, wanted(packed, true, true));
            let refused = refused.expect_err(word).to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
