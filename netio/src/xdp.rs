//! One queue of a network device through an XDP socket in copy mode: every driver has it, and it
//! needs no memory of the kernel per frame.
//!
//! A port that receives takes *all* frames of its queue from the kernel's stack. It cannot say
//! whether a checksum is still to be computed: switch that off where frames come from a local
//! kernel (`ethtool -K DEVICE tx off`).
use crate::clock::tsc_now;
use crate::lengths::{ETHERNET_HDR_LEN, VLAN_TAG_LEN, packet_len};
use crate::link::Link;
use crate::sys::{Interface, Redirect, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE, Xsk, XskOptions};
use crate::{Capabilities, Counters, Direction, Fill, Frame, Offload, PacketIo, PortError, Visit};
use nix::libc;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The kernel keeps this much of each chunk free before the frame.
const HEADROOM: usize = 256;
const CHUNK_LENS: [usize; 2] = [2048, 4096];

/// Where the program runs that hands frames over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XdpMode {
    /// After the kernel made a packet buffer: works on every device.
    #[default]
    Generic,
    /// In the driver; refused where it cannot.
    Native,
}

#[derive(Debug, Clone, Copy)]
pub struct XdpOptions {
    pub direction: Direction,
    pub mode: XdpMode,
    /// Chunks to receive into and to send from, rounded up to powers of two.
    pub receive_frames: u32,
    pub send_frames: u32,
}

impl Default for XdpOptions {
    fn default() -> XdpOptions {
        XdpOptions {
            direction: Direction::Both,
            mode: XdpMode::Generic,
            receive_frames: 4096,
            send_frames: 512,
        }
    }
}

pub struct XdpPort {
    name: String,
    link: Link,
    direction: Direction,
    max_frame_len: usize,
    // Detached before the socket is closed: no frame falls between.
    _redirect: Option<Redirect>,
    socket: Xsk,
    counters: Counters,
}

impl XdpPort {
    /// Opens queue `queue` of `device`, in the calling thread's network namespace.
    ///
    /// # Errors
    /// No such device or queue, it is down, its MTU is too large, no `CAP_NET_ADMIN` or `CAP_BPF`,
    /// another program on the device, another socket on the queue, no lockable memory.
    pub fn open(device: &str, queue: u32, options: XdpOptions) -> Result<XdpPort, PortError> {
        let failed = |what: &'static str| move |e| PortError::device(device, what, e);
        let interface = Interface::named(device).map_err(failed("looking it up"))?;
        let index = interface.index().map_err(failed("looking it up"))?;
        let mtu = interface.mtu().map_err(failed("reading its MTU"))?;
        if interface.flags().map_err(failed("reading its flags"))? & libc::IFF_UP == 0 {
            return Err(PortError::Down {
                name: device.into(),
            });
        }
        let max_frame_len = mtu + ETHERNET_HDR_LEN + VLAN_TAG_LEN;
        let fits = |len: &&usize| max_frame_len + HEADROOM <= **len;
        let Some(&chunk_len) = CHUNK_LENS.iter().find(fits) else {
            return Err(PortError::TooLong {
                name: format!("an XDP socket on {device}"),
                len: max_frame_len,
                max: CHUNK_LENS[1] - HEADROOM,
                next_step: "lower the device's MTU, or use packet:DEVICE",
            });
        };
        let setup = XskOptions {
            interface: index,
            queue,
            receive_frames: options.receive_frames.max(1).next_power_of_two(),
            send_frames: options.send_frames.max(1).next_power_of_two(),
            chunk_len: chunk_len as u32,
        };
        let bytes = (setup.receive_frames + setup.send_frames) as usize * chunk_len;
        let socket = open_when_free(&setup).map_err(|e| socket_error(device, queue, bytes, e))?;
        let flags = match options.mode {
            XdpMode::Generic => XDP_FLAGS_SKB_MODE,
            XdpMode::Native => XDP_FLAGS_DRV_MODE,
        };
        let mut redirect = None;
        if options.direction != Direction::Send {
            let attached = Redirect::attach(index, queue, socket.fd(), flags);
            redirect = Some(attached.map_err(|e| attach_error(device, e))?);
        }
        Ok(XdpPort {
            name: format!("xdp:{device}:{queue}"),
            link: Link::new(interface, index),
            direction: options.direction,
            max_frame_len,
            _redirect: redirect,
            socket,
            counters: Counters::default(),
        })
    }

