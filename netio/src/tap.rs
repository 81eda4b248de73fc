//! A network device of our own: what the kernel sends to it is received here, what is sent here
//! arrives in the kernel. It goes with the port, but for one that was there before.
use crate::clock::tsc_now;
use crate::lengths::{ETHERNET_HDR_LEN, GSO_FRAME_LEN, VLAN_TAG_LEN, packet_len};
use crate::link::Link;
use crate::sys::{Interface, TAP_HDR_LEN, Vectors, accept_offloads, open_tap, received, tap_name};
use crate::{Accepts, Capabilities, Counters, Fill, Frame, PacketIo, PortError, Scattered, Visit};
use nix::libc;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};

mod scattered;

#[derive(Debug, Clone, Copy)]
pub struct TapOptions {
    /// A port for each; the kernel spreads its flows over them.
    pub queues: usize,
    /// The kernel leaves checksums and segmentation of TCP to us, and takes such frames.
    pub gso: bool,
}

impl Default for TapOptions {
    fn default() -> TapOptions {
        TapOptions {
            queues: 1,
            gso: false,
        }
    }
}

pub struct TapPort {
    name: String,
    link: Link,
    queue: File,
    max_frame_len: usize,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    /// Bytes of `outgoing` that the kernel had no buffer for.
    waiting: usize,
    vectors: Vectors,
    drops: DeviceDrops,
    counters: Counters,
}

impl TapPort {
    /// Makes the device `name`, sets it up, and opens its queues. One that is there already and was made to stay
    /// (`ip tuntap add`) is taken as it is, and stays.
    ///
    /// # Errors
    /// The name cannot be one, is another device's, or another program has it; no `CAP_NET_ADMIN`, no `/dev/net/tun`.
    pub fn open(name: &str, options: TapOptions) -> Result<Vec<TapPort>, PortError> {
        let failed = |what: &'static str| move |e| PortError::device(name, what, e);
        if !can_be_made(name) {
            return Err(PortError::BadName { name: name.into() });
        }
        let interface = Interface::named(name).map_err(failed("naming it"))?;
        let there = interface.index().is_ok();
        let multi_queue = options.queues > 1;
        // One queue of a device that was made for several is as good as the device.
        let open = || match open_tap(name, multi_queue, options.gso) {
            Err(e) if there && !multi_queue && e.raw_os_error() == Some(libc::EINVAL) => {
                open_tap(name, true, options.gso)
            }
            opened => opened,
        };
        let queues: Vec<File> = (0..options.queues.max(1))
            .map(|_| open())
            .collect::<io::Result<_>>()
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EBUSY) => taken(name, "a program serves it already"),
                // As tun_set_iff() has it (drivers/net/tun.c).
                Some(libc::EINVAL) if there => taken(
                    name,
                    "a device has it already, no TAP device of that kind; choose another, \
                     or say multi_queue where several queues are wanted (ip tuntap)",
                ),
                _ => failed("making the TAP device")(error),
            })?;
        interface.set_up().map_err(failed("setting it up"))?;
        let mtu = interface.mtu().map_err(failed("reading its MTU"))?;
        let max_frame_len = if options.gso {
            GSO_FRAME_LEN
        } else {
            mtu + ETHERNET_HDR_LEN + VLAN_TAG_LEN
        };
        let index = interface.index().map_err(failed("looking it up"))?;
        let buffer = || vec![0; TAP_HDR_LEN + max_frame_len].into_boxed_slice();
        let port = |queue| {
            Ok(TapPort {
                name: name.into(),
                link: Link::new(Interface::named(name)?, index),
                drops: DeviceDrops::open(&queue)?,
                queue,
                max_frame_len,
                incoming: buffer(),
                outgoing: buffer(),
                waiting: 0,
                vectors: Vectors::default(),
                counters: Counters::default(),
            })
        };
        queues
            .into_iter()
            .map(port)
            .collect::<io::Result<_>>()
            .map_err(failed("reading its counters"))
    }

    /// False when the kernel has no buffer for the waiting frame now.
    fn hand_over(&mut self) -> Result<bool, PortError> {
        if self.waiting == 0 {
            return Ok(true);
        }
        let written = self.queue.write(&self.outgoing[..self.waiting]);
        let taken = self.taken_over(written, self.waiting)?;
        if taken {
            self.waiting = 0;
        }
        Ok(taken)
    }

    /// What the kernel said to a frame of `len` bytes; false: it had no buffer for it.
    fn taken_over(&mut self, written: io::Result<usize>, len: usize) -> Result<bool, PortError> {
        let error = match written {
            Ok(written) => {
                // A part of a frame cannot be made up for.
                self.counters.send_failed += u64::from(written < len);
                return Ok(true);
            }
            Err(error) => error,
        };
        match refusal(error.raw_os_error()) {
            Refusal::Wait => Ok(false),
            Refusal::Drop => {
                self.counters.send_failed += 1;
                Ok(true)
            }
            Refusal::Down => Err(PortError::Down {
                name: self.name.clone(),
            }),
            Refusal::Fail => Err(PortError::device(&self.name, "sending", error)),
        }
    }
}

