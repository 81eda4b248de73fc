//! Several engines on one device. The device spreads frames by a hash of its own; each engine has the connections that
//! [`flow_hash`] gives it. What came to the wrong one is passed on in memory.
use hopscope_netio::{
    Frame, MemoryOptions, MemoryPort, Outgoing, PacketIo, PortError, WhenFull, memory_pair,
};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;

mod owner;

use owner::{Owner, owner};

/// Frames on their way between two engines: what finds no room is lost, and counted as `receive_dropped` of the lane.
const LANE_FRAMES: usize = 128;
/// All lanes to one engine together: their number grows with the square of that of engines.
const LANES_FRAMES: usize = 512;
const LANE_FRAMES_LEAST: usize = 8;

/// What a frame is to an engine that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    /// All engines are given it.
    Everybodys,
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

    /// Passes on what others need of a frame. What it is to this engine, if it needs it, too.
    pub(crate) fn pass_on(&mut self, frame: &Frame<'_>) -> Option<Whose> {
        if self.is_alone() {
            return Some(Whose::Ours);
        }
        match owner(frame.bytes, self.of, self.datagrams_at_first) {
            Owner::One(index) if index == self.index => Some(Whose::Ours),
            Owner::One(index) => {
                self.give(index, frame);
                None
            }
            Owner::All => {
                // There is no lane to itself.
                for index in 0..self.of {
                    self.give(index, frame);
                }
                Some(Whose::Everybodys)
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
        visit: &mut dyn FnMut(Frame<'_>, Whose),
    ) -> Result<usize, PortError> {
        let mut count = 0;
        let (of, datagrams_at_first) = (self.of, self.datagrams_at_first);
        for lane in self.lanes.iter_mut().flatten() {
            let received = lane.receive(max, &mut |frame| {
                let whose = match owner(frame.bytes, of, datagrams_at_first) {
                    Owner::One(_) => Whose::Ours,
                    Owner::All => Whose::Everybodys,
                };
                visit(frame, whose);
            });
            match received {
                Ok(received) => count += received,
                Err(PortError::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::owner::tests::udp;
    use super::*;

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
        assert_eq!(all[owner].pass_on(&frame), Some(Whose::Ours));
        let other = 1 - owner;
        assert_eq!(all[other].pass_on(&frame), None);
        let mut seen = Vec::new();
        let mut see = |frame: Frame<'_>, whose| seen.push((frame.bytes.to_vec(), whose));
        let count = all[owner].receive(8, &mut see);
        assert_eq!((count.unwrap(), seen), (1, vec![(bytes, Whose::Ours)]));
    }
}
