//! Patching code: entries are replaced and restored in runs, one write for sites that lie together
//! (1,000 single writes cost 3 ms, one write of 1 MiB 0.2 ms). Threads are stopped meanwhile.
use super::error::LiveError;
use super::site::{self, Patch, runs, span};
use crate::progress::{self, Phase};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{StoppedProcess, code};
use std::collections::HashSet;
use std::time::Duration;

/// So much is read and written in one stop: about a millisecond.
const BYTES_A_STOP: u64 = 512 << 10;
/// Stopping so many threads takes about as long.
const THREADS_A_PART: u64 = 32;
/// Bytes between sites that lie apart cost nothing.
const APART: u64 = 2 * 4096;

/// Ascending patches in parts, each for a stop of its own of a process with so many threads: what is
/// to be written in tens of thousands of places is not written in one. At least one part.
pub fn parts(patches: &[Patch], threads: usize) -> Vec<&[Patch]> {
    let room = BYTES_A_STOP * (1 + threads as u64 / THREADS_A_PART);
    let (mut parts, mut rest, mut bytes) = (Vec::new(), patches, 0);
    let mut n = 0;
    while n < rest.len() {
        let before = n.checked_sub(1).map(|last| rest[last].at);
        bytes += before.map_or(APART, |at| (rest[n].at - at).min(APART));
        n += 1;
        if bytes >= room {
            let (part, behind) = rest.split_at(n);
            parts.push(part);
            (rest, n, bytes) = (behind, 0, 0);
        }
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Between two stops for parts the target runs several times as long as it was stopped.
pub fn let_run(paused: Duration) {
    const TIMES: u32 = 4;
    const AT_MOST: Duration = Duration::from_millis(20);
    std::thread::sleep((paused * TIMES).min(AT_MOST));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Originals become jumps.
    Replace,
    /// Jumps become originals, also where another tool has set a breakpoint in one.
    Restore,
}

/// What a write did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Written {
    pub sites: Vec<u64>,
    /// Sites that did not hold what was to be replaced: their module is gone, or the patch was
    /// never made.
    pub left_out: Vec<u64>,
    /// Functions that GOT slots led into the copies of.
    pub by_slots: HashSet<u64>,
}

/// Makes every page of the sites private to the target beforehand, so that no page is copied
/// during the stop: one byte of each site is written with the value it has. Returns the sites where
/// that is not possible, because their module is gone. Where the kernel lets only a tracer write to
/// code, the pages are copied during the stop.
///
/// # Errors
/// When a page cannot be copied for any other reason.
pub fn make_private(
    pid: i32,
    memory: &TargetMemory,
    patches: &[Patch],
) -> Result<Vec<u64>, LiveError> {
    let mut last = (u64::MAX, true);
    let mut gone = Vec::new();
    progress::begin(Phase::Pages, patches.len());
    for p in patches {
        progress::step(1);
        let mut touched = true;
        for at in [p.at, p.at + 4] {
            if at >> 12 != last.0 {
                let byte = [p.original[(at - p.at) as usize]];
                let mut now = [0u8];
                let mut same = memory.read(at, &mut now).is_ok() && now == byte;
                if same && let Err(e) = code::force(memory, at, &byte) {
                    // Unloaded since it was read.
                    same = memory.read(at, &mut now).is_ok();
                    if same && code::is_refused(&e) {
                        log::info!("code is written by a tracer only ({e}); the pause is longer");
                        return Ok(gone);
                    }
                    if same {
                        return Err(LiveError::io(pid, "making pages of its code its own")(e));
                    }
                }
                last = (at >> 12, same);
            }
            touched &= last.1;
        }
        if !touched {
            gone.push(p.at);
        }
    }
    Ok(gone)
}

/// Rewrites all sites of one process, one write for each run of sites. Everything is read before
/// anything is written; a site that does not hold what is to be replaced is left out.
///
/// # Errors
/// When a run that could be read cannot be written; others may have been.
pub fn write(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    patches: &[Patch],
    direction: Direction,
) -> Result<Written, LiveError> {
    let mut written = Written::default();
    let mut prepared: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut prepare = |run: &[Patch]| {
        let range = span(run);
        let mut bytes = vec![0u8; (range.end - range.start) as usize];
        if memory.read(range.start, &mut bytes).is_err() {
            return false;
        }
        let before = written.sites.len();
        for p in run {
            let at = (p.at - range.start) as usize;
            let site = &mut bytes[at..at + 5];
            let now: [u8; 5] = (&*site).try_into().expect("5 bytes");
            let to = match direction {
                Direction::Replace => (now == p.original).then_some(p.replaced),
                Direction::Restore => site::given_back(now, p),
            };
            if let Some(to) = to {
                site.copy_from_slice(&to);
                written.sites.push(p.at);
            } else if direction == Direction::Replace || !site::is_original(now, p) {
                written.left_out.push(p.at);
            }
        }
        if written.sites.len() != before {
            prepared.push((range.start, bytes));
        }
        true
    };
    let mut unreadable = Vec::new();
    for run in runs(patches) {
        if !prepare(run) {
            // Part of the run is gone (dlclose): its sites one by one.
            let alone = run.iter().map(std::slice::from_ref);
            unreadable.extend(alone.filter(|site| !prepare(site)).map(|site| site[0].at));
        }
    }
    written.left_out.extend(unreadable);
    let mut failed = None;
    for (at, bytes) in prepared {
        if let Err(source) = stopped.write_code(memory, at, &bytes) {
            failed.get_or_insert(source);
            // Replacing is taken back at once; restoring puts back all that can be.
            if direction == Direction::Replace {
                break;
            }
        }
    }
    match failed {
        Some(source) => Err(LiveError::io(stopped.pid(), "writing to its code")(source)),
        None => Ok(written),
    }
}

#[cfg(test)]
mod tests {
    use super::site::run_bytes;
    use super::*;

    fn patch(at: u64) -> Patch {
        Patch {
            at,
            original: [1; 5],
            replaced: [2; 5],
        }
    }

    #[test]
    fn parts_are_small_and_make_up_the_whole() {
        let patches: Vec<Patch> = (0..5000).map(|n| patch(0x1000 + n * 700)).collect();
        let all = parts(&patches, 1);
        let longest = all.iter().map(|part| run_bytes(part)).max().unwrap();
        assert!(all.len() > 3 && longest <= BYTES_A_STOP, "{longest}");
        assert_eq!(all.concat(), patches);
        // Many threads are stopped less often.
        assert_eq!(parts(&patches, 1000).len(), 1);
        assert_eq!(parts(&[], 1), [&[]; 1]);
        // Alone on their pages they cost as much as what lies between them.
        let far: Vec<Patch> = (0..300).map(|n| patch(n << 30)).collect();
        assert_eq!(parts(&far, 1).concat(), far);
        assert!(parts(&far, 1).len() > 1);
    }
}
