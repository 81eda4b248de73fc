//! Calls of functions adjacent to the kernel's slices of the same packet.
//!
//! The join is by thread and system call. A thread is in one system call at a time, so the parts of
//! records that overlap on one thread are of one call; between two such calls lies an *interval*. What
//! a packet brought in is handled by the calls that begin in the interval after its receiving call;
//! what a packet took along was made by those that begin in the interval before its sending call. Of
//! TCP, the receiving call must have returned bytes of the packet. One call can read several packets:
//! they have the same functions. One packet can be read by several calls: its record ends with the
//! last of them, and so begin its functions.
mod thread;
mod windows;

#[cfg(test)]
mod tests;

use super::PieceFlags;
use super::packet::Span;
use hopscope_event::slice::{Constant, SliceCalibration, SliceRecord};
use hopscope_event::{FunctionId, ThreadIx, Tsc};
use std::collections::HashMap;
use thread::{Interval, Thread};

/// A call on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedCall {
    pub thread: ThreadIx,
    pub function: FunctionId,
    /// Measured calls of the same stack that were open when it began.
    pub depth: u32,
    /// As stamped: with the thread, it tells which call it is.
    pub entry: Tsc,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What could not be joined, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BorderCounts {
    /// Calls that neither hold a system call whole nor lie beside it: of no packet. The clocks, or
    /// the join, are wrong there.
    pub crossing: u64,
    /// Calls of an interval beyond those that are kept of one.
    pub beyond: u64,
    /// Of the selected packets: their reader, or sender, is not a measured thread.
    pub unmeasured_rx: u64,
    pub unmeasured_tx: u64,
    /// Without the stamp of their call.
    pub no_return: u64,
    pub no_entry: u64,
    /// The receiving call returned none of the packet's bytes.
    pub other_bytes: u64,
}

/// What one packet has on one side of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside {
    /// Calls that hold the system call, outermost first.
    pub around: Vec<TimedCall>,
    /// Those that handled what it brought, or made what it took, in the order of their beginnings.
    pub calls: Vec<TimedCall>,
    /// Of the program's nearest stamp.
    pub nearest: Option<TimedCall>,
    /// Between the system call and that stamp.
    pub border: Option<Span>,
}

/// Both of them; `None`: counted in [`BorderCounts`], or the packet has no such side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sides {
    pub before_send: Option<Beside>,
    pub after_receive: Option<Beside>,
}

/// Of every packet, when its threads were in the system calls that sent and received it.
#[derive(Debug, Default)]
pub struct SystemCalls {
    threads: HashMap<u32, Thread>,
}

impl SystemCalls {
    /// The next packet, in any order.
    pub fn packet(&mut self, record: &SliceRecord) {
        let sides = [
            (record.tx_tid, windows::sent(record)),
            (record.rx_tid, windows::received(record)),
        ];
        for (tid, window) in sides {
            if let (true, Some(window)) = (tid != 0, window) {
                self.threads.entry(tid).or_default().windows.push(window);
            }
        }
    }
}

/// Select packets by [`Borders::want`]; then feed every call; then call [`Borders::of`].
#[derive(Debug)]
pub struct Borders {
    threads: HashMap<u32, Thread>,
    /// Calls of an interval.
    keep: Option<usize>,
    empty_out: Option<Constant>,
    empty_in: Option<Constant>,
    counts: BorderCounts,
}

impl Borders {
    /// `keep`: so many calls of a packet's side are kept, others are counted. `None`: only the nearest
    /// one, as few as possible for all packets of a recording.
    pub fn new(calibration: &SliceCalibration, calls: SystemCalls, keep: Option<usize>) -> Borders {
        let mut threads = calls.threads;
        for thread in threads.values_mut() {
            thread.windows = windows::merged(std::mem::take(&mut thread.windows));
        }
        Borders {
            threads,
            keep,
            empty_out: calibration.border_out,
            empty_in: calibration.border_in,
            counts: BorderCounts::default(),
        }
    }

