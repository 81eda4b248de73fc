//! Memory shared between the generated probe code in the target and the recorder.
//!
//! *Contexts* lie on a private anonymous page of the target with `MADV_WIPEONFORK`: one each
//! thread, found through the gs base. A forked child finds zeros and so measures nothing.
//!
//! *The pool* is a shared mapping of a memfd: [`PoolHeader`], the queue of free contexts, then
//! one ring each context. Ring `i` belongs to context `i`.
//!
//! A ring overwrites its oldest records: the producer never waits. Its counter runs freely, so
//! the reader knows exactly how many records it missed.

use crate::record::FunctionId;

pub const POOL_MAGIC: u64 = u64::from_le_bytes(*b"hopsPOOL");
pub const POOL_VERSION: u32 = 2;
pub const PAGE: usize = 4096;
/// Most threads measured at once in one process.
pub const CONTEXTS_MAX: usize = 1024;

/// What a probe reads through the gs base.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Context {
    /// fs base of the thread this context belongs to; 0 in a forked child and in free contexts.
    pub owner: u64,
    /// Address of the [`RingHeader`] in the target.
    pub ring: u64,
    /// Address of the [`PoolHeader`] in the target; 0 in a forked child.
    pub pool: u64,
    /// [`OFF`]: calls of this thread continue in the original bodies; written by the recorder.
    pub switch: u32,
    /// Of a forked child, where children are measured: its id as it has it for itself. 0 in what was attached to.
    pub forked: u32,
    /// Calls that did, by [`off_class`]; also those of threads that this one started and that have no
    /// context yet.
    pub calls_off: [u64; OFF_CLASSES],
}

/// In [`Context::switch`]: 32 bits that no other data behind a gs base is likely to hold.
pub const OFF: u32 = 0x6f66_c35a;
/// Counters of calls with their probes off.
pub const OFF_CLASSES: usize = 4;

/// Which of them counts this function's calls.
pub const fn off_class(function: FunctionId) -> usize {
    function.0 as usize % OFF_CLASSES
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PoolHeader {
    pub magic: u64,
    pub version: u32,
    pub stride: u32,
    pub contexts: u32,
    pub ring_records_log2: u32,
    pub pad0: [u8; 40],
    /// Entries taken from the free queue; written by threads of the target (`lock cmpxchg`).
    pub free_head: u64,
    pub pad1: [u8; 56],
    /// Entries put into the free queue; written by the recorder only.
    pub free_tail: u64,
    pub pad2: [u8; 56],
    /// Calls that found no free context (`lock inc`).
    pub calls_unmeasured: u64,
    /// Calls whose gs base was not one of our contexts (`lock inc`).
    pub calls_foreign: u64,
    pub pad3: [u8; 48],
}

/// Free queue: `u32` context indices, slot `n % CONTEXTS_MAX`.
pub const FREE_QUEUE_OFFSET: usize = PAGE;
pub const POOL_HEADER_BYTES: usize = FREE_QUEUE_OFFSET + CONTEXTS_MAX * 4;

/// What a ring's own thread reads and writes: one cache line, right before the slots, so that a probe reaches both from
/// its address with displacements of one byte.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RingHeader {
    /// Bytes reserved so far: [`crate::record::STRIDE`] a slot (`xadd` by the owning thread, one
    /// instruction, so that a signal handler's probes cannot take the same slot).
    pub cursor: u64,
    /// fs base and thread id of the owner, written when the context is claimed; tid 0 = unknown.
    pub owner: u64,
    pub tid: u32,
    /// As [`Context::forked`]; written with the owner.
    pub forked: u32,
    /// Address in the target of the pages of this thread's events, one after the other ([`crate::counter`]); 0: there are
    /// none. Written by the recorder.
    pub counters: u64,
    pub pad: [u8; 32],
}

/// Before the slots of a ring: the page that stays when they give their memory back.
pub const RING_HEADER_BYTES: usize = PAGE;
/// In it, free-running: records the recorder is done with. A salvage starts there.
pub const CONSUMED_AT: usize = 0;
/// In it: the [`RingHeader`].
pub const RING_HEADER_AT: usize = RING_HEADER_BYTES - size_of::<RingHeader>();
/// From the [`RingHeader`] to the first slot.
pub const SLOTS_AT: usize = size_of::<RingHeader>();

/// Bytes of one ring with its header.
pub const fn ring_bytes(ring_records_log2: u32) -> usize {
    RING_HEADER_BYTES + (crate::record::STRIDE << ring_records_log2)
}

/// Offset of the [`RingHeader`] of ring `index` from the pool header.
pub const fn ring_header_offset(index: usize, ring_records_log2: u32) -> usize {
    ring_offset(index, ring_records_log2) + RING_HEADER_AT
}

/// Offset of ring `index` from the pool header.
pub const fn ring_offset(index: usize, ring_records_log2: u32) -> usize {
    POOL_HEADER_BYTES + index * ring_bytes(ring_records_log2)
}

/// Bytes of a whole pool.
pub const fn pool_bytes(contexts: usize, ring_records_log2: u32) -> usize {
    ring_offset(contexts, ring_records_log2)
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Context>() == 64);
    assert!(offset_of!(Context, owner) == 0);
    assert!(offset_of!(Context, ring) == 8);
    assert!(offset_of!(Context, pool) == 16);
    assert!(offset_of!(Context, switch) == 24);
    assert!(offset_of!(Context, forked) == 28);
    assert!(offset_of!(Context, calls_off) == 32);
    assert!(offset_of!(PoolHeader, free_head) == 64);
    assert!(offset_of!(PoolHeader, free_tail) == 128);
    assert!(offset_of!(PoolHeader, calls_unmeasured) == 192);
    assert!(offset_of!(PoolHeader, calls_foreign) == 200);
    assert!(size_of::<PoolHeader>() <= FREE_QUEUE_OFFSET);
    assert!(offset_of!(RingHeader, cursor) == 0);
    assert!(offset_of!(RingHeader, owner) == 8);
    assert!(offset_of!(RingHeader, tid) == 16);
    assert!(offset_of!(RingHeader, forked) == 20);
    assert!(offset_of!(RingHeader, counters) == 24);
    assert!(size_of::<RingHeader>() == 64);
    // The recorder's line is not the thread's.
    assert!(RING_HEADER_AT >= CONSUMED_AT + 128);
    assert!(SLOTS_AT + crate::record::STRIDE <= 128);
    assert!(POOL_HEADER_BYTES.is_multiple_of(PAGE));
    assert!(CONTEXTS_MAX.is_power_of_two());
};
