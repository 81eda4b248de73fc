//! Which packet of ours a received frame is, and whether it is still what was sent.
use super::checksum::{holds, sum};
use super::flow::Family;
use super::frame::{Frames, Layout, Link};
use super::stamp::{MAGIC, STAMP_BYTES, Stamped, repairs};
use hopscope_netio::Frame;

/// What a frame was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognized {
    /// This packet; `intact` is false where anything differs from what was sent.
    Packet { seq: u64, intact: bool },
    /// Ours by its looks, but its stamp is damaged in more than one byte.
    Damaged,
    /// Not of this run.
    Foreign,
}

/// Recognizes stamped frames.
pub struct Recognizer {
    run: u8,
    layouts: Vec<Layout>,
    lengths: Vec<usize>,
    /// Header bytes that no checksum covers, as they arrive: MAC addresses and ethertype, of IPv6
    /// also version, class, flow label and hop limit.
    expected: [u8; UNPROTECTED],
    confirmed: bool,
}

const UNPROTECTED: usize = 19;

impl Recognizer {
    pub fn new(frames: &Frames, lengths: Vec<usize>, link: Link, run: u8) -> Recognizer {
        let layouts = frames.layouts();
        let mut sent = vec![0; lengths.iter().copied().max().unwrap_or(0)];
        frames.write(&mut sent, 0, 0, [0; STAMP_BYTES]);
        debug_assert_eq!(sent[..6], link.destination);
        Recognizer {
            run,
            expected: unprotected(&sent, layouts[0].family),
            layouts,
            lengths,
            confirmed: false,
        }
    }

    /// `known` says for the fields of a whole stamp which packet carried it, if any did.
    #[inline]
    pub fn recognize(
        &mut self,
        frame: &Frame<'_>,
        known: impl Fn(&Stamped) -> Option<(u64, u32)>,
    ) -> Recognized {
        for layout in self.candidates(frame.bytes) {
            let Some(stamp) = stamp_bytes(frame.bytes, layout) else {
                continue;
            };
            let Some(stamped) = Stamped::from_bytes(stamp) else {
                continue;
            };
            if stamped.run != self.run {
                continue;
            }
            if let Some((seq, len)) = known(&stamped) {
                let intact = self.is_intact(frame, layout, len);
                return Recognized::Packet { seq, intact };
            }
        }
        self.repaired(frame, known)
    }

    /// Layouts to look for a stamp in, likely ones first: UDP and ICMP have theirs at one place, and
    /// differ in what is intact.
    #[inline]
    fn candidates(&self, bytes: &[u8]) -> impl Iterator<Item = Layout> + use<> {
        let (first, others) = match self.layouts[..] {
            [one] => (one, [None, None]),
            ref more => {
                let first = more.iter().position(|layout| looks_like(bytes, *layout));
                let first = first.unwrap_or(0);
                let mut others = (0..more.len()).filter(|at| *at != first).map(|at| more[at]);
                (more[first], [others.next(), others.next()])
            }
        };
        std::iter::once(first).chain(others.into_iter().flatten())
    }

    /// A stamp with one wrong byte still names its packet: of all stamps that it may have been, the
    /// one that was sent. Costs some 10 µs, so only frames that look like ours get there.
    #[cold]
    fn repaired(
        &self,
        frame: &Frame<'_>,
        known: impl Fn(&Stamped) -> Option<(u64, u32)>,
    ) -> Recognized {
        let looks = |layout: &&Layout| {
            self.lengths.contains(&frame.wire_len)
                && looks_like(frame.bytes, **layout)
                && stamp_bytes(frame.bytes, **layout)
                    .is_some_and(|stamp| stamp[0] == MAGIC || stamp[1] == self.run)
        };
        let Some(layout) = self.layouts.iter().find(looks) else {
            return Recognized::Foreign;
        };
        let stamp = stamp_bytes(frame.bytes, *layout).expect("looked at");
        if Stamped::from_bytes(stamp).is_some() {
            return Recognized::Foreign;
        }
        let ours = repairs(stamp).filter(|stamped| stamped.run == self.run);
        match ours.filter_map(|stamped| known(&stamped)).next() {
            Some((seq, _)) => Recognized::Packet { seq, intact: false },
            None => Recognized::Damaged,
        }
    }

