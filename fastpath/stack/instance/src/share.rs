//! Several engines on one device. The device spreads frames by a hash of its own; each engine has the connections that
//! [`flow_hash`] gives it. What came to the wrong one is passed on in memory.
use hopscope_netio::{
    Frame, MemoryOptions, MemoryPort, Outgoing, PacketIo, PortError, WhenFull, memory_pair,
};
use hopscope_stack_engine::wire::flow_hash;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Frames on their way between two engines: what finds no room is lost, and counted as `receive_dropped` of the lane.
const LANE_FRAMES: usize = 128;
/// All lanes to one engine together: their number grows with the square of that of engines.
const LANES_FRAMES: usize = 512;
const LANE_FRAMES_LEAST: usize = 8;

/// Whose a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    One(usize),
    /// What several may need: answers of neighbours, errors, fragments.
    All,
}

/// One engine's way to the others.
pub struct Share {
    index: usize,
    of: usize,
    /// Datagrams are all the first engine's.
    datagrams_at_first: bool,
    /// By index; none to itself.
    lanes: Vec<Option<MemoryPort>>,
    bells: Vec<Arc<EventFd>>,
}

impl Share {
    /// One for each of `of` engines, whose frames have so many bytes at most.
    ///
    /// # Errors
    /// As eventfd(2).
    pub fn all(of: u16, max_frame_len: usize, datagrams_at_first: bool) -> nix::Result<Vec<Share>> {
        let of = usize::from(of.max(1));
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = |_| EventFd::from_flags(flags).map(Arc::new);
        let bells: Vec<Arc<EventFd>> = (0..of).map(bell).collect::<nix::Result<_>>()?;
        let share = |index| Share {
            index,
            of,
            datagrams_at_first,
            lanes: (0..of).map(|_| None).collect(),
            bells: bells.clone(),
        };
        let mut all: Vec<Share> = (0..of).map(share).collect();
        let options = MemoryOptions {
            frames: (LANES_FRAMES / of).clamp(LANE_FRAMES_LEAST, LANE_FRAMES),
            max_frame_len,
            when_full: WhenFull::Drop,
        };
        for a in 0..of {
            for b in a + 1..of {
                let (near, far) = memory_pair(options);
                all[a].lanes[b] = Some(near);
                all[b].lanes[a] = Some(far);
            }
        }
        Ok(all)
    }

    /// Rung by the others when they passed something on.
    pub(crate) fn bell(&self) -> &EventFd {
        &self.bells[self.index]
    }

    pub(crate) fn bell_of(&self, index: usize) -> Arc<EventFd> {
        self.bells[index].clone()
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.of == 1
    }

    /// Passes on what others need of a frame; true: this engine needs it too.
    pub(crate) fn pass_on(&mut self, frame: &Frame<'_>) -> bool {
        if self.is_alone() {
            return true;
        }
        match owner(frame.bytes, self.of, self.datagrams_at_first) {
            Owner::One(index) if index == self.index => true,
            Owner::One(index) => {
                self.give(index, frame);
                false
            }
            Owner::All => {
                // There is no lane to itself.
                for index in 0..self.of {
                    self.give(index, frame);
                }
                true
            }
        }
    }

    fn give(&mut self, index: usize, frame: &Frame<'_>) {
        let Some(lane) = &mut self.lanes[index] else {
            return;
        };
        let sent = lane.send(1, &mut |slot| {
            slot[..frame.bytes.len()].copy_from_slice(frame.bytes);
            Outgoing {
                len: frame.bytes.len(),
                offload: frame.offload,
            }
        });
        // Its thread has ended: so do we, soon.
        if sent.is_ok() && lane.flush().is_ok() {
            let _ = self.bells[index].write(1);
        }
    }

    /// Frames that the others passed on and this engine took, and those that found no room on the way.
    pub(crate) fn counts(&mut self) -> (u64, u64) {
        let counters = self.lanes.iter_mut().flatten().map(|lane| lane.counters());
        let counters = counters.flatten();
        counters.fold((0, 0), |(received, dropped), of| {
            (received + of.received, dropped + of.receive_dropped)
        })
    }

