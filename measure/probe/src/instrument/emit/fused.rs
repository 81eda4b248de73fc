//! One stamp for two records: the entry of a call that is made right behind the exit of another one has that exit's time.
//!
//! `rdtsc` is half of what a probe costs. What lies between such an exit and such an entry is the return, at most
//! [`FEW`](crate::instrument::body::fused) instructions of the caller and the call: less than a probe takes.
//!
//! The caller's copy calls by a word, which leads here, or to the function's own entry. Whether the record before is what it
//! should be is looked at each time: the same ring, function, kind, lap and stack position. Else the clock is read.
use super::probe::{self, ProbeConfig, Site};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use hopscope_event::FunctionId;

/// A way into a copy behind its entry probe, with a probe of its own.
pub fn way_in(
    asm: &mut Asm,
    config: &ProbeConfig,
    slow: Slow,
    site: Site,
    (way, before, behind_probe): (Label, FunctionId, Label),
) {
    asm.bind(Zone::Cold, way);
    probe::fused_entry(asm, Zone::Cold, config, slow, site, before);
    asm.rel32(Zone::Cold, &[0xe9], behind_probe, &[]);
}
