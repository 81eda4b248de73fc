//! Which instructions of a function its tables name: of all others no place in the copy needs to be kept.
use crate::{Module, Refused};
use std::ops::Range;

impl Module<'_> {
    /// Addresses in the file, ascending, without those at which the pieces begin and end.
    pub fn locations(&self, pieces: &[Range<u64>]) -> Result<Vec<u64>, Refused> {
        let mut locations = Vec::new();
        for part in self.parts(pieces)? {
            locations.extend([part.range.start, part.range.end]);
            locations.extend(part.program.steps.iter().map(|(at, _)| *at));
            for site in part.lsda.iter().flat_map(|l| &l.call_sites) {
                locations.extend([site.range.start, site.range.end]);
                locations.extend(site.pad);
            }
        }
        locations.sort_unstable();
        locations.dedup();
        Ok(locations)
    }
}