    /// Shows what the others passed on; how many frames.
    pub(crate) fn receive(
        &mut self,
        max: usize,
        visit: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, PortError> {
        let mut count = 0;
        for lane in self.lanes.iter_mut().flatten() {
            match lane.receive(max, visit) {
                Ok(received) => count += received,
                Err(PortError::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Questions (ARP, neighbour solicitation, echo) go to the first engine, so that one answer comes of each.
fn owner(frame: &[u8], of: usize, datagrams_at_first: bool) -> Owner {
    owner_of(frame, of, datagrams_at_first).unwrap_or(Owner::All)
}

fn owner_of(frame: &[u8], of: usize, datagrams_at_first: bool) -> Option<Owner> {
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let (protocol, at, peer, local) = match half(12)? {
        ARP => {
            let is_request = half(20)? == 1;
            return Some(if is_request {
                Owner::One(0)
            } else {
                Owner::All
            });
        }
        IPV4 => {
            let header = frame.get(14..34)?;
            let is_fragment = half(20)? & 0x3fff != 0;
            if is_fragment {
                return None;
            }
            let address = |at: usize| {
                let bytes: [u8; 4] = header[at..at + 4].try_into().ok()?;
                Some(IpAddr::from(Ipv4Addr::from(bytes)))
            };
            let len = usize::from(header[0] & 15) * 4;
            (header[9], 14 + len, address(12)?, address(16)?)
        }
        IPV6 => {
            let header = frame.get(14..54)?;
            let address = |at: usize| {
                let bytes: [u8; 16] = header[at..at + 16].try_into().ok()?;
                Some(IpAddr::from(Ipv6Addr::from(bytes)))
            };
            (header[6], 54, address(8)?, address(24)?)
        }
        _ => return Some(Owner::One(0)),
    };
    match (protocol, frame.get(at)?) {
        (UDP, _) if datagrams_at_first => Some(Owner::One(0)),
        (TCP | UDP, _) => {
            let peer = SocketAddr::new(peer, half(at)?);
            let local = SocketAddr::new(local, half(at + 2)?);
            let owner = flow_hash(peer, local) as usize % of;
            Some(Owner::One(owner))
        }
        // Echo requests; neighbour solicitations.
        (1, 8) | (58, 128 | 135) => Some(Owner::One(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source_port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
        frame[14] = 0x45;
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&source_port.to_be_bytes());
        frame[36..38].copy_from_slice(&80u16.to_be_bytes());
        frame
    }

    #[test]
    fn a_flow_has_the_owner_that_its_hash_says() {
        for port in 1000..1100 {
            let peer = SocketAddr::new([10, 0, 0, 1].into(), port);
            let hash = flow_hash(peer, "10.0.0.2:80".parse().unwrap());
            let expected = Owner::One(hash as usize % 3);
            assert_eq!(owner(&udp(port), 3, false), expected);
            assert_eq!(owner(&udp(port), 3, true), Owner::One(0));
        }
    }

    #[test]
    fn fragments_and_what_is_cut_are_everybodys() {
        let mut fragment = udp(1000);
        fragment[20] = 0x20;
        assert_eq!(owner(&fragment, 3, false), Owner::All);
        assert_eq!(owner(&udp(1000)[..30], 3, false), Owner::All);
        assert_eq!(owner(&[], 3, false), Owner::All);
    }

    #[test]
    fn lanes_that_nothing_takes_have_no_memory() {
        let resident_pages = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = text.split(' ').nth(1).unwrap();
            pages.parse::<usize>().unwrap()
        };
        let before = resident_pages();
        let all = Share::all(16, 65_600, false).unwrap();
        let pages = resident_pages().saturating_sub(before);
        assert_eq!(all.len(), 16);
        // With memory for its frames from the start each of 240 lanes had 70 and more.
        assert!(pages < 6_000, "{pages} pages");
    }

    #[test]
    fn what_is_anothers_comes_to_it() {
        let mut all = Share::all(2, 2048, false).unwrap();
        let bytes = udp(1000);
        let frame = Frame {
            bytes: &bytes,
            wire_len: bytes.len(),
            received: hopscope_event::Tsc(0),
            offload: hopscope_netio::Offload::default(),
        };
        let Owner::One(owner) = owner(&bytes, 2, false) else {
            panic!("no owner");
        };
        assert!(all[owner].pass_on(&frame));
        let other = 1 - owner;
        assert!(!all[other].pass_on(&frame));
        let mut seen = Vec::new();
        let count = all[owner].receive(8, &mut |frame| seen.push(frame.bytes.to_vec()));
        assert_eq!((count.unwrap(), seen), (1, vec![bytes]));
    }
}
