//! A network device through a packet socket: any device, no set-up, beside the kernel's own stack.
use crate::clock::tsc_now;
use crate::lengths::{ETHERNET_HDR_LEN, GSO_FRAME_LEN, VLAN_TAG_LEN, packet_len};
use crate::link::{Link, is_up_by, mtu_of};
use crate::sys::{self, Interface, PACKET_HDR_LEN, Popped, Received, RxRing, SendBatch};
use crate::{
    Capabilities, Counters, Direction, Fill, FilterStep, Frame, PacketIo, PortError, Visit,
};
use nix::libc;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

// From linux/if_packet.h; libc lacks them.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_FANOUT: libc::c_int = 18;
const PACKET_FANOUT_CBPF: libc::c_int = 6;
/// The kernel chooses a number that no other group of this network namespace has.
const PACKET_FANOUT_FLAG_UNIQUEID: libc::c_int = 0x2000;
/// Since Linux 6.2: what the group's sockets have set of PACKET_IGNORE_OUTGOING is not the group's.
const PACKET_FANOUT_FLAG_IGNORE_OUTGOING: libc::c_int = 0x4000;
/// Fragments go where their whole packet would.
const PACKET_FANOUT_FLAG_DEFRAG: libc::c_int = 0x8000;

/// Of frames that have a slot of 2 KiB for themselves, where there are longer ones: a full one of Ethernet, with a tag.
const SHORT_FRAME_LEN: usize = 1_500 + ETHERNET_HDR_LEN + VLAN_TAG_LEN;

/// Ports of one device that share its frames: each is received by one of them, the first unless [`PacketPort::steer`] says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fanout {
    New,
    /// That of an open port, by [`PacketPort::fanout`].
    Join(u16),
}

#[derive(Debug, Clone, Copy)]
pub struct PacketOptions {
    pub direction: Direction,
    /// Frames that the receive ring holds.
    pub receive_frames: usize,
    /// Frames handed to the kernel by one system call.
    pub send_frames: usize,
    /// Frames up to 64 KiB, to be segmented by the kernel or merged by it. Without it they are
    /// cut to the device's MTU and counted.
    pub gso: bool,
    pub fanout: Option<Fanout>,
    /// Past the device's queueing discipline, straight to the driver. The kernel does not segment
    /// on this way: it drops what the device cannot segment itself, and `send_failed` counts it.
    pub qdisc_bypass: bool,
}

impl PacketOptions {
    fn received(&self, max_len: usize) -> Received {
        Received {
            max_len,
            slot_len: match self.gso {
                true => SHORT_FRAME_LEN,
                false => max_len,
            },
            frames: self.receive_frames,
        }
    }
}

impl Default for PacketOptions {
    fn default() -> PacketOptions {
        PacketOptions {
            direction: Direction::Both,
            receive_frames: 4096,
            send_frames: 64,
            gso: false,
            fanout: None,
            qdisc_bypass: true,
        }
    }
}

pub struct PacketPort {
    name: String,
    /// None of an adopted port: the process that adopts gets no further descriptor.
    link: Option<Link>,
    /// The device's number.
    index: u32,
    socket: OwnedFd,
    max_frame_len: usize,
    ring: Option<RxRing>,
    batch: Option<Pending>,
    takes_less: bool,
    counters: Counters,
}

/// Frames taken over and not yet handed to the kernel: slots `first..end`.
struct Pending {
    batch: SendBatch,
    first: usize,
    end: usize,
}

