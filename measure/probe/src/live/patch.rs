//! Writing code: entries are replaced and put back in runs, one write for sites that lie together
//! (1,000 single writes cost 3 ms, one write of 1 MiB 0.2 ms). Threads are stopped meanwhile.
use super::breakpoints;
use super::error::LiveError;
use super::table::Patch;
use crate::progress::{self, Phase};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{StoppedProcess, code};
use std::ops::Range;
use std::time::Duration;

/// Ascending patches, split into runs in which every page holds a site: a run never touches a page
/// that is not code to be patched (between two modules lies data that the kernel may be writing).
pub fn runs(patches: &[Patch]) -> Vec<&[Patch]> {
    patches
        .chunk_by(|a, b| (b.at >> 12) - ((a.at + 4) >> 12) <= 1)
        .collect()
}

pub(super) fn span(run: &[Patch]) -> Range<u64> {
    run[0].at..run[run.len() - 1].at + 5
}

/// What is read and written for a run.
pub fn run_bytes(run: &[Patch]) -> u64 {
    let span = span(run);
    span.end - span.start
}

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

/// Between two stops for parts the target runs several times as long as it stood still.
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
    pub sites: u64,
    /// Sites that did not hold what was to be replaced: their module is gone, or the patch was
    /// never made.
    pub left_out: Vec<u64>,
}

/// Pages that hold a site: each becomes the target's own.
pub fn pages(patches: &[Patch]) -> u64 {
    let mut pages: Vec<u64> = patches
        .iter()
        .flat_map(|p| [p.at >> 12, (p.at + 4) >> 12])
        .collect();
    pages.dedup();
    pages.len() as u64
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
        let before = written.sites;
        for p in run {
            let at = (p.at - range.start) as usize;
            let site = &mut bytes[at..at + 5];
            let now: [u8; 5] = (&*site).try_into().expect("5 bytes");
            let to = match direction {
                Direction::Replace => (now == p.original).then_some(p.replaced),
                Direction::Restore => breakpoints::given_back(now, p),
            };
            if let Some(to) = to {
                site.copy_from_slice(&to);
                written.sites += 1;
            } else if direction == Direction::Replace || !breakpoints::is_original(now, p) {
                written.left_out.push(p.at);
            }
        }
        if written.sites != before {
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

/// Which site, if any, has `address` strictly inside its replaced bytes. `patches` ascend.
pub fn site_around(patches: &[Patch], address: u64) -> Option<usize> {
    let after = patches.partition_point(|p| p.at < address);
    let i = after.checked_sub(1)?;
    (address < patches[i].at + 5).then_some(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(at: u64) -> Patch {
        Patch {
            at,
            original: [1; 5],
            replaced: [2; 5],
        }
    }

    #[test]
    fn sites_are_found_only_strictly_inside() {
        let patches = [patch(100), patch(105), patch(200)];
        assert_eq!(site_around(&patches, 100), None);
        assert_eq!(site_around(&patches, 101), Some(0));
        assert_eq!(site_around(&patches, 104), Some(0));
        assert_eq!(site_around(&patches, 105), None);
        assert_eq!(site_around(&patches, 109), Some(1));
        assert_eq!(site_around(&patches, 110), None);
        assert_eq!(site_around(&patches, 99), None);
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

    #[test]
    fn near_sites_share_a_run() {
        let patches = [patch(0x1000), patch(0x2ffe), patch(0x4000), patch(0x6000)];
        let got: Vec<usize> = runs(&patches).iter().map(|r| r.len()).collect();
        assert_eq!(got, [3, 1]);
        assert_eq!(pages(&patches), 5);
    }
}
