//! Two hosts, the two directions between them, and virtual time.
use super::path::{Direction, Path};
use super::segmentation::packets;
use crate::support::host::{Host, Sent};
use hopscope_stack_engine::Ns;
use hopscope_stack_engine::frame::{RxChecksum, RxMeta};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Steps without an advance of the clock: more are a loop.
const STEPS_AT_ONE_TIME: u32 = 1_000_000;

pub struct Network {
    pub hosts: [Host; 2],
    /// From host 0, from host 1.
    pub directions: [Direction; 2],
    pub now: Ns,
    /// Frames that were sent with segmentation arrive in one piece, as between two local devices (GRO).
    pub merged: bool,
    /// A host's engine is told its device's MTU after so many more frames of that host.
    pub tell_mtu: Option<(usize, u32, u16)>,
    order: u64,
    arrivals: BinaryHeap<Reverse<(Ns, u64)>>,
    packets: BTreeMap<u64, (usize, Vec<u8>, RxMeta)>,
}

impl Network {
    pub fn new(hosts: [Host; 2], path: &Path, seed: u64) -> Network {
        let now = hosts[0].now;
        let reverse = Path {
            drop_data: Vec::new(),
            ..path.clone()
        };
        Network {
            hosts,
            directions: [
                Direction::new(path.clone(), seed),
                Direction::new(reverse, seed ^ 0xfeed),
            ],
            now,
            merged: false,
            tell_mtu: None,
            order: 0,
            arrivals: BinaryHeap::new(),
            packets: BTreeMap::new(),
        }
    }

    /// Runs until `application` returns true, at most until `end`. It is called after each step, with both hosts' clocks
    /// at the present. Returns whether it finished.
    pub fn run(&mut self, end: Ns, mut application: impl FnMut(&mut Network) -> bool) -> bool {
        let mut steps = 0;
        loop {
            let done = application(self);
            self.pump();
            if done {
                return true;
            }
            let Some(next) = self.next_time().filter(|next| *next <= end) else {
                self.set_clock(end);
                return false;
            };
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(
                steps < STEPS_AT_ONE_TIME,
                "the clock stays at {:?}",
                self.now
            );
            self.set_clock(next.max(self.now));
            self.step();
        }
    }

    fn set_clock(&mut self, now: Ns) {
        self.now = now;
        for host in &mut self.hosts {
            host.now = now;
        }
    }

    fn next_time(&self) -> Option<Ns> {
        let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
        let timers = self.hosts.iter().filter_map(|host| host.engine.poll_at());
        timers.chain(arrival).min()
    }

    /// One arrival, or the timers that are due.
    fn step(&mut self) {
        let due = self
            .arrivals
            .peek()
            .is_some_and(|Reverse((at, _))| *at <= self.now);
        if due && let Some(Reverse((_, order))) = self.arrivals.pop() {
            let (to, packet, meta) = self.packets.remove(&order).expect("a packet in flight");
            self.hosts[to].engine.receive(self.now, &packet, meta);
            return;
        }
        for host in &mut self.hosts {
            if host.engine.poll_at().is_some_and(|at| at <= self.now) {
                host.engine.advance(self.now);
            }
        }
    }

    /// Puts on the wire what both hosts have to send.
    pub fn pump(&mut self) {
        for from in 0..2 {
            self.hosts[from].pump();
            while let Some(sent) = self.hosts[from].sent.pop_front() {
                self.send(from, sent);
            }
        }
    }

    fn send(&mut self, from: usize, sent: Sent) {
        match &mut self.tell_mtu {
            Some((host, 0, mtu)) if *host == from => {
                self.hosts[from].engine.set_mtu(self.now, *mtu);
                self.hosts[from].pump();
                self.tell_mtu = None;
            }
            Some((host, frames, _)) if *host == from => *frames -= 1,
            _ => {}
        }
        let segment_bytes = sent.frame.segmentation.map_or(0, |s| s.segment_bytes);
        if self.merged && segment_bytes > 0 {
            let meta = RxMeta {
                checksum: RxChecksum::Good,
                segment_bytes,
                for_all: false,
            };
            self.put(from, sent.packet, sent.frame.payload_bytes, meta);
            return;
        }
        for (packet, payload_bytes) in packets(sent) {
            self.put(from, packet, payload_bytes, RxMeta::default());
        }
    }

    fn put(&mut self, from: usize, mut packet: Vec<u8>, payload_bytes: u32, meta: RxMeta) {
        let arrivals = self.directions[from].send(self.now, &mut packet, payload_bytes);
        for at in arrivals {
            self.order += 1;
            self.arrivals.push(Reverse((at, self.order)));
            self.packets
                .insert(self.order, (1 - from, packet.clone(), meta));
        }
    }
}
