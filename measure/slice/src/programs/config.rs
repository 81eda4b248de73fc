//! What the kernel programs are told: `bpf/contract.h`.
use crate::kinds::cgroup2;
use hopscope_event::slice::{Point, SliceEvent};
use std::mem::{offset_of, size_of};

/// What to slice, and how much is kept.
#[derive(Debug, Clone)]
pub struct SlicerOptions {
    pub points: Vec<Point>,
    pub backend: Option<super::backend::Backend>,
    /// Power of two.
    pub slots: u32,
    /// Power of two.
    pub ring_bytes: u32,
    /// Bytes kept of each packet; 0: none.
    pub snap: u32,
    /// After how long unseen a packet gives its slot to another.
    pub age_ns: u64,
    pub ifindex: Option<u32>,
    /// Inode of a network namespace.
    pub netns: Option<u32>,
    pub tgid: Option<u32>,
    pub comm: Option<String>,
    /// The translated pcap-filter expression, in BPF instructions.
    pub filter: Option<Vec<u64>>,
    /// The expression chooses no other packets: hooks that only these reach cost nothing.
    pub only_tcp: bool,
    pub min_latency_ns: u64,
    /// What a stamp reads.
    pub event: SliceEvent,
    /// Control group whose sockets are watched; the root sees every one.
    pub cgroup: std::path::PathBuf,
}

impl SlicerOptions {
    pub fn new(points: Vec<Point>) -> SlicerOptions {
        SlicerOptions {
            points,
            backend: None,
            slots: 4096,
            ring_bytes: 16 << 20,
            snap: 0,
            age_ns: 2_000_000_000,
            ifindex: None,
            netns: None,
            tgid: None,
            comm: None,
            filter: None,
            only_tcp: false,
            min_latency_ns: 0,
            event: SliceEvent::Time,
            cgroup: "/sys/fs/cgroup".into(),
        }
    }
}

/// What hits cost, by calibration, in ns. All 0: not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    pub hit_ns: [u32; Point::MAX],
    pub miss_ns: [u32; Point::MAX],
    pub begin_ns: u32,
    pub hand_over_ns: u32,
}

/// `struct slice_config`
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Config {
    pub points: u32,
    pub slot_mask: u32,
    pub age_ns: u64,
    pub last_point: u8,
    pub last_tx_point: u8,
    pub has_filter: u8,
    pub is_event: u8,
    pub snap: u32,
    pub ifindex: u32,
    pub netns: u32,
    pub tgid: u32,
    pub udp_in_order: u8,
    /// `enum tx_watched`
    pub tx_watched: u8,
    pub reserved: [u8; 2],
    pub comm: [u8; 16],
}

/// `enum choose`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Choose {
    /// As the options say.
    Asked = 0,
    None = 1,
    Own = 2,
}

/// `struct slice_control`: its layout, for the offsets in `control`.
#[repr(C)]
#[allow(dead_code, reason = "only its layout is used")]
struct Control {
    pub enabled: u32,
    pub choose: u32,
    pub min_latency_ns: u64,
    pub choose_netns: u32,
    pub reserved: u32,
    pub costs: RawCosts,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RawCosts {
    hit_ns: [u32; Point::MAX],
    miss_ns: [u32; Point::MAX],
    begin_ns: u32,
    hand_over_ns: u32,
}

const _: () = {
    assert!(size_of::<Config>() == 56);
    assert!(offset_of!(Config, comm) == 40);
    assert!(size_of::<Control>() == super::control::BYTES);
    assert!(offset_of!(Control, enabled) == super::control::ENABLED);
    assert!(offset_of!(Control, choose) == super::control::CHOOSE);
    assert!(offset_of!(Control, min_latency_ns) == super::control::MIN_LATENCY);
    assert!(offset_of!(Control, choose_netns) == super::control::CHOOSE_NETNS);
    assert!(offset_of!(Control, costs) == super::control::COSTS);
};

impl From<Costs> for RawCosts {
    fn from(costs: Costs) -> RawCosts {
        RawCosts {
            hit_ns: costs.hit_ns,
            miss_ns: costs.miss_ns,
            begin_ns: costs.begin_ns,
            hand_over_ns: costs.hand_over_ns,
        }
    }
}

impl Config {
    pub(super) fn of(options: &SlicerOptions, stamped: &[Point], udp_in_order: bool) -> Config {
        let mut comm = [0; 16];
        let name = options.comm.as_deref().unwrap_or("").as_bytes();
        // The kernel's own names end after fifteen bytes.
        let len = name.len().min(15);
        comm[..len].copy_from_slice(&name[..len]);
        let last = |is: fn(&Point) -> bool| {
            let last = stamped.iter().copied().filter(is).max();
            last.map_or(u8::MAX, |point| point as u8)
        };
        Config {
            points: stamped
                .iter()
                .fold(0, |bits, point| bits | 1 << *point as u8),
            slot_mask: options.slots - 1,
            age_ns: options.age_ns,
            last_point: last(|_| true),
            last_tx_point: last(|point| point.is_tx()),
            has_filter: u8::from(options.filter.is_some()),
            is_event: u8::from(options.event != SliceEvent::Time),
            snap: options.snap,
            ifindex: options.ifindex.unwrap_or(0),
            netns: options.netns.unwrap_or(0),
            tgid: options.tgid.unwrap_or(0),
            udp_in_order: u8::from(udp_in_order),
            tx_watched: tx_watched(options, stamped),
            reserved: [0; 2],
            comm,
        }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size_of::<Config>());
        bytes.extend(self.points.to_ne_bytes());
        bytes.extend(self.slot_mask.to_ne_bytes());
        bytes.extend(self.age_ns.to_ne_bytes());
        bytes.extend([
            self.last_point,
            self.last_tx_point,
            self.has_filter,
            self.is_event,
        ]);
        for word in [self.snap, self.ifindex, self.netns, self.tgid] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([self.udp_in_order, self.tx_watched]);
        bytes.extend(self.reserved);
        bytes.extend(self.comm);
        bytes
    }
}

/// Where a packet that is received was sent here, and has passed a hook that may begin its record: nowhere, over the
/// loopback device, or over pairs of virtual devices too. Of part of the machine, both ends of a pair need not be of it.
fn tx_watched(options: &SlicerOptions, stamped: &[Point]) -> u8 {
    let begins = [Point::TxIpOut, Point::TxDevQueue];
    let is_everybody = cgroup2().is_some_and(|root| root == options.cgroup);
    match (options.ifindex, options.netns) {
        _ if !is_everybody || !begins.iter().any(|point| stamped.contains(point)) => 0,
        (None, None) => 2,
        _ => 1,
    }
}

impl RawCosts {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let hits = self.hit_ns.iter().chain(&self.miss_ns);
        let words = hits.chain([&self.begin_ns, &self.hand_over_ns]);
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }
}
