//! Hosts on one link without link-layer addresses.
use super::super::Udp;
use crate::buffer::Pool;
use crate::config::{Address, Medium, Route};
use crate::frame::RxMeta;
use crate::ip::{Input, Interface};
use crate::{Config, Counters, Inbound, Ns, Outbound, Readiness, RecvFlags, SocketError, SocketId};
use std::net::SocketAddr;

pub(super) struct Host {
    pub(super) udp: Udp,
    pub(super) ip: Interface,
    pub(super) pool: Pool,
    pub(super) counters: Counters,
    pub(super) now: Ns,
    pub(super) slots: u32,
}

pub(super) fn config(last: u8) -> Config {
    let mut config = Config::new(Medium::Ip, [last; 32]);
    let address = |text: String, prefix_bits| Address {
        address: text.parse().unwrap(),
        prefix_bits,
    };
    config.addresses = vec![
        address(format!("10.0.0.{last}"), 24),
        address(format!("fd00::{last}"), 64),
    ];
    config.routes = vec![Route {
        destination: address("0.0.0.0".into(), 0),
        gateway: "10.0.0.254".parse().unwrap(),
    }];
    config
}

macro_rules! lower {
    ($host:expr) => {
        &mut $crate::udp::Lower {
            now: $host.now,
            ip: &mut $host.ip,
            counters: &mut $host.counters,
            pool: &mut $host.pool,
        }
    };
}

impl Host {
    pub(super) fn with(config: &Config) -> Host {
        Host {
            udp: Udp::new(config),
            ip: Interface::new(config).unwrap(),
            pool: Pool::new(1 << 22),
            counters: Counters::default(),
            now: Ns(1),
            slots: 0,
        }
    }

    pub(super) fn new(last: u8) -> Host {
        Host::with(&config(last))
    }

    pub(super) fn socket(&mut self, ipv6: bool) -> u32 {
        self.slots += 1;
        let id = SocketId {
            slot: self.slots,
            generation: 0,
        };
        self.udp.open(id, ipv6)
    }

    pub(super) fn bound(&mut self, local: &str) -> u32 {
        let socket = self.socket(local.starts_with('['));
        self.bind(socket, local).unwrap();
        socket
    }

    pub(super) fn bind(&mut self, socket: u32, local: &str) -> Result<(), SocketError> {
        self.udp.bind(lower!(self), socket, address(local))
    }

    pub(super) fn connect(&mut self, socket: u32, peer: &str) -> Result<(), SocketError> {
        self.udp.connect(lower!(self), socket, Some(address(peer)))
    }

    pub(super) fn send(
        &mut self,
        socket: u32,
        payload: &[u8],
        peer: Option<&str>,
    ) -> Result<usize, SocketError> {
        let outbound = Outbound {
            peer: peer.map(address),
            ..Outbound::default()
        };
        self.udp.send_to(lower!(self), socket, payload, &outbound)
    }

    pub(super) fn recv(&mut self, socket: u32) -> Result<(Vec<u8>, SocketAddr), SocketError> {
        let mut into = vec![0; 70_000];
        let inbound = self.inbound(socket, &mut into, RecvFlags::default())?;
        into.truncate(inbound.len);
        Ok((into, inbound.peer))
    }

    pub(super) fn inbound(
        &mut self,
        socket: u32,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<Inbound, SocketError> {
        self.udp.receive_next(&mut self.pool, socket, into, flags)
    }

    pub(super) fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut slot = vec![0; 1500];
        let mut frames = Vec::new();
        loop {
            let mut frame = self.ip.transmit(&mut slot, &mut self.counters);
            if frame.is_none() {
                frame = self.udp.transmit(lower!(self), &mut slot);
            }
            let Some(frame) = frame else { return frames };
            frames.push(slot[..frame.len].to_vec());
        }
    }

    pub(super) fn receive(&mut self, frame: &[u8]) {
        let mut input = self
            .ip
            .receive(self.now, frame, RxMeta::default(), &mut self.counters);
        let whole;
        if let Input::Reassembled(packet) = input {
            whole = packet;
            input = self
                .ip
                .receive_reassembled(self.now, &whole, false, &mut self.counters);
        }
        match input {
            Input::Udp(packet, datagram) => {
                self.udp.receive(lower!(self), &packet, &datagram);
            }
            Input::Error(error) => self.udp.icmp_error(lower!(self), &error),
            _ => {}
        }
    }

    pub(super) fn readiness(&self, socket: u32) -> Readiness {
        self.udp.readiness(socket).unwrap()
    }
}

/// All that either has to send, until there is nothing.
pub(super) fn exchange(a: &mut Host, b: &mut Host) -> usize {
    let mut count = 0;
    loop {
        let (to_b, to_a) = (a.frames(), b.frames());
        if to_a.is_empty() && to_b.is_empty() {
            return count;
        }
        count += to_a.len() + to_b.len();
        to_b.iter().for_each(|frame| b.receive(frame));
        to_a.iter().for_each(|frame| a.receive(frame));
    }
}

pub(super) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) use lower;