/// What a refused frame means.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// There is no room now.
    Wait,
    /// This frame is lost, not the device.
    Drop,
    Down,
    Fail,
}

fn refusal(errno: Option<i32>) -> Refusal {
    match errno {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Refusal::Wait,
        // Its header or length makes no sense.
        Some(libc::EINVAL | libc::EMSGSIZE) => Refusal::Drop,
        // The kernel has no memory for it: on a network, a loss.
        Some(libc::ENOMEM) => Refusal::Drop,
        Some(libc::EIO) => Refusal::Down,
        _ => Refusal::Fail,
    }
}

impl PacketIo for TapPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: self.max_frame_len,
            offload: true,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        for count in 0..max {
            let len = match self.queue.read(&mut self.incoming) {
                Ok(len) => len.max(TAP_HDR_LEN),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(count),
                    _ => return Err(PortError::device(&self.name, "receiving", error)),
                },
            };
            let bytes = &self.incoming[TAP_HDR_LEN..len];
            self.counters.received += 1;
            self.counters.received_bytes += bytes.len() as u64;
            visit(Frame {
                bytes,
                wire_len: bytes.len(),
                received: tsc_now(),
                offload: received(&self.incoming),
            });
        }
        Ok(max)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        for done in 0..count {
            if !self.hand_over()? {
                return Ok(done);
            }
            let outgoing = fill(&mut self.outgoing[TAP_HDR_LEN..]);
            let Some(len) = outgoing.checked(&self.name, self.max_frame_len)? else {
                return Ok(done);
            };
            outgoing.offload.write_header(&mut self.outgoing);
            // The number of buffers: the driver's to fill, for merged receive buffers.
            self.outgoing[TAP_HDR_LEN - 2..TAP_HDR_LEN].fill(0);
            self.waiting = TAP_HDR_LEN + len;
            self.counters.sent += 1;
            self.counters.sent_bytes += len as u64;
            self.hand_over()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(usize::from(!self.hand_over()?))
    }

    fn is_up(&mut self) -> Result<bool, PortError> {
        self.link.is_up(&self.name)
    }

    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wait_fd()
    }

    fn mtu(&mut self) -> Result<Option<usize>, PortError> {
        let mtu = self.link.mtu(&self.name)?;
        Ok(Some(mtu.min(packet_len(self.max_frame_len))))
    }

    fn accept(&mut self, what: Accepts) -> Result<(), PortError> {
        // Segments would not fit what was opened for the MTU.
        let long = self.max_frame_len >= GSO_FRAME_LEN;
        let what = Accepts {
            segments_v4: what.segments_v4 && long,
            segments_v6: what.segments_v6 && long,
            ..what
        };
        accept_offloads(&self.queue, what)
            .map_err(|e| PortError::device(&self.name, "choosing its offloads", e))
    }

    fn scattered(&mut self) -> Option<&mut dyn Scattered> {
        Some(self)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        let device_gone = match self.drops.read(&self.queue) {
            Ok(()) => false,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBADFD | libc::ENODEV)) => true,
            Err(error) => {
                return Err(PortError::device(&self.name, "reading its counters", error));
            }
        };
        Ok(Counters {
            receive_dropped: self.drops.last - self.drops.before,
            device_gone,
            ..self.counters
        })
    }
}

fn taken(name: &str, next_step: &str) -> PortError {
    PortError::Busy {
        what: format!("the name {name}"),
        next_step: next_step.into(),
    }
}

/// As `dev_valid_name` of the kernel; and a `%` would have it choose another name.
fn can_be_made(name: &str) -> bool {
    let fair = |c: char| !(c.is_whitespace() || c.is_control() || "/:%".contains(c));
    (1..=15).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(fair)
}

/// What the kernel could not queue for the device, all its queues together.
struct DeviceDrops {
    /// Bound to the network namespace in which it was opened, as the device is.
    table: File,
    /// What was lost before the port was open.
    before: u64,
    last: u64,
}

impl DeviceDrops {
    fn open(queue: &File) -> io::Result<DeviceDrops> {
        let mut drops = DeviceDrops {
            table: File::open("/proc/thread-self/net/dev")?,
            before: 0,
            last: 0,
        };
        drops.read(queue)?;
        drops.before = drops.last;
        Ok(drops)
    }

    /// The device may have got another name meanwhile.
    fn read(&mut self, queue: &File) -> io::Result<()> {
        let name = format!("{}:", tap_name(queue)?);
        let mut text = String::new();
        self.table.rewind()?;
        self.table.read_to_string(&mut text)?;
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(&name));
        // Eight columns of receiving, then sent bytes, packets, errors and drops.
        let dropped = line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok());
        // Not there: it was moved to another network namespace.
        self.last = dropped.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_that_cannot_be_sent_is_no_end_of_the_port() {
        assert_eq!(refusal(Some(libc::ENOMEM)), Refusal::Drop);
        assert_eq!(refusal(Some(libc::EINVAL)), Refusal::Drop);
        assert_eq!(refusal(Some(libc::ENOBUFS)), Refusal::Wait);
        assert_eq!(refusal(Some(libc::EIO)), Refusal::Down);
        assert_eq!(refusal(Some(libc::EBADFD)), Refusal::Fail);
    }
}
