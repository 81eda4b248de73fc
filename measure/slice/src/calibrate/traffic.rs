//! Packets to measure constants with: TCP over the loopback device of a network namespace of its own,
//! sent and received by one thread, which never sleeps. Each is the answer to the one before, so that
//! none is an acknowledgement alone.
use super::CalibrateError;
use super::constant::median;
use hopscope_event::clock::read::monotonic_ns;
use hopscope_event::slice::SliceRecord;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// What a calibration's packets carry.
const PAYLOAD: [u8; 64] = *b"hopscope measures what its own stamps cost, on this machine, now";

const WARM_UP: u32 = 64;

pub(super) struct Loopback {
    ends: [TcpStream; 2],
    /// Which end sends the next packet.
    next: Cell<usize>,
    netns: u32,
}

fn os<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> CalibrateError {
    move |source| CalibrateError::Os {
        what,
        source: source.into(),
    }
}

impl Loopback {
    /// The namespace lives as long as the socket; the thread that calls stays where it is.
    pub(super) fn new() -> Result<Loopback, CalibrateError> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(os("making a network namespace"))?;
            set_up_loopback().map_err(os("bringing up a loopback device"))?;
            let ends = connection().map_err(os("opening a connection"))?;
            let netns = std::fs::metadata("/proc/thread-self/ns/net");
            let netns = netns.map_err(os("making a network namespace"))?.ino() as u32;
            let traffic = Loopback {
                ends,
                next: Cell::new(0),
                netns,
            };
            // Until its answers are seen to come with data, a receiver acknowledges at once.
            traffic.run(WARM_UP)?;
            Ok(traffic)
        });
        let gone = || CalibrateError::Os {
            what: "making a network namespace",
            source: io::Error::other("its thread ended"),
        };
        made.join().map_err(|_| gone())?
    }

    /// The namespace's inode.
    pub(super) fn netns(&self) -> u32 {
        self.netns
    }

    fn packet(&self) -> Result<(), CalibrateError> {
        let mut room = [0; PAYLOAD.len()];
        let from = self.next.replace(1 - self.next.get());
        (&self.ends[from])
            .write_all(&PAYLOAD)
            .map_err(os("sending"))?;
        (&self.ends[1 - from])
            .read_exact(&mut room)
            .map_err(os("receiving"))
    }

    /// The median time of a packet, from before it is sent until after it is received, in ns.
    pub(super) fn run(&self, packets: u32) -> Result<u32, CalibrateError> {
        let mut times = Vec::with_capacity(packets as usize);
        for _ in 0..packets {
            let begin = Instant::now();
            self.packet()?;
            let time = begin.elapsed().as_nanos();
            times.push(u32::try_from(time).unwrap_or(u32::MAX));
        }
        Ok(median(&mut times))
    }
}

/// When the clock was read before a packet was sent, and after it was received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    pub before_ns: u64,
    pub after_ns: u64,
}

impl Loopback {
    /// Of each packet, in order.
    pub(super) fn seen_from_outside(&self, packets: u32) -> Result<Vec<Outside>, CalibrateError> {
        let mut seen = Vec::with_capacity(packets as usize);
        for _ in 0..packets {
            let before_ns = monotonic_ns();
            self.packet()?;
            let after_ns = monotonic_ns();
            seen.push(Outside {
                before_ns,
                after_ns,
            });
        }
        Ok(seen)
    }
}

/// Whether a record is of a packet of ours: others may pass the hooks meanwhile. Not every choice of
/// points knows both processes.
pub(super) fn is_ours(record: &SliceRecord) -> bool {
    const TCP: u8 = 6;
    let is_own = |tgid| tgid == 0 || tgid == std::process::id();
    record.protocol == TCP
        && record.payload == PAYLOAD.len() as u32
        && record.source_address().ip() == record.destination_address().ip()
        && is_own(record.tx_tgid)
        && is_own(record.rx_tgid)
}

fn connection() -> io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    for end in [&here, &there] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(Duration::from_secs(5)))?;
    }
    Ok([here, there])
}

/// RTM_NEWLINK for interface 1, which is the loopback device of every namespace (rtnetlink(7)).
fn set_up_loopback() -> nix::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 0x1 | 0x4;
    const IFF_UP: u32 = 1;
    let mut message = Vec::new();
    // struct nlmsghdr: length, type, flags, sequence number, port.
    message.extend(32u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]);
    // struct ifinfomsg: family and type, index, flags, which of them.
    message.extend([0; 4]);
    message.extend(1i32.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &message, &kernel, MsgFlags::empty())?;
    let mut answer = [0; 256];
    let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // struct nlmsgerr behind the header: 0 is the acknowledgement.
    match answer.get(16..20.min(len)).map(<[u8; 4]>::try_from) {
        Some(Ok(code)) if code == [0; 4] => Ok(()),
        Some(Ok(code)) => Err(nix::Error::from_raw(-i32::from_ne_bytes(code))),
        _ => Err(nix::Error::EPROTO),
    }
}
