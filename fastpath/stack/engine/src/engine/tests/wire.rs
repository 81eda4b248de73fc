//! The two hosts, and what is between them.
use super::check::check;
use super::fates::{Fate, forged};
use crate::config::{Address, Medium, TxOffload};
use crate::frame::{RxChecksum, RxMeta, TxFrame};
use crate::{Config, Engine, Ns, SocketError, SocketId, SocketKind};
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(super) struct Host {
    pub(super) engine: Engine,
    /// All that it ever gave.
    pub(super) ids: Vec<SocketId>,
    /// Frames to it.
    frames: VecDeque<(Vec<u8>, RxMeta)>,
}

pub(super) struct Wire {
    pub(super) hosts: [Host; 2],
    pub(super) now: Ns,
    slot: Vec<u8>,
    offload: bool,
}

pub(super) fn mac(end: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, end as u8 + 1]
}

pub(super) fn address(end: usize, ipv6: bool, port: u16) -> SocketAddr {
    let host = end + 1;
    let text = if ipv6 {
        format!("[fd00::{host}]:{port}")
    } else {
        format!("10.0.0.{host}:{port}")
    };
    text.parse().unwrap()
}

/// Little enough to reach the limits.
fn config(end: usize, offload: bool) -> Config {
    let mut config = Config::new(Medium::Ethernet { mac: mac(end) }, [end as u8 + 1; 32]);
    let prefix = |ipv6| if ipv6 { 64 } else { 24 };
    config.addresses = [false, true]
        .map(|ipv6| Address {
            address: address(end, ipv6, 0).ip(),
            prefix_bits: prefix(ipv6),
        })
        .to_vec();
    config.max_sockets = 20;
    config.memory_bytes = 256 << 10;
    config.tcp.syn_backlog = 4;
    config.offload = TxOffload {
        checksum: offload,
        segmentation_v4: offload,
        segmentation_v6: offload,
    };
    config
}

impl Wire {
    pub(super) fn new(offload: bool) -> Wire {
        let host = |end| Host {
            engine: Engine::new(config(end, offload)).unwrap(),
            ids: Vec::new(),
            frames: VecDeque::new(),
        };
        let mut wire = Wire {
            hosts: [host(0), host(1)],
            now: Ns::from_ms(1),
            slot: vec![0; 66_000],
            offload,
        };
        wire.open_services();
        wire
    }

    /// Each host listens at TCP's port 1 and has UDP's port 2, in both families; the first is connected to the second.
    fn open_services(&mut self) {
        for (end, host) in self.hosts.iter_mut().enumerate() {
            for ipv6 in [false, true] {
                let tcp = host.engine.socket(SocketKind::Tcp, ipv6).unwrap();
                host.engine.bind(tcp, address(end, ipv6, 1)).unwrap();
                host.engine.listen(tcp, 2).unwrap();
                let udp = host.engine.socket(SocketKind::Udp, ipv6).unwrap();
                host.engine.bind(udp, address(end, ipv6, 2)).unwrap();
                host.ids.extend([udp, tcp]);
            }
        }
        for ipv6 in [false, true] {
            let client = self.hosts[0].engine.socket(SocketKind::Tcp, ipv6).unwrap();
            let to = Some(address(1, ipv6, 1));
            let result = self.hosts[0].engine.connect(self.now, client, to);
            assert_eq!(result, Err(SocketError::InProgress));
            self.hosts[0].ids.push(client);
            self.pump();
            self.settle();
            let listener = self.hosts[1].ids[if ipv6 { 3 } else { 1 }];
            let accepted = self.hosts[1].engine.accept(listener).unwrap().0;
            self.hosts[1].ids.push(accepted);
        }
    }