impl PacketPort {
    /// Opens `device` of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such device, it is down, no `CAP_NET_RAW`, no memory for the ring.
    pub fn open(device: &str, options: PacketOptions) -> Result<PacketPort, PortError> {
        let failed = |what: &'static str| move |e| PortError::device(device, what, e);
        let interface = Interface::named(device).map_err(failed("looking it up"))?;
        let index = interface.index().map_err(failed("looking it up"))?;
        let mtu = interface.mtu().map_err(failed("reading its MTU"))?;
        if interface.flags().map_err(failed("reading its flags"))? & libc::IFF_UP == 0 {
            return Err(PortError::Down {
                name: device.into(),
            });
        }
        let max_frame_len = if options.gso {
            GSO_FRAME_LEN
        } else {
            mtu + ETHERNET_HDR_LEN + VLAN_TAG_LEN
        };
        let socket = sys::open_socket(libc::AF_PACKET, libc::SOCK_RAW)
            .map_err(failed("opening a packet socket"))?;
        let set = |name, value: libc::c_int| {
            sys::set_option(socket.as_fd(), libc::SOL_PACKET, name, value)
                .map_err(failed("setting up the packet socket"))
        };
        // Before the rings, else EBUSY.
        set(PACKET_VNET_HDR, 1)?;
        set(PACKET_IGNORE_OUTGOING, 1)?;
        set(PACKET_QDISC_BYPASS, options.qdisc_bypass.into())?;
        if options.fanout.is_some() {
            sys::filter_outgoing(socket.as_fd()).map_err(failed("setting up the packet socket"))?;
        }
        let mut ring = None;
        if options.direction != Direction::Send {
            let made = RxRing::new(socket.as_fd(), options.received(max_frame_len));
            ring = Some(made.map_err(failed("mapping the receive ring"))?);
        }
        let protocol = match ring {
            Some(_) => libc::ETH_P_ALL as u16,
            None => 0,
        };
        sys::bind_packet(socket.as_fd(), index, protocol).map_err(failed("binding to it"))?;
        if let Some(group) = options.fanout {
            let how =
                PACKET_FANOUT_CBPF | PACKET_FANOUT_FLAG_IGNORE_OUTGOING | PACKET_FANOUT_FLAG_DEFRAG;
            let (how, number) = match group {
                Fanout::New => (how | PACKET_FANOUT_FLAG_UNIQUEID, 0),
                Fanout::Join(number) => (how, number),
            };
            set(PACKET_FANOUT, how << 16 | libc::c_int::from(number))?;
        }
        let batch = (options.direction != Direction::Receive).then(|| Pending {
            batch: SendBatch::new(options.send_frames.max(1), PACKET_HDR_LEN + max_frame_len),
            first: 0,
            end: 0,
        });
        Ok(PacketPort {
            name: device.into(),
            link: Some(Link::new(interface, index)),
            index,
            socket,
            max_frame_len,
            ring,
            batch,
            takes_less: false,
            counters: Counters::default(),
        })
    }

    /// The port that another process opened with the same options, by its socket ([`PacketIo::wait_fd`]), in any network
    /// namespace. `index` is the device's number; `max_frame_len` as its [`Capabilities`] said.
    ///
    /// # Errors
    /// It is no such socket.
    pub fn adopt(
        device: &str,
        index: u32,
        socket: OwnedFd,
        max_frame_len: usize,
        options: PacketOptions,
    ) -> Result<PacketPort, PortError> {
        let ring = RxRing::adopt(socket.as_fd(), options.received(max_frame_len));
        let ring = ring.map_err(|e| PortError::device(device, "mapping the receive ring", e))?;
        Ok(PacketPort {
            name: device.into(),
            link: None,
            index,
            socket,
            max_frame_len,
            ring: Some(ring),
            batch: Some(Pending {
                batch: SendBatch::new(options.send_frames.max(1), PACKET_HDR_LEN + max_frame_len),
                first: 0,
                end: 0,
            }),
            takes_less: false,
            counters: Counters::default(),
        })
    }

