//! Which instructions of a function its tables name: of all others no place in the copy needs to be kept.
use crate::{Module, Refused};
use std::ops::Range;

impl Module<'_> {
    /// Ranges of calls, and where exceptions land that pass them: addresses in the file.
    ///
    /// # Errors
    /// Its tables cannot be converted.
    pub fn landings(&self, pieces: &[Range<u64>]) -> Result<Vec<(Range<u64>, u64)>, Refused> {
        let parts = self.parts(pieces)?;
        let sites = parts.iter().filter_map(|p| p.lsda.as_ref());
        let sites = sites.flat_map(|lsda| &lsda.call_sites);
        Ok(sites
            .filter_map(|s| Some((s.range.clone(), s.pad?)))
            .collect())
    }

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
