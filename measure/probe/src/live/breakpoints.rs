//! Breakpoints that another tool sets in a measured entry: a uprobe of perf or bpftrace, a debugger.
//!
//! The kernel takes a uprobe's instruction from the file, runs that one, and goes on behind it:
//! in the middle of our jump. Nothing keeps it from setting one, and nothing tells of it, so
//! entries are read again at intervals, and one that was changed is given back.
use super::error::LiveError;
use super::got;
use super::led_slot::GotPatch;
use super::patch::{self, Direction};
use super::site::{self, Patch, given_back};
use hopscope_process::memory::TargetMemory;
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of code read at a time (0.2 ms): with more between the entries it takes several looks to
/// see all of them.
const BYTES_A_LOOK: u64 = 1 << 20;
/// Searches for such sites, a part of them at a time.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: usize,
    given_back: BTreeSet<u64>,
}

impl Watch {
    /// The sites, of those it is the turn of, that hold part of our jump and a foreign byte.
    /// `patches` ascend.
    pub(super) fn look(&mut self, memory: &TargetMemory, patches: &[Patch]) -> Vec<Patch> {
        if self.next >= patches.len() {
            self.next = 0;
        }
        let (mut disturbed, mut bytes, mut buffer) = (Vec::new(), 0, Vec::new());
        for run in site::runs(&patches[self.next..]) {
            let room = run[0].at + BYTES_A_LOOK - bytes;
            let run = &run[..run.partition_point(|p| p.at < room)];
            if run.is_empty() {
                break;
            }
            let span = site::span(run);
            let len = span.end - span.start;
            (bytes, self.next) = (bytes + len, self.next + run.len());
            buffer.resize(len as usize, 0);
            // Gone, with its module: nothing to give back.
            if memory.read(span.start, &mut buffer).is_err() {
                continue;
            }
            disturbed.extend(run.iter().filter_map(|p| {
                let at = (p.at - span.start) as usize;
                let site = buffer[at..at + 5].try_into().expect("5 bytes");
                (site != p.replaced && given_back(site, p).is_some()).then_some(*p)
            }));
            if bytes >= BYTES_A_LOOK {
                break;
            }
        }
        disturbed.retain(|p| !self.given_back.contains(&p.at));
        disturbed
    }

    /// These belong to other tools now, and are not checked again.
    pub(super) fn gave_back(&mut self, sites: &[Patch]) {
        self.given_back.extend(sites.iter().map(|p| p.at));
    }
}

/// Restores `sites` in one stop of all threads, after the words of calls between copies. Returns its length.
pub(super) fn give_back(
    pid: i32,
    memory: &TargetMemory,
    sites: &[Patch],
    fused: &[GotPatch],
) -> Result<Duration, LiveError> {
    let stopped = hopscope_process::stop_all(pid)?;
    let result = got::give_back(&stopped, memory, fused)
        .and_then(|_| patch::write(&stopped, memory, sites, Direction::Restore));
    let timing = stopped.resume()?;
    result.map(|_| timing.pause())
}
