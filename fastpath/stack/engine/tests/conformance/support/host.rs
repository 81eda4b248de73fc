//! One engine on a medium of IP packets, in virtual time, and everything that it sent.
use super::decode;
use super::packet::Segment;
use hopscope_stack_engine::config::{Address, Medium};
use hopscope_stack_engine::frame::{Received, RxMeta, TxFrame};
use hopscope_stack_engine::{Config, Engine, Ns, SocketId, SocketKind};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

pub const ENGINE_V4: &str = "10.0.0.1";
pub const ENGINE_V6: &str = "fd00::1";
pub const PEER_V4: &str = "10.0.0.2";

/// As many steps at one time can only be a timer that does not advance.
const STEPS_AT_ONE_TIME: u32 = 100_000;

#[derive(Debug, Clone)]
pub struct Sent {
    pub at: Ns,
    pub packet: Vec<u8>,
    pub frame: TxFrame,
}

pub struct Host {
    pub engine: Engine,
    pub now: Ns,
    pub sent: VecDeque<Sent>,
    slot: Vec<u8>,
}

pub fn config() -> Config {
    let mut config = Config::new(Medium::Ip, [7; 32]);
    let address = |text: &str, prefix_bits| Address {
        address: text.parse().expect("an address"),
        prefix_bits,
    };
    config.addresses = vec![address(ENGINE_V4, 24), address(ENGINE_V6, 64)];
    config
}

impl Host {
    pub fn new(config: Config) -> Host {
        Host {
            engine: Engine::new(config).expect("a good configuration"),
            // Not 0: that is a time like any other.
            now: Ns::from_ms(1_000),
            sent: VecDeque::new(),
            slot: vec![0; 66_000],
        }
    }

    pub fn listen(&mut self, port: u16, backlog: u32) -> SocketId {
        let id = self
            .engine
            .socket(SocketKind::Tcp, false)
            .expect("a socket");
        let local = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), port);
        self.engine.bind(id, local).expect("bind");
        self.engine.listen(id, backlog).expect("listen");
        id
    }

    /// Hands a packet to the engine and takes what it sends at once.
    pub fn receive(&mut self, packet: &[u8]) -> Received {
        let received = self.engine.receive(self.now, packet, RxMeta::default());
        self.pump();
        received
    }

    /// Takes what the engine has to send now.
    pub fn pump(&mut self) {
        while let Some(frame) = self.engine.transmit(self.now, &mut self.slot) {
            assert!(frame.len <= self.slot.len(), "{frame:?}");
            let packet = self.slot[..frame.len].to_vec();
            self.sent.push_back(Sent {
                at: self.now,
                packet,
                frame,
            });
            assert!(self.sent.len() < 10_000_000, "transmit has no end");
        }
    }

    /// Lets time pass, with every timer in its turn.
    pub fn run(&mut self, span: Ns) {
        let end = self.now + span;
        self.pump();
        let mut steps = 0;
        while let Some(at) = self.engine.poll_at().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < STEPS_AT_ONE_TIME, "poll_at stays at {at:?}");
            self.now = self.now.max(at);
            self.engine.advance(self.now);
            self.pump();
        }
        self.now = end;
    }

    pub fn run_ms(&mut self, ms: u64) {
        self.run(Ns::from_ms(ms));
    }

    /// The oldest packet that was sent, whatever it is.
    pub fn take_any(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// The oldest packet that was sent, as a TCP segment with its ends.
    pub fn take_segment(&mut self) -> Option<(Ns, SocketAddr, SocketAddr, Segment)> {
        let sent = self.sent.pop_front()?;
        let decoded = decode::segment(&sent.packet);
        let decoded = decoded.unwrap_or_else(|error| panic!("{error}: {:02x?}", sent.packet));
        let (from, to, segment) =
            decoded.unwrap_or_else(|| panic!("not TCP: {:02x?}", sent.packet));
        assert_eq!(
            sent.frame.payload_bytes as usize,
            segment.payload.len(),
            "TxFrame::payload_bytes"
        );
        Some((sent.at, from, to, segment))
    }
}
