//! smoltcp on a device of two queues.
use hopscope_stack_engine::Ns;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;

#[derive(Default)]
pub struct Queues {
    received: VecDeque<Vec<u8>>,
    pub sent: VecDeque<Vec<u8>>,
}

pub struct Rx(Vec<u8>);
pub struct Tx<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Rx(packet), Tx(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

pub struct Peer {
    pub interface: Interface,
    pub queues: Queues,
    pub sockets: SocketSet<'static>,
}

pub fn instant(now: Ns) -> Instant {
    Instant::from_micros((now.0 / 1_000) as i64)
}

impl Peer {
    /// The engine's simulated neighbour, `10.0.0.2` and `fd00::2`.
    pub fn new(now: Ns) -> Peer {
        let mut queues = Queues::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = 3;
        let mut interface = Interface::new(config, &mut queues, instant(now));
        interface.update_ip_addrs(|addresses| {
            let own = [
                (IpAddress::v4(10, 0, 0, 2), 24),
                (IpAddress::v6(0xfd00, 0, 0, 0, 0, 0, 0, 2), 64),
            ];
            for (address, bits) in own {
                addresses
                    .push(IpCidr::new(address, bits))
                    .expect("room for two addresses");
            }
        });
        Peer {
            interface,
            queues,
            sockets: SocketSet::new(Vec::new()),
        }
    }

    pub fn socket(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 200_000]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_congestion_control(tcp::CongestionControl::Cubic);
        self.sockets.add(socket)
    }

    pub fn receive(&mut self, now: Ns, packet: Vec<u8>) {
        self.queues.received.push_back(packet);
        self.poll(now);
    }

    pub fn poll(&mut self, now: Ns) {
        self.interface
            .poll(instant(now), &mut self.queues, &mut self.sockets);
    }

    pub fn poll_at(&mut self, now: Ns) -> Option<Ns> {
        let at = self.interface.poll_at(instant(now), &self.sockets)?;
        Some(Ns(at.total_micros().max(0) as u64 * 1_000))
    }
}
