//! Frames of a capture, sent as they are, and found again by what is in them.
//!
//! Their payload is not ours, so they carry no stamp. A received frame is the oldest one on its way
//! with the same content; where a capture holds the same frame twice, which of the two was lost
//! cannot be known, and [`Capture::repeated`] says how many are so.
use hopscope_openloop::random::mix;
use std::collections::HashMap;
use std::sync::Arc;

/// Frames that are sent in turn, from the first again after the last.
#[derive(Debug)]
pub struct Capture {
    frames: Vec<Box<[u8]>>,
    /// Of each frame: its number among the distinct flows.
    flows: Vec<u32>,
    flow_count: u32,
    /// Content to its class, and the frames of each class in order.
    classes: HashMap<u64, u32>,
    members: Vec<Vec<u32>>,
}

impl Capture {
    /// `None` without any frame.
    pub fn new(frames: Vec<Box<[u8]>>) -> Option<Capture> {
        if frames.is_empty() {
            return None;
        }
        let (mut classes, mut members) = (HashMap::new(), Vec::<Vec<u32>>::new());
        let (mut keys, mut flows) = (HashMap::new(), Vec::new());
        for (index, frame) in frames.iter().enumerate() {
            let new = classes.len() as u32;
            let class = *classes.entry(content(frame)).or_insert(new);
            match members.get_mut(class as usize) {
                Some(members) => members.push(index as u32),
                None => members.push(vec![index as u32]),
            }
            let new = keys.len() as u32;
            flows.push(*keys.entry(flow_key(frame)).or_insert(new));
        }
        Some(Capture {
            frames,
            flows,
            flow_count: keys.len() as u32,
            classes,
            members,
        })
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn flow_count(&self) -> u32 {
        self.flow_count
    }

    pub fn longest(&self) -> usize {
        self.frames
            .iter()
            .map(|frame| frame.len())
            .max()
            .unwrap_or(0)
    }

    /// Frames whose content another one has too.
    pub fn repeated(&self) -> usize {
        self.frames.len() - self.members.len()
    }

    pub fn class_count(&self) -> usize {
        self.members.len()
    }

    /// The class of a received frame; `None` for one that was never sent.
    pub fn class(&self, frame: &[u8]) -> Option<u32> {
        self.classes.get(&content(frame)).copied()
    }

    /// Sequence number of the `nth` packet of a class, over all passes.
    pub fn nth(&self, class: u32, nth: u64) -> u64 {
        let members = &self.members[class as usize];
        let pass = nth / members.len() as u64;
        let member = members[(nth % members.len() as u64) as usize];
        pass * self.frames.len() as u64 + u64::from(member)
    }
}

/// Sends a capture.
pub struct Replay {
    capture: Arc<Capture>,
    next: usize,
}

impl Replay {
    pub fn new(capture: Arc<Capture>) -> Replay {
        Replay { capture, next: 0 }
    }

    #[inline]
    pub fn write(&mut self, slot: &mut [u8]) -> (usize, u32) {
        let frame = &self.capture.frames[self.next];
        let flow = self.capture.flows[self.next];
        slot[..frame.len()].copy_from_slice(frame);
        self.next = (self.next + 1) % self.capture.frames.len();
        (frame.len(), flow)
    }
}

/// A number for what a router leaves as it is: not the MAC addresses, the hop limit and the IPv4
/// header checksum.
fn content(frame: &[u8]) -> u64 {
    let mut hash = Hash::default();
    match frame.get(12..14) {
        Some([0x08, 0x00]) if frame.len() >= 34 => {
            hash.add(&frame[12..22]);
            hash.add(&frame[23..24]);
            hash.add(&frame[26..]);
        }
        Some([0x86, 0xdd]) if frame.len() >= 54 => {
            hash.add(&frame[12..21]);
            hash.add(&frame[22..]);
        }
        _ => hash.add(frame.get(12..).unwrap_or(frame)),
    }
    hash.0
}

/// Addresses, protocol and ports; without IP, the two MAC addresses.
fn flow_key(frame: &[u8]) -> Vec<u8> {
    let (addresses, protocol, transport) = match frame.get(12..14) {
        Some([0x08, 0x00]) if frame.len() >= 34 => {
            (26..34, frame[23], 14 + usize::from(frame[14] & 15) * 4)
        }
        Some([0x86, 0xdd]) if frame.len() >= 54 => (22..54, frame[20], 54),
        _ => return frame.get(..12).unwrap_or(frame).to_vec(),
    };
    let mut key = frame[addresses].to_vec();
    key.push(protocol);
    if matches!(protocol, 6 | 17) {
        key.extend(frame.get(transport..transport + 4).unwrap_or(&[]));
    }
    key
}

#[derive(Default)]
struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = mix(self.0 ^ u64::from_le_bytes(word)).wrapping_add(part.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ttl: u8, checksum: u8, last: u8) -> Box<[u8]> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        (frame[22], frame[23], frame[25], frame[59]) = (ttl, 17, checksum, last);
        frame.into()
    }

    #[test]
    fn a_routed_frame_is_the_same_one() {
        let capture = Capture::new(vec![frame(64, 1, 7), frame(64, 1, 8)]).expect("two");
        let mut routed = frame(63, 2, 8).to_vec();
        routed[..12].fill(9);
        assert_eq!(capture.class(&routed), Some(1));
        assert_eq!(capture.class(&frame(64, 1, 9)), None);
        assert_eq!((capture.flow_count(), capture.repeated()), (1, 0));
    }

    #[test]
    fn numbers_of_a_class_go_on_over_passes() {
        let frames = [1, 2, 1, 3].map(|last| frame(64, 0, last));
        let capture = Capture::new(frames.into()).expect("four");
        assert_eq!(capture.repeated(), 1);
        let numbers: Vec<u64> = (0..5).map(|nth| capture.nth(0, nth)).collect();
        assert_eq!(numbers, [0, 2, 4, 6, 8]);
        assert_eq!([capture.nth(2, 0), capture.nth(2, 1)], [3, 7]);
    }
}
