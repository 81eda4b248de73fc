//! Where an earlier end stopped, read from the ring: for front ends that do not know it. QEMU 7.2 asks the back end only
//! once nobody answers, and says to the next one what it said to the last.
//!
//! This device gives entries back in the order in which it took them, so behind its place every slot has the marks of a
//! used descriptor (the rest of a longer chain too: [`Ring::cover`]), and before it come available ones up to the driver's place.
//! Read around the ring from the device's place, with its wrap counter, and the other one from slot 0 on, slots are:
//!
//! ```text
//! busy …            free …
//! (w, !w)           (!w, !w)           (AVAILABLE, USED) as 2.8.1 has them
//! ```
//! At most one place fits any ring: where a slot is available in the lap of `w`, the first such slot; else the first that
//! was used in the other lap. A busy slot may be used already, (w, w), behind one that is not: the driver cannot see it
//! yet. So a kill leaves a packet over several entries, whose first is shown last; and QEMU the entries it dropped from a
//! place that is not the right one. Up to there entries are given back with nothing in them.
use super::{AVAILABLE, COVERED, Descriptor, NEXT, Place, Ring, USED};
use crate::ring::{Memory, RingError};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Available,
    /// Used, and not to be seen by the driver yet.
    Ahead,
    Free,
    /// As no end that is this one's like leaves a slot.
    Other,
}

/// A driver that adds entries meanwhile changes what was read; a full ring it cannot change.
const LOOKS: usize = 64;

pub(super) struct Recovered {
    pub(super) place: Place,
    /// Used with length 0.
    pub(super) emptied: u16,
}

/// What the ring says. `base`: what the front end says, as in `VHOST_USER_SET_VRING_BASE`.
///
/// # Errors
/// [`RingError::Lost`]: both differ, and the ring was not left by an end like this one.
pub(super) fn find(ring: &Ring, memory: &Memory, base: Place) -> Result<Recovered, RingError> {
    let lost = || RingError::Lost {
        slot: base.slot,
        wrap: base.wrap,
    };
    let size = ring.layout.size;
    let mut marks = read(ring, memory)?;
    let mut place = None;
    for _ in 0..LOOKS {
        let again = read(ring, memory)?;
        let settled = again == marks;
        marks = again;
        place = fitting(&marks);
        if settled && place.is_some() {
            break;
        }
    }
    let place = place.ok_or_else(lost)?;
    if place != base && !is_ours(ring, memory, place)? {
        return Err(lost());
    }
    let emptied = empty(ring, memory, place, &marks)?.ok_or_else(lost)?;
    let place = place.plus(emptied, size);
    Ok(Recovered { place, emptied })
}

fn read(ring: &Ring, memory: &Memory) -> Result<Vec<u16>, RingError> {
    let slots = 0..ring.layout.size;
    let place = |slot| Place { slot, wrap: true };
    slots.map(|slot| ring.marks(memory, place(slot))).collect()
}

/// `place` has the wrap counter with which the slot is looked at.
fn slot(marks: &[u16], place: Place) -> Slot {
    let marks = marks[usize::from(place.slot)];
    let before = Place {
        wrap: !place.wrap,
        ..place
    };
    match marks {
        _ if marks == place.available() => Slot::Available,
        _ if marks == place.used() => Slot::Ahead,
        _ if marks == before.used() => Slot::Free,
        _ => Slot::Other,
    }
}

fn fitting(marks: &[u16]) -> Option<Place> {
    let first = |wrap: bool, what: Slot| {
        let at = |slot: usize| Place {
            slot: slot as u16,
            wrap,
        };
        (0..marks.len()).map(at).find(|at| slot(marks, *at) == what)
    };
    [true, false].into_iter().find_map(|wrap| {
        let place = first(wrap, Slot::Available).or_else(|| first(wrap, Slot::Free));
        place.filter(|place| fits(marks, *place))
    })
}

fn fits(marks: &[u16], place: Place) -> bool {
    let size = marks.len() as u16;
    let mut free = false;
    (0..size).all(|n| match slot(marks, place.plus(n, size)) {
        Slot::Available => !free,
        Slot::Ahead => !free && n > 0,
        Slot::Free => {
            free = true;
            true
        }
        Slot::Other => false,
    })
}

/// Whether what is available at `place` cannot be the rest of a chain that another kind of end gave back: the slot before
/// it was covered, or was never used, or is the driver's again.
fn is_ours(ring: &Ring, memory: &Memory, place: Place) -> Result<bool, RingError> {
    let before = place.minus(1, ring.layout.size);
    let descriptor = Descriptor::read(memory, ring.descriptor(before))?;
    let used = descriptor.flags & (AVAILABLE | USED) == before.used();
    let blank = descriptor.address == 0 && descriptor.len == 0 && descriptor.id == 0;
    Ok(!used || descriptor.address == COVERED || blank && descriptor.flags == 0)
}

/// How many slots from `place` on are given back with nothing in them; `None`: which entries they are is not clear.
fn empty(
    ring: &Ring,
    memory: &Memory,
    place: Place,
    marks: &[u16],
) -> Result<Option<u16>, RingError> {
    let size = ring.layout.size;
    let mut until = 0;
    for n in 0..size {
        let at = place.plus(n, size);
        let begun = match slot(marks, at) {
            Slot::Ahead => true,
            // Its address is gone.
            Slot::Available => Descriptor::read(memory, ring.descriptor(at))?.address == COVERED,
            _ => break,
        };
        until = if begun { n + 1 } else { until };
    }
    let (mut done, mut heads, mut ids) = (0, Vec::new(), BTreeSet::new());
    while done < size {
        let from = place.plus(done, size);
        let (count, id) = match slot(marks, from) {
            Slot::Ahead => {
                // Or the rest of a chain, which no driver looks at.
                let id = Descriptor::read(memory, ring.descriptor(from))?.id;
                ids.insert(id);
                (1, id)
            }
            Slot::Available => {
                let Some((count, id)) = chain(ring, memory, from)? else {
                    return Ok(None);
                };
                // The driver has all of them, and gave no number twice: this one is the rest of one before.
                if count > size - done || !ids.insert(id) {
                    return Ok(None);
                }
                if done >= until {
                    break;
                }
                (count, id)
            }
            _ => break,
        };
        heads.push((from, count, id));
        done += count;
    }
    // The first one shows the others.
    for (place, count, id) in heads.into_iter().rev() {
        ring.cover(memory, place, count)?;
        ring.give_back(memory, place, id, 0)?;
    }
    Ok(Some(done))
}

/// Descriptors and number of the entry at `place`.
fn chain(ring: &Ring, memory: &Memory, place: Place) -> Result<Option<(u16, u16)>, RingError> {
    let size = ring.layout.size;
    for count in 1..=size {
        let last = place.plus(count - 1, size);
        let descriptor = Descriptor::read(memory, ring.descriptor(last))?;
        if descriptor.flags & NEXT == 0 {
            return Ok(Some((count, descriptor.id)));
        }
    }
    Ok(None)
}