    /// What both have to send now is on its way.
    pub(super) fn pump(&mut self) {
        for end in 0..2 {
            let mut count = 0;
            while let Some(frame) = self.hosts[end].engine.transmit(self.now, &mut self.slot) {
                count += 1;
                assert!(count < 5_000, "transmit does not end");
                let bytes = self.slot[..frame.len].to_vec();
                if let Err(error) = check(&bytes, &frame) {
                    panic!("{error}: {frame:?} {bytes:02x?}");
                }
                let frames = &mut self.hosts[1 - end].frames;
                // What is beyond is lost: nobody keeps everything.
                if frames.len() < 400 {
                    frames.push_back((bytes, meta(&frame)));
                }
            }
        }
    }

    fn receive(&mut self, end: usize, bytes: &[u8], meta: RxMeta) {
        self.hosts[end].engine.receive(self.now, bytes, meta);
        self.pump();
    }

    pub(super) fn deliver(&mut self, end: usize, fate: &Fate) {
        let Some((frame, meta)) = self.hosts[end].frames.pop_front() else {
            return;
        };
        let forged = forged(fate, &frame, end);
        if let Some(back) = forged.back {
            self.receive(1 - end, &back, RxMeta::default());
        }
        for bytes in forged.on {
            // With offload the checksum is not there, whatever else happened to the frame.
            let checksum = if self.offload {
                RxChecksum::Good
            } else {
                meta.checksum
            };
            self.receive(end, &bytes, RxMeta { checksum, ..meta });
        }
        if let Some(later) = forged.later {
            self.hosts[end].frames.push_back((later, meta));
        }
    }

    pub(super) fn settle(&mut self) {
        for _ in 0..300 {
            let mut quiet = true;
            for end in 0..2 {
                if let Some((frame, meta)) = self.hosts[end].frames.pop_front() {
                    quiet = false;
                    self.receive(end, &frame, meta);
                }
            }
            if quiet {
                break;
            }
        }
    }

    /// Each timer in its turn; frames wait.
    pub(super) fn pass_ms(&mut self, ms: u64) {
        let end = self.now + Ns::from_ms(ms);
        self.timers(end);
        self.now = end;
    }

    /// The next timers up to `end`, those of one time together. False: there are none.
    fn timers(&mut self, end: Ns) -> bool {
        let mut at_once = 0;
        let mut any = false;
        while let Some(due) = self.poll_at().filter(|due| *due <= end) {
            any = true;
            at_once = if due > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 1_000, "time does not go on");
            self.now = self.now.max(due);
            for host in &mut self.hosts {
                host.engine.advance(self.now);
            }
            self.pump();
        }
        any
    }

    fn poll_at(&self) -> Option<Ns> {
        self.hosts
            .iter()
            .filter_map(|host| host.engine.poll_at())
            .min()
    }

    /// All sockets are closed, and frames are not harmed any more.
    pub(super) fn end(&mut self) {
        for host in &mut self.hosts {
            for id in &host.ids {
                let _ = host.engine.close(self.now, *id);
            }
        }
        self.pump();
        for _ in 0..20_000 {
            self.settle();
            let Some(due) = self.poll_at() else { break };
            self.timers(due.max(self.now));
        }
        for (end, host) in self.hosts.iter().enumerate() {
            assert_eq!(
                host.engine.poll_at(),
                None,
                "host {end} has timers for ever"
            );
            let rows: Vec<_> = host.engine.connections(self.now).collect();
            assert!(rows.is_empty(), "host {end}: {rows:?}");
            assert_eq!(host.engine.memory_bytes().0, 0, "host {end} has buffers");
            let counters = host.engine.counters();
            assert_eq!(counters.tcp_curr_estab, 0, "host {end}");
        }
    }
}

/// As a device gives it that merges nothing else.
fn meta(frame: &TxFrame) -> RxMeta {
    RxMeta {
        checksum: match frame.checksum {
            Some(_) => RxChecksum::Good,
            None => RxChecksum::Unknown,
        },
        segment_bytes: frame.segmentation.map_or(0, |s| s.segment_bytes),
        for_all: false,
    }
}
