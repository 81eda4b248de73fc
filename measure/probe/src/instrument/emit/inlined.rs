//! Probes where control comes into inlined functions, or leaves them.
use super::probe::{self, Live, ProbeConfig, Site, Stores};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::inlined::Crossing;

/// Amid the body all may be live.
pub(super) fn probes(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    crossings: &[Crossing],
) {
    // For benches: what calls cost.
    if config.stores != Stores::Records {
        return;
    }
    for crossing in crossings {
        let site = Site {
            function: crossing.function,
            kind: crossing.kind,
            live: Live::ALL,
            red_zone: true,
            position: crossing.position,
        };
        probe::probe(asm, zone, config, slow, site);
    }
}
