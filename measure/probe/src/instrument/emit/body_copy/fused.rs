//! Calls that share the stamp of the exit before them.
use super::{Added, Copier};
use crate::instrument::asm::{Label, Zone};
use crate::instrument::emit::fused;
use crate::instrument::emit::probe::Site;
use hopscope_event::record::FunctionId;
use std::collections::HashMap;

/// Calls right behind the return of another one, whose entry has the time of that exit.
#[derive(Clone, Copy)]
pub struct Fused<'a> {
    /// Those that the function makes, by their addresses: by these words.
    pub calls: &'a HashMap<u64, Label>,
    /// Those of the function: where they enter its copy, and whose exit comes before.
    pub ways: &'a [(Label, FunctionId)],
}

impl Copier<'_> {
    /// Behind the entry's probe.
    pub(super) fn ways_in(&mut self, site: Site, ways: &[(Label, FunctionId)], added: &mut Added) {
        let behind_probe = self.asm.label();
        self.asm.bind(Zone::Hot, behind_probe);
        for (way, before) in ways {
            let begin = self.asm.position(Zone::Cold);
            let way = (*way, *before, behind_probe);
            fused::way_in(self.asm, self.config, self.slow, site, way);
            added.ways.push(begin..self.asm.position(Zone::Cold));
        }
    }
}
