//! Breakpoints that another tool sets in a measured entry: a uprobe of perf or bpftrace, a debugger.
//!
//! The kernel takes a uprobe's instruction from the file, runs that one, and goes on behind it:
//! in the middle of our jump. Nothing keeps it from setting one, and nothing tells of it, so
//! entries are read again at intervals, and one that was changed is given back.
use super::error::LiveError;
use super::patch::{self, Direction};
use super::table::Patch;
use hopscope_process::memory::TargetMemory;
use std::collections::BTreeSet;
use std::time::Duration;

/// `int3`
const BREAKPOINT: u8 = 0xcc;
/// Bytes of code read at a time (0.2 ms): with more between the entries it takes several looks to
/// see all of them.
const BYTES_A_LOOK: u64 = 1 << 20;
/// More foreign bytes than this make a site somebody else's.
const FOREIGN_AT_MOST: usize = 2;

/// What a site becomes when it is given back: the original bytes, and the breakpoint that is in it.
/// `None` where the site holds something else altogether, or the original already.
///
/// A breakpoint that was taken away again leaves the file's byte behind, in the middle of our jump.
pub(super) fn given_back(site: [u8; 5], patch: &Patch) -> Option<[u8; 5]> {
    if site == patch.original {
        return None;
    }
    let mut back = patch.original;
    let mut foreign = 0;
    for (i, now) in site.into_iter().enumerate() {
        if now != patch.replaced[i] {
            if now != BREAKPOINT && now != patch.original[i] {
                return None;
            }
            back[i] = now;
            foreign += 1;
        }
    }
    (foreign <= FOREIGN_AT_MOST).then_some(back)
}

/// Looks for such sites, a part of them at a time.
#[derive(Debug, Default)]
pub struct Watch {
    next: usize,
    given_back: BTreeSet<u64>,
}

impl Watch {
    /// The sites, of those it is the turn of, that hold part of our jump and a foreign byte.
    /// `patches` ascend.
    pub fn look(&mut self, memory: &TargetMemory, patches: &[Patch]) -> Vec<Patch> {
        if self.next >= patches.len() {
            self.next = 0;
        }
        let (mut disturbed, mut bytes, mut buffer) = (Vec::new(), 0, Vec::new());
        for run in patch::runs(&patches[self.next..]) {
            let room = run[0].at + BYTES_A_LOOK - bytes;
            let run = &run[..run.partition_point(|p| p.at < room)];
            if run.is_empty() {
                break;
            }
            let span = patch::span(run);
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

    /// These are other tools' by now, and are not looked at again.
    pub fn gave_back(&mut self, sites: &[Patch]) {
        self.given_back.extend(sites.iter().map(|p| p.at));
    }
}

/// Whether a site is as its file has it, but for breakpoints of others.
pub(super) fn is_original(site: [u8; 5], patch: &Patch) -> bool {
    let mut bytes = site.into_iter().zip(patch.original);
    bytes.all(|(now, original)| now == original || now == BREAKPOINT)
}

/// Gives `sites` back, in one stop of all threads. Returns how long it took.
pub fn give_back(pid: i32, memory: &TargetMemory, sites: &[Patch]) -> Result<Duration, LiveError> {
    let stopped = hopscope_process::stop_all(pid)?;
    let result = patch::write(&stopped, memory, sites, Direction::Restore);
    let timing = stopped.resume()?;
    result.map(|_| timing.pause())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: Patch = Patch {
        at: 0x1000,
        original: [0x55, 0x48, 0x89, 0xe5, 0x53],
        replaced: [0xe9, 1, 2, 3, 4],
    };

    #[test]
    fn a_site_of_ours_becomes_the_original() {
        assert_eq!(given_back(PATCH.replaced, &PATCH), Some(PATCH.original));
        assert_eq!(given_back(PATCH.original, &PATCH), None);
    }

    #[test]
    fn a_breakpoint_stays_where_it_is() {
        let first = given_back([0xcc, 1, 2, 3, 4], &PATCH);
        assert_eq!(first, Some([0xcc, 0x48, 0x89, 0xe5, 0x53]));
        let second = given_back([0xe9, 0xcc, 2, 3, 4], &PATCH);
        assert_eq!(second, Some([0x55, 0xcc, 0x89, 0xe5, 0x53]));
    }

    #[test]
    fn what_a_breakpoint_left_behind_is_no_jump_any_more() {
        assert_eq!(given_back([0x55, 1, 2, 3, 4], &PATCH), Some(PATCH.original));
    }

    #[test]
    fn what_somebody_else_wrote_is_left_alone() {
        assert_eq!(given_back([0x90, 1, 2, 3, 4], &PATCH), None);
        assert_eq!(given_back([0xcc, 0xcc, 0xcc, 3, 4], &PATCH), None);
        assert_eq!(given_back([0xe9, 5, 6, 7, 8], &PATCH), None);
    }
}