    /// Publishes what was taken over and has the kernel send until it has no room.
    fn hand_over(&mut self) -> Result<(), PortError> {
        loop {
            let before = self.socket.waiting();
            match self.socket.kick() {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    // A batch is done, and there is more; or no buffer now.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => {}
                    // The driver dropped the last frame that it was given.
                    Some(libc::EBUSY) => self.counters.send_failed += 1,
                    // The device of a bound socket is no more.
                    Some(libc::ENXIO) => {
                        let name = self.name.clone();
                        return Err(PortError::Gone { name });
                    }
                    _ => return Err(PortError::device(&self.name, "sending", error)),
                },
            }
            let after = self.socket.waiting();
            if after == 0 || after >= before {
                return Ok(());
            }
        }
    }
}

/// The kernel gives a queue back a little after its socket was closed (`xp_put_pool` leaves that
/// to a worker): a port opened again at once would find its own predecessor.
fn open_when_free(setup: &XskOptions) -> io::Result<Xsk> {
    let give_up = Instant::now() + Duration::from_millis(500);
    loop {
        match Xsk::open(setup) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

fn socket_error(device: &str, queue: u32, bytes: usize, error: io::Error) -> PortError {
    match error.raw_os_error() {
        Some(libc::EBUSY) => PortError::Busy {
            what: format!("queue {queue} of {device}"),
            next_step: "another XDP socket is bound to it; choose another queue".into(),
        },
        Some(libc::ENOBUFS) => PortError::LockedMemory {
            what: format!("an XDP socket on {device}"),
            bytes,
        },
        Some(libc::EINVAL) => PortError::System {
            what: format!("{device} has no queue {queue} (`ls /sys/class/net/{device}/queues`)"),
            source: error,
        },
        _ => PortError::device(device, "opening an XDP socket", error),
    }
}

fn attach_error(device: &str, error: io::Error) -> PortError {
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => PortError::Busy {
            what: format!("{device}'s XDP hook"),
            next_step: format!("`ip link show {device}` names the program"),
        },
        _ => PortError::device(device, "attaching the XDP program", error),
    }
}

impl PacketIo for XdpPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: self.max_frame_len,
            offload: false,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        (self.direction != Direction::Send).then(|| self.socket.fd())
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        if self.direction == Direction::Send {
            return Err(PortError::direction(&self.name, Direction::Send));
        }
        let counters = &mut self.counters;
        let count = self.socket.receive(max, |bytes| {
            counters.received += 1;
            counters.received_bytes += bytes.len() as u64;
            visit(Frame {
                bytes,
                wire_len: bytes.len(),
                received: tsc_now(),
                offload: Offload::default(),
            });
        });
        Ok(count)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        if self.direction == Direction::Receive {
            return Err(PortError::direction(&self.name, Direction::Receive));
        }
        let (mut done, mut ended) = (0, false);
        while done < count {
            let (name, max) = (&self.name, self.max_frame_len);
            let mut bytes = 0;
            let pushed = self.socket.push(|chunk| {
                let outgoing = fill(&mut chunk[..max]);
                if outgoing.offload != Offload::default() {
                    return Err(PortError::Offload { name: name.clone() });
                }
                let len = outgoing.checked(name, max)?;
                ended = len.is_none();
                bytes = len.unwrap_or(0);
                Ok(len)
            })?;
            if pushed {
                done += 1;
                self.counters.sent += 1;
                self.counters.sent_bytes += bytes as u64;
                continue;
            }
            if ended {
                break;
            }
            let before = self.socket.waiting();
            self.hand_over()?;
            if self.socket.waiting() >= before {
                break;
            }
        }
        Ok(done)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.hand_over()?;
        Ok(self.socket.waiting())
    }

    fn is_up(&mut self) -> Result<bool, PortError> {
        self.link.of_socket_is_up(&self.name, self.socket.fd())
    }

    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wait_fd()
    }

    fn mtu(&mut self) -> Result<Option<usize>, PortError> {
        let mtu = self.link.mtu(&self.name)?;
        Ok(Some(mtu.min(packet_len(self.max_frame_len))))
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        let kernel = self
            .socket
            .statistics()
            .map_err(|e| PortError::device(&self.name, "reading its counters", e))?;
        let mut counters = self.counters;
        counters.receive_dropped = kernel.rx_dropped + kernel.rx_ring_full;
        counters.send_failed += kernel.tx_invalid_descs;
        Ok(counters)
    }
}
