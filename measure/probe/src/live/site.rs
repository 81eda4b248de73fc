//! A site: the 5 bytes of an entry that become a jump, and what may be found in them later.
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// `int3`
const BREAKPOINT: u8 = 0xcc;
/// A site with more foreign bytes than this is not ours.
const FOREIGN_AT_MOST: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    pub at: u64,
    pub original: [u8; 5],
    pub replaced: [u8; 5],
}

/// The last bytes of a jump at `at`: of `opcode`, or that of a condition behind its first byte. `None` when out of reach.
pub fn jump(opcode: u8, at: u64, to: u64) -> Option<[u8; 5]> {
    let distance = i32::try_from(to.wrapping_sub(at.wrapping_add(5)) as i64).ok()?;
    let d = distance.to_le_bytes();
    Some([opcode, d[0], d[1], d[2], d[3]])
}

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

/// Pages that hold a site: each becomes the target's own.
pub fn pages(patches: &[Patch]) -> u64 {
    let mut pages: Vec<u64> = patches
        .iter()
        .flat_map(|p| [p.at >> 12, (p.at + 4) >> 12])
        .collect();
    pages.dedup();
    pages.len() as u64
}

/// Which site, if any, has `address` strictly inside its replaced bytes. `patches` ascend.
pub fn site_around(patches: &[Patch], address: u64) -> Option<usize> {
    let after = patches.partition_point(|p| p.at < address);
    let i = after.checked_sub(1)?;
    (address < patches[i].at + 5).then_some(i)
}

/// The bytes of a restored site: the original, with the breakpoint that is in it.
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

/// Whether a site is as its file has it, but for breakpoints of others.
pub(super) fn is_original(site: [u8; 5], patch: &Patch) -> bool {
    let mut bytes = site.into_iter().zip(patch.original);
    bytes.all(|(now, original)| now == original || now == BREAKPOINT)
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
    fn near_sites_share_a_run() {
        let patches = [patch(0x1000), patch(0x2ffe), patch(0x4000), patch(0x6000)];
        let got: Vec<usize> = runs(&patches).iter().map(|r| r.len()).collect();
        assert_eq!(got, [3, 1]);
        assert_eq!(pages(&patches), 5);
    }
}
