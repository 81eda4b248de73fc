//! A recording made by hand: 100,000 packets and the calls that handled them, of which everything is
//! known. Some names are what a hostile file would hold.
use crate::made::{Made, Packet, record};
use anyhow::Result;
use hopscope_event::{Record, RecordKind};
use std::path::Path;

pub(crate) const PACKETS: u64 = 100_000;
/// The one whose own handling was slow.
pub(crate) const SLOW: u64 = 61_803;
/// Each packet with this remainder never comes back.
const LOST_EVERY: u64 = 9_973;
const START: u64 = 5_000_000_000;
/// 2 GHz: half a nanosecond a tick.
const HZ: u64 = 2_000_000_000;
/// Between two packets, in ticks.
const GAP: u64 = 20_000;
pub(crate) const HOSTILE: &str =
    "</script><img src=x onerror=\"document.title='taken'\">'\u{2028}\u{202e}&amp;<!--";
const MODULES: [&str; 4] = ["/opt/nf/nf", "/opt/nf/acl.so", "/opt/nf/nat.so", HOSTILE];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Both,
    Calls,
    Packets,
    /// Both, with a function that is slow now and then.
    Tails,
}

/// Each packet with this remainder meets the function with the hostile name when it is slow.
const SLOW_EVERY: u64 = 8_117;
const SLOW_TICKS: u64 = 130_000;

pub(crate) fn meets_slow(seq: u64) -> bool {
    seq % SLOW_EVERY == 4_000
}

pub(crate) fn lost(seq: u64) -> bool {
    seq % LOST_EVERY == 5
}

/// Ticks from sending to the begin of its run, of its run, and from there to arrival: as irregular
/// as measured ones, because what is regular packs into nothing.
fn parts(seq: u64) -> (u64, u64, u64) {
    let mixed = (seq + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let part = |shift: u32, below: u64| (mixed >> shift & 0xffff) % below;
    let run = 6_000 + part(16, 3_000);
    (1_000 + part(0, 2_000), run, 1_500 + part(32, 1_000))
}

/// When the run of a packet began and ended: one after the other on one thread.
fn runs(what: What) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut free_at = 0;
    (0..PACKETS).map(move |seq| {
        let (wait, ticks, _) = parts(seq);
        let start = (START + seq * GAP + wait).max(free_at + 40);
        free_at = start + ticks + all_slow_ticks(what, seq) + slow_ticks(what, seq);
        (seq, start, free_at)
    })
}

/// All functions of that run share it.
fn all_slow_ticks(what: What, seq: u64) -> u64 {
    match what != What::Tails && seq == SLOW {
        true => 900_000,
        false => 0,
    }
}

fn slow_ticks(what: What, seq: u64) -> u64 {
    match what == What::Tails && meets_slow(seq) {
        true => SLOW_TICKS,
        false => 0,
    }
}

fn run(seq: u64) -> (u64, u64) {
    let (_, start, end) = runs(What::Both)
        .nth(seq as usize)
        .expect("one of the packets");
    (start, end)
}

pub(crate) fn latency_ns(seq: u64) -> f64 {
    (run(seq).1 + parts(seq).2 - (START + seq * GAP)) as f64 / 2.0
}

/// From when a packet left to the begin of its run.
pub(crate) fn waited_ns(seq: u64) -> f64 {
    (run(seq).0 - (START + seq * GAP)) as f64 / 2.0
}

/// How long its run took.
pub(crate) fn ran_ns(seq: u64) -> f64 {
    let (start, end) = run(seq);
    (end - start) as f64 / 2.0
}

pub(crate) fn write(to: &Path, what: What) -> Result<()> {
    let mut made = Made::begin(to, HZ, START - 1_000_000, HOSTILE)?;
    if what != What::Packets {
        let functions = ["run", "acl", "nat", HOSTILE];
        let functions: Vec<_> = functions.into_iter().zip(MODULES).collect();
        made.process(&functions)?;
        made.records(&calls(what))?;
    }
    if what != What::Calls {
        made.stamps(runs(what).map(|(seq, _, end)| Packet {
            seq,
            flow: (seq % 16) as u32,
            sent: START + seq * GAP,
            received: (!lost(seq)).then_some(end + parts(seq).2),
        }))?;
    }
    made.finish(START + PACKETS * GAP + 2_000_000)
}

/// `run` calls `acl` and `nat`, and `acl` calls the one with the hostile name.
fn calls(what: What) -> Vec<Record> {
    let mut records = Vec::with_capacity(PACKETS as usize * 8);
    for (seq, start, end) in runs(what) {
        let slow = slow_ticks(what, seq);
        // Not thirds exactly, for the same reason.
        let third = (end - start - slow) * (28 + start % 9) / 100;
        records.extend([
            record(start, 0, RecordKind::Entry, 0),
            record(start + 200, 1, RecordKind::Entry, 1),
            record(start + 300, 3, RecordKind::Entry, 2),
            record(start + third + slow, 3, RecordKind::Exit, 2),
            record(start + 2 * third + slow, 1, RecordKind::Exit, 1),
            record(start + 2 * third + slow + 50, 2, RecordKind::Entry, 1),
            record(end - 100, 2, RecordKind::Exit, 1),
            record(end, 0, RecordKind::Exit, 0),
        ]);
    }
    records
}
