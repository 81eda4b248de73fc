//! The last segment of what was written, the first time that it passes: who repeats it gets it through.
use std::collections::VecDeque;

/// Segments that are remembered.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Tails(VecDeque<u64>);

impl Tails {
    /// Whether the frame is such a segment, and was not asked about before.
    pub(super) fn is_new(&mut self, frame: &[u8]) -> bool {
        let Some(tail) = tail(frame) else {
            return false;
        };
        if self.0.contains(&tail) {
            return false;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(tail);
        true
    }
}

/// Of a TCP segment with PSH: its ports, and the sequence number of its end, which a retransmission in another size has too.
fn tail(frame: &[u8]) -> Option<u64> {
    const PSH: u8 = 8;
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let word = |at: usize| Some(u32::from(half(at)?) << 16 | u32::from(half(at + 2)?));
    let (at, end) = match half(12)? {
        0x0800 if *frame.get(23)? == 6 => {
            let header_len = usize::from(frame.get(14)? & 15) * 4;
            (14 + header_len, 14 + usize::from(half(16)?))
        }
        0x86dd if *frame.get(20)? == 6 => (54, 54 + usize::from(half(18)?)),
        _ => return None,
    };
    let header_len = usize::from(frame.get(at + 12)? >> 4) * 4;
    let payload_len = end.checked_sub(at + header_len).filter(|len| *len > 0)?;
    if frame.get(at + 13)? & PSH == 0 {
        return None;
    }
    let sequence = word(at + 4)?.wrapping_add(payload_len as u32);
    Some(u64::from(word(at)?) << 32 | u64::from(sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: u8, sequence: u32, payload_len: u16) -> Vec<u8> {
        let mut frame = vec![0; 54 + usize::from(payload_len)];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + payload_len).to_be_bytes());
        frame[23] = 6;
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        frame[46] = 0x50;
        frame[47] = flags;
        frame
    }

    #[test]
    fn a_last_segment_is_new_once() {
        let mut tails = Tails::default();
        assert!(!tails.is_new(&segment(0x10, 1, 100)), "no PSH");
        assert!(!tails.is_new(&segment(0x18, 1, 0)), "no payload");
        assert!(!tails.is_new(&[]), "nothing");
        assert!(tails.is_new(&segment(0x18, 1, 100)));
        assert!(!tails.is_new(&segment(0x18, 1, 100)), "again");
        assert!(!tails.is_new(&segment(0x18, 51, 50)), "its second half");
        assert!(tails.is_new(&segment(0x18, 101, 100)));
    }
}