    /// Keeps calls adjacent to this packet from now on.
    pub fn want(&mut self, record: &SliceRecord) {
        let sides = [
            (record.tx_tid, windows::sent(record), 0),
            (record.rx_tid, windows::received(record), 1),
        ];
        for (tid, window, side) in sides {
            let (Some(thread), Some(window)) = (self.threads.get_mut(&tid), window) else {
                continue;
            };
            if let Some(at) = thread.place(&window) {
                thread.intervals.entry(at + side).or_default();
                thread.around.entry(at).or_default();
            }
        }
    }

    /// One call of the measured thread `tid`, in any order.
    pub fn call(&mut self, tid: u32, call: TimedCall) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.call(call, self.keep, &mut self.counts);
        }
    }

    pub fn counts(&self) -> BorderCounts {
        self.counts
    }

    /// `is_measured`: whether calls of a thread were recorded at all.
    pub fn of(&mut self, record: &SliceRecord, is_measured: impl Fn(u32) -> bool) -> Sides {
        Sides {
            before_send: self.before_send(record, &is_measured),
            after_receive: self.after_receive(record, &is_measured),
        }
    }

    fn after_receive(
        &mut self,
        record: &SliceRecord,
        is_measured: &impl Fn(u32) -> bool,
    ) -> Option<Beside> {
        if record.rx_tid == 0 {
            return None;
        }
        if !is_measured(record.rx_tid) {
            self.counts.unmeasured_rx += 1;
            return None;
        }
        let Some(own) = windows::received(record) else {
            self.counts.no_return += 1;
            return None;
        };
        if !windows::has_bytes_of(record) {
            self.counts.other_bytes += 1;
            return None;
        }
        let thread = self.threads.get(&record.rx_tid)?;
        let at = thread.place(&own)?;
        let from = thread.windows[at].to_ns;
        let around = thread.around(at);
        let interval = thread.intervals.get(&(at + 1));
        // The next stamp of the program: a call begins, or one that holds the system call ends.
        let begins = interval.and_then(|i| i.first).map(|c| (c.from_ns, c));
        let ends = around.last().map(|c| (c.to_ns, *c));
        let nearest = begins.into_iter().chain(ends).min_by_key(|(at, _)| *at);
        Some(Beside {
            border: nearest.map(|(at, _)| border(at.saturating_sub(from), self.empty_in)),
            nearest: nearest.map(|(_, call)| call),
            calls: interval.map_or(Vec::new(), Interval::in_order),
            around,
        })
    }

    fn before_send(
        &mut self,
        record: &SliceRecord,
        is_measured: &impl Fn(u32) -> bool,
    ) -> Option<Beside> {
        if record.tx_tid == 0 {
            return None;
        }
        if !is_measured(record.tx_tid) {
            self.counts.unmeasured_tx += 1;
            return None;
        }
        let Some(own) = windows::sent(record) else {
            self.counts.no_entry += 1;
            return None;
        };
        let thread = self.threads.get(&record.tx_tid)?;
        let at = thread.place(&own)?;
        let to = thread.windows[at].from_ns;
        let around = thread.around(at);
        let interval = thread.intervals.get(&at);
        // The last stamp of the program: a call ended, or one that holds the system call began.
        let ended = interval.and_then(|i| i.last).map(|c| (c.to_ns, c));
        let begun = around.last().map(|c| (c.from_ns, *c));
        let nearest = ended.into_iter().chain(begun).max_by_key(|(at, _)| *at);
        let mut calls = interval.map_or(Vec::new(), Interval::in_order);
        calls.retain(|call| call.to_ns <= to);
        Some(Beside {
            border: nearest.map(|(at, _)| border(to.saturating_sub(at), self.empty_out)),
            nearest: nearest.map(|(_, call)| call),
            calls,
            around,
        })
    }
}

fn border(raw: u64, empty: Option<Constant>) -> Span {
    let correction = empty.map(|constant| u64::from(constant.mode));
    let flags = match correction {
        Some(correction) if correction > raw => PieceFlags::BELOW_ZERO,
        _ => PieceFlags::NONE,
    };
    Span {
        raw,
        correction,
        flags,
    }
}
