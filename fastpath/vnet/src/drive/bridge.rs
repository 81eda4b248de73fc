//! A packet port behind the front end: what comes there is sent, what is received goes there.
use super::counts::ReceiveCounts;
use super::error::DriveError;
use super::queue::Queue;
use super::receive::{Packet, Taker};
use crate::common::feature;
use crate::common::header;
use crate::ring::Memory;
use hopscope_netio::{Accepts, Arrived, Offload, Outgoing, PacketIo, PortError, SendStatus};
use hopscope_serving::clock::Clock;
use nix::errno::Errno;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryError};

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
    pub(super) came: ReceiveCounts,
}

impl Bridge {
    /// # Errors
    /// The port refuses what was negotiated.
    pub(super) fn new(
        mut port: Box<dyn PacketIo>,
        taken: feature::Negotiated,
    ) -> Result<Bridge, PortError> {
        let (segments_v4, segments_v6) = taken.host_tso();
        port.accept(Accepts {
            checksums: taken.host_checksums(),
            segments_v4,
            segments_v6,
        })?;
        Ok(Bridge {
            port,
            ready: true,
            full: false,
            ending: false,
            came: ReceiveCounts::default(),
        })
    }

    /// Longest frame of the port, with its header.
    pub(super) fn buffer_len(port: &dyn PacketIo) -> u32 {
        let len = header::LEN_MAX + port.capabilities().max_frame_len;
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
            let Some((len, offload)) = self.receive(memory, place, queue.place().buffer_len)?
            else {
                self.ready = false;
                break;
            };
            let header = header::encode(offload, 0);
            let written = memory.write_slice(&header, place);
            written.map_err(|e| DriveError::queue(1)(e.into()))?;
            any = true;
            let (whole, now) = ((header::LEN_MAX + len) as u32, clock.now());
            // Whether another is at hand only the next look at the port says.
            queue.publish(memory, whole, 1, now, (clock, now))?;
            queue.counts.packets += 1;
            queue.counts.bytes += len as u64;
        }
        queue.pause(memory, clock)?;
        Ok(any)
    }
}

impl Bridge {
    /// A frame, behind the header's place.
    fn receive(
        &mut self,
        memory: &Memory,
        place: GuestAddress,
        buffer_len: u32,
    ) -> Result<Option<(usize, Offload)>, DriveError> {
        let behind = place.unchecked_add(header::LEN_MAX as u64);
        let failed = |error: GuestMemoryError| DriveError::queue(1)(error.into());
        if let Some(port) = self.port.scattered() {
            let room = buffer_len as usize - header::LEN_MAX;
            let room = memory.get_slice(behind, room).map_err(failed)?;
            return match port.receive_into(&[room], &mut [])? {
                Arrived::Nothing => Ok(None),
                Arrived::Frame { len, offload } => Ok(Some((len, offload))),
                // It is this end's, and sealed.
                Arrived::Unwritable => Err(DriveError::system("writing to shared memory")(
                    Errno::EFAULT,
                )),
            };
        }
        let mut seen = None;
        self.port.receive(1, &mut |frame| {
            let written = memory.write_slice(frame.bytes, behind);
            seen = Some(written.map(|()| (frame.bytes.len(), frame.offload)));
        })?;
        seen.transpose().map_err(failed)
    }

    /// False: there is no room for it now.
    fn send(&mut self, packet: &Packet<'_>) -> Result<bool, DriveError> {
        if let Some(port) = self.port.scattered() {
            match port.send_from(packet.offload, &packet.slices()?)? {
                SendStatus::Sent => return Ok(true),
                SendStatus::Full => return Ok(false),
                SendStatus::TooMany | SendStatus::Unreadable => {}
            }
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
        Ok(sent > 0)
    }
}

impl Taker for Bridge {
    fn take(&mut self, packet: &Packet<'_>) -> Result<bool, DriveError> {
        if packet.len > self.port.capabilities().max_frame_len {
            self.came.dropped += 1;
            return Ok(true);
        }
        let sent = self.send(packet)?;
        self.came.others += u64::from(sent);
        let dropped = !sent && self.ending;
        self.came.dropped += u64::from(dropped);
        Ok(sent || dropped)
    }
}