    fn is_intact(&mut self, frame: &Frame<'_>, layout: Layout, len: u32) -> bool {
        let bytes = frame.bytes;
        if frame.wire_len != len as usize || bytes.len() != len as usize {
            return false;
        }
        let transport = layout.transport();
        let number = layout.protocol.number(layout.family);
        let behind_ip = len as usize - transport;
        let header = match layout.family {
            Family::V4 => holds(sum(&bytes[14..34])) && bytes[23] == number,
            Family::V6 => bytes[18..20] == (behind_ip as u16).to_be_bytes() && bytes[20] == number,
        };
        let mut covered = sum(&bytes[transport..]);
        if layout.has_pseudo_header() {
            covered += sum(&bytes[layout.addresses()]) + u64::from(number) + behind_ip as u64;
        }
        header && holds(covered) && self.is_expected(bytes, layout.family)
    }

    /// What no checksum covers must be as in all other frames. A path that writes MAC addresses
    /// anew shows in the first frame, in more than one byte; damage in one.
    #[inline]
    fn is_expected(&mut self, bytes: &[u8], family: Family) -> bool {
        let arrived = unprotected(bytes, family);
        if arrived == self.expected {
            self.confirmed = true;
            return true;
        }
        let differing = (0..UNPROTECTED).filter(|i| arrived[*i] != self.expected[*i]);
        if self.confirmed || differing.count() == 1 {
            return false;
        }
        (self.expected, self.confirmed) = (arrived, true);
        true
    }
}

#[inline]
fn stamp_bytes(bytes: &[u8], layout: Layout) -> Option<&[u8; STAMP_BYTES]> {
    bytes.get(layout.stamp()..)?.first_chunk()
}

#[inline]
fn unprotected(bytes: &[u8], family: Family) -> [u8; UNPROTECTED] {
    let mut out = [0; UNPROTECTED];
    out[..14].copy_from_slice(&bytes[..14]);
    if family == Family::V6 {
        out[14..18].copy_from_slice(&bytes[14..18]);
        out[18] = bytes[21];
    }
    out
}

/// Ethertype and protocol are those of a layout.
fn looks_like(bytes: &[u8], layout: Layout) -> bool {
    let number = layout.protocol.number(layout.family);
    if bytes.len() < layout.stamp() {
        return false;
    }
    match layout.family {
        Family::V4 => bytes[12..15] == [0x08, 0x00, 0x45] && bytes[23] == number,
        Family::V6 => bytes[12..14] == [0x86, 0xdd] && bytes[20] == number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::flow::{Flow, FlowTable, Protocol};
    use hopscope_event::Tsc;
    use hopscope_netio::Offload;

    /// Rules mix protocols in one run, and UDP and ICMP have their stamp at the same place.
    #[test]
    fn mixed_protocols_are_intact_each_in_its_own_way() {
        let flow = |protocol| Flow {
            protocol,
            source: [198, 18, 0, 1].into(),
            destination: [198, 19, 0, 1].into(),
            source_port: 1024,
            destination_port: 9,
        };
        let flows = FlowTable::new(&Protocol::ALL.map(flow)).expect("one family");
        let link = Link {
            source: [2; 6],
            destination: [4; 6],
        };
        let sizes = "96".parse().expect("a size");
        let frames = Frames::new(flows, &sizes, link, 1514).expect("room");
        let mut recognizer = Recognizer::new(&frames, sizes.lengths(), link, 7);
        for flow in 0..3u32 {
            let stamp = Stamped::new(7, u64::from(flow), flow, Tsc(5), Tsc(6));
            let mut bytes = [0; 96];
            let len = frames.write(&mut bytes, flow, 0, stamp.to_bytes());
            let mut found = |bytes: &[u8]| {
                let frame = Frame {
                    bytes,
                    wire_len: bytes.len(),
                    received: Tsc(9),
                    offload: Offload::default(),
                };
                let known = |stamped: &Stamped| (*stamped == stamp).then_some((0, len as u32));
                recognizer.recognize(&frame, known)
            };
            let packet = |intact| Recognized::Packet { seq: 0, intact };
            assert_eq!(found(&bytes[..len]), packet(true));
            assert_eq!(found(&bytes[..len - 1]), packet(false));
            for at in 0..len {
                let mut damaged = bytes;
                damaged[at] ^= 0x10;
                assert_eq!(found(&damaged[..len]), packet(false), "byte {at}");
            }
        }
    }
}
