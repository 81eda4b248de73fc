//! The description of a recording of slices: which hooks were used, which regions they bound,
//! what they cost.
use super::{Counters, Point};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// From one point to a later one, under the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionEntry {
    pub name: String,
    pub from: Point,
    pub to: Point,
}

/// The hook that stamps a point here, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEntry {
    pub point: Point,
    /// As the kernel names it: `tp_btf/net_dev_queue`, `cgroup_skb/egress`, `fentry/ip_output`.
    pub hooks: Vec<String>,
    /// `Some`: the point is not stamped, and its slice is part of the next.
    pub missing: Option<String>,
    /// Runs that the kernel left out because the program was already running on that processor;
    /// `None`: the kernel does not say.
    pub missed_runs: Option<u64>,
}

/// The name of a network interface, whose number is its namespace's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceEntry {
    /// Inode of the network namespace.
    pub netns: u32,
    pub ifindex: u32,
    pub name: String,
}

/// What a stamp reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceEvent {
    /// `CLOCK_MONOTONIC`, ns.
    Time,
    /// Counted events of the stamp's processor, under perf's name.
    Counter(String),
}

/// A measured constant: the mode of its samples, and between which values 10 and 90 of 100 lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    pub mode: u32,
    pub low: u32,
    pub high: u32,
    pub samples: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCost {
    pub point: Point,
    /// Of one hit that takes a stamp, in ns, from outside.
    pub hit: Constant,
}

/// NetSlice's constants, measured on this machine before the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SliceCalibration {
    /// What an empty region reads: two stamps at one place. In ns, or in events when the recording
    /// is of an event.
    pub tau_o: Option<Constant>,
    /// A hit of a program that only reads the clock, in ns.
    pub clock_only_hit: Option<Constant>,
    /// A hit by point (half of NetSlice's tau_beta each), in ns.
    pub hits: Vec<HookCost>,
    /// Beginning a record (tau_alpha) and handing it over (tau_gamma), in ns, beyond the hit.
    pub begin: Option<Constant>,
    pub hand_over: Option<Constant>,
    /// What an empty border reads, in ns: from a clock read in the program to the first stamp of the
    /// sending call that follows, and from the last stamp of a receiving call to a clock read in the
    /// program. Both with the kernel's own entry, or return, in them.
    #[serde(default)]
    pub border_out: Option<Constant>,
    #[serde(default)]
    pub border_in: Option<Constant>,
}

/// One recording of slices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceEntry {
    /// `fentry`, `tracepoint` or `raw`, as chosen.
    pub backend: String,
    pub event: SliceEvent,
    /// pcap-filter expression; empty: every packet.
    pub filter: String,
    pub points: Vec<Point>,
    pub hooks: Vec<HookEntry>,
    pub regions: Vec<RegionEntry>,
    pub calibration: SliceCalibration,
    /// Slots for packets under way: NetSlice's receive buffer size.
    pub slots: u32,
    pub kernel: String,
    /// `duty` 1 of N windows; 1: always.
    pub duty_of: u32,
    /// Names of `enum skb_drop_reason` of this kernel, by value.
    pub drop_reasons: Vec<String>,
    pub interfaces: Vec<InterfaceEntry>,
}

/// Last words of a recording of slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SliceSummary {
    pub counters: Counters,
    pub in_flight: u64,
    pub hooks: Vec<HookEntry>,
    pub duration_ns: u64,
    /// For how much of the duration the hooks were attached.
    pub attached_ns: u64,
}
