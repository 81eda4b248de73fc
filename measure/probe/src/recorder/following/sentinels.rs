//! A few replaced entries of each module. A module that was unloaded, and loaded again where it was, has none of them.
use crate::live::site::Patch;
use crate::locate::MappedModule;
use hopscope_process::memory::TargetMemory;

/// Others may set breakpoints in some.
const OF_A_MODULE: usize = 4;

const BREAKPOINT: u8 = 0xcc;

#[derive(Default)]
pub(super) struct Sentinels(Vec<(MappedModule, Vec<Patch>)>);

impl Sentinels {
    /// `patches` ascend.
    pub(super) fn add(&mut self, modules: &[MappedModule], patches: &[Patch]) {
        for module in modules {
            let range = &module.avma_range;
            let first = patches.partition_point(|p| p.at < range.start);
            let last = patches.partition_point(|p| p.at < range.end);
            let own = &patches[first..last.max(first)];
            if !own.is_empty() {
                let apart = own.len().div_ceil(OF_A_MODULE);
                let some = own.iter().step_by(apart).copied().collect();
                self.0.push((module.clone(), some));
            }
        }
    }

    /// Those of modules that have lost all of theirs.
    pub(super) fn take_lost(&mut self, memory: &TargetMemory) -> Vec<MappedModule> {
        let is_there = |patch: &Patch| {
            let mut now = [0; 5];
            let read = memory.read(patch.at, &mut now).is_ok();
            // Another tool's: the rest of the entry was given back.
            let is_breakpoint = now[0] == BREAKPOINT && now[1..] == patch.original[1..];
            read && (now == patch.replaced || is_breakpoint)
        };
        let lost = self
            .0
            .extract_if(.., |(_, some)| !some.iter().any(is_there));
        lost.map(|(module, _)| module).collect()
    }
}
