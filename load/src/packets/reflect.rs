//! The far end of a test: what comes in goes out again, its MAC addresses swapped, and nothing else
//! changed.
use super::PacketsError;
use super::clock::{Clock, Machine};
use super::wait::Idle;
use hopscope_netio::{Outgoing, PacketIo, PortError};
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames held between receiving and sending. Bounds what is lost when the way out is full.
const HELD: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reflected {
    pub received: u64,
    pub sent: u64,
    /// Too short for an Ethernet header, or cut by the port.
    pub unfit: u64,
    /// Received, and not taken by the port they were to leave by.
    pub dropped: u64,
}

/// Frames on their way from a port back to it, or to another.
pub struct Reflector {
    frames: Vec<Vec<u8>>,
    held: usize,
    counts: Reflected,
}

impl Default for Reflector {
    fn default() -> Reflector {
        Reflector {
            frames: (0..HELD).map(|_| Vec::with_capacity(2048)).collect(),
            held: 0,
            counts: Reflected::default(),
        }
    }
}

impl Reflector {
    pub fn counts(&self) -> Reflected {
        self.counts
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// The port's.
    pub fn receive(&mut self, port: &mut dyn PacketIo) -> Result<usize, PortError> {
        self.held = 0;
        port.receive(HELD, &mut |frame| {
            self.counts.received += 1;
            if frame.bytes.len() < 14 || frame.bytes.len() < frame.wire_len {
                self.counts.unfit += 1;
                return;
            }
            let held = &mut self.frames[self.held];
            held.clear();
            held.extend_from_slice(&frame.bytes[6..12]);
            held.extend_from_slice(&frame.bytes[..6]);
            held.extend_from_slice(&frame.bytes[12..]);
            self.held += 1;
        })
    }

    /// Sends what was taken; what the port does not take even after a flush is dropped.
    ///
    /// # Errors
    /// The port's.
    pub fn send(&mut self, port: &mut dyn PacketIo) -> Result<(), PortError> {
        let longest = port.capabilities().max_frame_len;
        let frames = &self.frames[..self.held];
        let fitting = frames.iter().filter(|frame| frame.len() <= longest);
        let fit = fitting.clone().count();
        self.counts.unfit += (frames.len() - fit) as u64;
        let mut sent = 0;
        for _ in 0..2 {
            let mut rest = fitting.clone().skip(sent);
            sent += port.send(fit - sent, &mut |slot| {
                let frame = rest.next().map_or(&[][..], |frame| frame);
                slot[..frame.len()].copy_from_slice(frame);
                Outgoing {
                    len: frame.len(),
                    ..Outgoing::default()
                }
            })?;
            port.flush()?;
            if sent == fit {
                break;
            }
        }
        self.counts.sent += sent as u64;
        self.counts.dropped += (fit - sent) as u64;
        self.held = 0;
        Ok(())
    }

    /// Until `stop`, or until no frame can come any more. `out` is the port that frames leave by,
    /// unless it is the one they came from.
    ///
    /// # Errors
    /// The ports'.
    pub fn run(
        &mut self,
        port: &mut dyn PacketIo,
        mut out: Option<&mut dyn PacketIo>,
        mut idle: Idle,
        stop: &AtomicBool,
    ) -> Result<(), PacketsError> {
        while !stop.load(Ordering::Relaxed) {
            match self.receive(port) {
                Ok(0) => idle.for_frames(Machine.now(), None, port),
                Ok(_) => {
                    match &mut out {
                        Some(out) => self.send(*out)?,
                        None => self.send(port)?,
                    }
                    idle.busy(Machine.now());
                }
                Err(PortError::Ended { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_netio::{MemoryOptions, memory_pair};

    #[test]
    fn frames_go_back_with_their_addresses_swapped() {
        let (mut near, mut far) = memory_pair(MemoryOptions::default());
        let mut numbers = 1..=3u8;
        let mut fill = |slot: &mut [u8]| {
            slot[..60].fill(0);
            slot[..6].fill(0xa);
            slot[6..12].fill(0xb);
            slot[59] = numbers.next().expect("three are asked for");
            Outgoing {
                len: if slot[59] == 2 { 13 } else { 60 },
                ..Outgoing::default()
            }
        };
        assert_eq!(near.send(3, &mut fill).expect("room"), 3);
        near.flush().expect("open");
        let mut reflector = Reflector::default();
        assert_eq!(reflector.receive(&mut far).expect("open"), 3);
        reflector.send(&mut far).expect("open");
        let mut back = Vec::new();
        let mut visit = |frame: hopscope_netio::Frame<'_>| back.push(frame.bytes.to_vec());
        near.receive(8, &mut visit).expect("open");
        assert_eq!(back.len(), 2);
        for (frame, number) in back.iter().zip([1, 3]) {
            assert_eq!(frame[..12], [[0xb; 6], [0xa; 6]].concat());
            assert_eq!((frame.len(), frame[59]), (60, number));
        }
        let expected = Reflected {
            received: 3,
            sent: 2,
            unfit: 1,
            dropped: 0,
        };
        assert_eq!(reflector.counts(), expected);
    }
}
