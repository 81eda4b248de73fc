//! A packet port behind the front end: what comes there is sent, what is received goes there.
use super::counts::Came;
use super::error::DriveError;
use super::queue::Queue;
use super::receive::{Packet, Taker};
use crate::ring::Memory;
use crate::serve::clock::Clock;
use crate::serve::feature::Taken;
use crate::serve::header;
use hopscope_netio::{Accepts, Outgoing, PacketIo, PortError};
use vm_memory::{Address, Bytes};

/// Packets before others get a turn.
const TURN: usize = 64;

pub(super) struct Bridge {
    pub(super) port: Box<dyn PacketIo>,
    /// Something may be there to be received.
    pub(super) ready: bool,
    /// The ring is full, and packets may wait in the port.
    pub(super) full: bool,
    /// The end has come: what the port has no room for is dropped.
    pub(super) ending: bool,
    pub(super) came: Came,
}

impl Bridge {
    /// # Errors
    /// The port refuses what was negotiated.
    pub(super) fn new(mut port: Box<dyn PacketIo>, taken: Taken) -> Result<Bridge, PortError> {
        let (segments_v4, segments_v6) = taken.leaves_segments();
        port.accept(Accepts {
            checksums: taken.leaves_checksums(),
            segments_v4,
            segments_v6,
        })?;
        Ok(Bridge {
            port,
            ready: true,
            full: false,
            ending: false,
            came: Came::default(),
        })
    }

    /// Longest frame of the port, with its header.
    pub(super) fn buffer_len(port: &dyn PacketIo) -> u32 {
        let len = header::LONGEST + port.capabilities().max_frame_len;
        len.next_multiple_of(64) as u32
    }

    /// Sends what the port has. True: something was.
    ///
    /// # Errors
    /// The port fails, or the ring.
    pub(super) fn turn(
        &mut self,
        queue: &mut Queue,
        memory: &Memory,
        clock: Clock,
    ) -> Result<bool, DriveError> {
        if !self.ready {
            return Ok(false);
        }
        let mut any = false;
        for _ in 0..TURN {
            let Some(buffer) = queue.next_buffer() else {
                queue.counts.full += u64::from(!self.full);
                self.full = true;
                break;
            };
            self.full = false;
            let place = queue.address(buffer);
            let mut seen = None;
            self.port.receive(1, &mut |frame| {
                let header = header::encode(frame.offload, 0);
                let behind = place.unchecked_add(header::LONGEST as u64);
                let written = memory.write_slice(&header, place);
                let written = written.and_then(|()| memory.write_slice(frame.bytes, behind));
                seen = Some((written, frame.bytes.len()));
            })?;
            let Some((written, len)) = seen else {
                self.ready = false;
                break;
            };
            written.map_err(|e| DriveError::queue(1)(e.into()))?;
            any = true;
            let (whole, now) = ((header::LONGEST + len) as u32, clock.now());
            // Whether another is at hand only the next look at the port says.
            queue.publish(memory, whole, 1, now, (clock, now))?;
            queue.counts.packets += 1;
            queue.counts.bytes += len as u64;
        }
        queue.pause(memory, clock)?;
        Ok(any)
    }
}

impl Taker for Bridge {
    fn take(&mut self, packet: &Packet<'_>) -> Result<bool, DriveError> {
        if packet.len > self.port.capabilities().max_frame_len {
            self.came.dropped += 1;
            return Ok(true);
        }
        let mut copied = Ok(());
        let sent = self.port.send(1, &mut |slot| {
            copied = packet.copy(slot);
            Outgoing {
                len: packet.len,
                offload: packet.offload,
            }
        })?;
        copied?;
        self.came.others += sent as u64;
        let dropped = sent == 0 && self.ending;
        self.came.dropped += u64::from(dropped);
        Ok(sent > 0 || dropped)
    }
}