    /// The number of its fanout group.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn fanout(&self) -> Result<u16, PortError> {
        sys::get_option::<libc::c_int>(self.socket.as_fd(), libc::SOL_PACKET, PACKET_FANOUT)
            .map(|number_and_kind| number_and_kind as u16)
            .map_err(|e| PortError::device(&self.name, "asking for its group", e))
    }

    /// Which port of its fanout group receives a frame: what `program` returns, modulo their number, by the order in which they were opened.
    /// It runs on each frame; loads at `SKF_NET_OFF` are of the packet behind the Ethernet header (Linux net/packet/af_packet.c).
    ///
    /// # Errors
    /// It has no group, or the kernel does not take the program.
    pub fn steer(&self, program: &[FilterStep]) -> Result<(), PortError> {
        sys::steer_fanout(self.socket.as_fd(), program)
            .map_err(|e| PortError::device(&self.name, "steering frames", e))
    }

    /// Hands over what is pending until the kernel has no room. `sendmmsg` says why a frame failed
    /// only when it is the first: one that the driver drops behind others is tried once more.
    fn hand_over(&mut self) -> Result<(), PortError> {
        let Some(pending) = &mut self.batch else {
            return Err(PortError::direction(&self.name, Direction::Receive));
        };
        while pending.first < pending.end {
            match pending
                .batch
                .send(self.socket.as_fd(), pending.first..pending.end)
            {
                Ok(count) => pending.first += count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(()),
                    // This frame, not the device: dropped by the driver, or not sendable.
                    Some(
                        errno @ (libc::ENOBUFS | libc::ENOMEM | libc::EINVAL | libc::EMSGSIZE),
                    ) => {
                        self.takes_less |= errno == libc::EMSGSIZE;
                        pending.first += 1;
                        self.counters.send_failed += 1;
                    }
                    // The device of a bound socket is no more.
                    Some(libc::ENXIO) => {
                        let name = self.name.clone();
                        return Err(PortError::Gone { name });
                    }
                    _ => return Err(PortError::device(&self.name, "sending", error)),
                },
            }
        }
        (pending.first, pending.end) = (0, 0);
        Ok(())
    }
}

impl PacketIo for PacketPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: self.max_frame_len,
            offload: true,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(|_| self.socket.as_fd())
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        let Some(ring) = &mut self.ring else {
            return Err(PortError::direction(&self.name, Direction::Send));
        };
        let counters = &mut self.counters;
        let (mut count, mut lost) = (0, 0);
        while count + lost < max {
            let popped = ring.pop(self.socket.as_fd(), |frame| {
                counters.received_bytes += frame.bytes.len() as u64;
                counters.receive_cut += u64::from(frame.bytes.len() < frame.wire_len);
                visit(Frame {
                    bytes: frame.bytes,
                    wire_len: frame.wire_len,
                    received: tsc_now(),
                    offload: frame.offload,
                });
            });
            match popped {
                Popped::Nothing => break,
                Popped::Shown => count += 1,
                Popped::Lost => lost += 1,
            }
        }
        self.counters.received += count as u64;
        self.counters.receive_dropped += lost as u64;
        Ok(count)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        let mut done = 0;
        while done < count {
            let full = |p: &Pending| p.end == p.batch.slots();
            if self.batch.as_ref().is_none_or(full) {
                self.hand_over()?;
            }
            let Some(pending) = self.batch.as_mut().filter(|p| !full(p)) else {
                break;
            };
            let slot = pending.batch.slot_mut(pending.end);
            let outgoing = fill(&mut slot[PACKET_HDR_LEN..]);
            let Some(len) = outgoing.checked(&self.name, self.max_frame_len)? else {
                break;
            };
            outgoing.offload.write_header(slot);
            pending.batch.set_len(pending.end, PACKET_HDR_LEN + len);
            pending.end += 1;
            done += 1;
            self.counters.sent += 1;
            self.counters.sent_bytes += len as u64;
        }
        Ok(done)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.hand_over()?;
        Ok(self.batch.as_ref().map_or(0, |p| p.end - p.first))
    }

    fn is_up(&mut self) -> Result<bool, PortError> {
        match &self.link {
            Some(link) => link.of_socket_is_up(&self.name, self.socket.as_fd()),
            // The error stays: who adopts may have other calls in the place of libc's.
            None => is_up_by(&self.name, self.socket.as_fd(), self.index),
        }
    }

    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref()?.wait_fd()
    }

    fn mtu(&mut self) -> Result<Option<usize>, PortError> {
        let mtu = mtu_of(&self.name, self.socket.as_fd(), self.index)?;
        Ok(Some(mtu.min(packet_len(self.max_frame_len))))
    }

    fn takes_less(&mut self) -> bool {
        std::mem::take(&mut self.takes_less)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        if self.ring.is_some() {
            // Reading sets the kernel's counters to zero.
            let fd = self.socket.as_fd();
            let stats: libc::tpacket_stats =
                sys::get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)
                    .map_err(|e| PortError::device(&self.name, "reading its counters", e))?;
            self.counters.receive_dropped += u64::from(stats.tp_drops);
        }
        Ok(self.counters)
    }
}
