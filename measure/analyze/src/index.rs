//! What the pairing and the aggregates need of the tables, by dense number.
use crate::counts::CounterKind;
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::table::ModuleIx;
use hopscope_event::{CounterEntry, FunctionEntry, FunctionId, ProcessIx, ThreadEntry, ThreadIx};
use std::collections::HashMap;

/// Ids from here on are taken for damage: a table that large could not be held densely.
pub const FUNCTION_IDS_MAX: u32 = 1 << 24;

#[derive(Debug, Clone, Default)]
pub struct Index {
    module_of: Vec<Option<ModuleIx>>,
    process_of: HashMap<ThreadIx, ProcessIx>,
    counters: [Option<CounterKind>; COUNTERS_MAX],
}

impl Index {
    pub fn new(functions: &[FunctionEntry], threads: &[ThreadEntry]) -> Index {
        let process_of = threads.iter().map(|t| (t.ix, t.process)).collect();
        let mut index = Index {
            module_of: Vec::new(),
            process_of,
            counters: Default::default(),
        };
        index.add(functions);
        index
    }

    /// Functions that came later.
    pub fn add(&mut self, functions: &[FunctionEntry]) {
        for function in functions.iter().filter(|f| f.id.0 < FUNCTION_IDS_MAX) {
            let at = function.id.0 as usize;
            if at >= self.module_of.len() {
                self.module_of.resize(at + 1, None);
            }
            self.module_of[at] = Some(function.module);
        }
    }

    /// Calls are to be told what they counted on these.
    #[must_use]
    pub fn with_counters(mut self, counters: &[CounterEntry]) -> Index {
        for counter in counters {
            if let Some(place) = self.counters.get_mut(usize::from(counter.number)) {
                *place = Some(CounterKind::of(counter));
            }
        }
        self
    }

    pub fn counter(&self, number: u8) -> Option<CounterKind> {
        self.counters.get(usize::from(number)).copied().flatten()
    }

    /// `None` for a function that the recording does not list.
    #[inline]
    pub fn module(&self, function: FunctionId) -> Option<ModuleIx> {
        self.module_of.get(function.0 as usize).copied().flatten()
    }

    pub fn functions(&self) -> usize {
        self.module_of.len()
    }

    pub fn process(&self, thread: ThreadIx) -> Option<ProcessIx> {
        self.process_of.get(&thread).copied()
    }
}
