//! One direction of a path: what happens to a packet between two hosts.
use super::random::Random;
use hopscope_stack_engine::Ns;
use std::collections::VecDeque;

/// Bursts of loss: a chain of two states (Gilbert 1960, Elliott 1963).
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    /// Of each packet, to go from good to bad.
    pub begin: f64,
    pub end: f64,
}

#[derive(Debug, Clone)]
pub struct Path {
    /// Of the bottleneck; 0: none.
    pub bits_per_s: u64,
    /// What the bottleneck holds; the rest is dropped.
    pub queue_bytes: u64,
    pub delay: Ns,
    /// At most so much is added to the delay, without reordering.
    pub jitter: Ns,
    pub loss: f64,
    pub burst: Option<Burst>,
    /// How many packets overtake, and how much of the delay they save.
    pub reorder: f64,
    pub reorder_by: Ns,
    pub duplicate: f64,
    /// One bit is flipped.
    pub corrupt: f64,
    /// Of the device in front: what is longer is dropped.
    pub mtu: usize,
    /// Packets with payload that are lost, counted from 0 in the order of their sending.
    pub drop_data: Vec<u64>,
}

impl Default for Path {
    /// 1 Gbit/s with a queue of 250 KB, 1 ms of round trip.
    fn default() -> Path {
        Path {
            bits_per_s: 1_000_000_000,
            queue_bytes: 250_000,
            delay: Ns::from_us(500),
            jitter: Ns(0),
            loss: 0.0,
            burst: None,
            reorder: 0.0,
            reorder_by: Ns(0),
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: usize::MAX,
            drop_data: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathCounters {
    pub sent: u64,
    pub sent_bytes: u64,
    pub lost: u64,
    pub too_long: u64,
    pub queue_dropped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
}

pub struct Direction {
    pub path: Path,
    pub counters: PathCounters,
    random: Random,
    bad: bool,
    data_packets: u64,
    /// When the bottleneck has sent each packet that it holds, and their bytes.
    queue: VecDeque<(Ns, u64)>,
    queued_bytes: u64,
    free_at: Ns,
    last_arrival: Ns,
}

impl Direction {
    pub fn new(path: Path, seed: u64) -> Direction {
        Direction {
            path,
            counters: PathCounters::default(),
            random: Random::new(seed),
            bad: false,
            data_packets: 0,
            queue: VecDeque::new(),
            queued_bytes: 0,
            free_at: Ns(0),
            last_arrival: Ns(0),
        }
    }

    /// When the packet arrives, as often as it does.
    pub fn send(&mut self, now: Ns, packet: &mut [u8], payload_bytes: u32) -> Vec<Ns> {
        self.counters.sent += 1;
        self.counters.sent_bytes += packet.len() as u64;
        if packet.len() > self.path.mtu {
            self.counters.too_long += 1;
            return Vec::new();
        }
        if self.loses(payload_bytes) {
            self.counters.lost += 1;
            return Vec::new();
        }
        let Some(left) = self.pass_bottleneck(now, packet.len() as u64) else {
            self.counters.queue_dropped += 1;
            return Vec::new();
        };
        if self.random.chance(self.path.corrupt) {
            self.counters.corrupted += 1;
            let bit = self.random.below(packet.len() as u64 * 8) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let arrival = self.arrival(left);
        if self.random.chance(self.path.duplicate) {
            self.counters.duplicated += 1;
            return vec![arrival, arrival];
        }
        vec![arrival]
    }

    fn loses(&mut self, payload_bytes: u32) -> bool {
        if payload_bytes > 0 {
            self.data_packets += 1;
            if self.path.drop_data.contains(&(self.data_packets - 1)) {
                return true;
            }
        }
        if let Some(burst) = self.path.burst {
            let change = if self.bad { burst.end } else { burst.begin };
            self.bad ^= self.random.chance(change);
        }
        self.bad || self.random.chance(self.path.loss)
    }

    fn pass_bottleneck(&mut self, now: Ns, bytes: u64) -> Option<Ns> {
        if self.path.bits_per_s == 0 {
            return Some(now);
        }
        while let Some((_, bytes)) = self.queue.pop_front_if(|(left, _)| *left <= now) {
            self.queued_bytes -= bytes;
        }
        if self.queued_bytes + bytes > self.path.queue_bytes {
            return None;
        }
        let time = Ns(bytes * 8 * 1_000_000_000 / self.path.bits_per_s);
        self.free_at = self.free_at.max(now) + time;
        self.queue.push_back((self.free_at, bytes));
        self.queued_bytes += bytes;
        Some(self.free_at)
    }

    fn arrival(&mut self, left: Ns) -> Ns {
        if self.random.chance(self.path.reorder) {
            self.counters.reordered += 1;
            return left + self.path.delay.since(self.path.reorder_by);
        }
        let jitter = Ns(self.random.below(self.path.jitter.0 + 1));
        self.last_arrival = self.last_arrival.max(left + self.path.delay + jitter);
        self.last_arrival
    }
}
