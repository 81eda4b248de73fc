//! Rows of a recording's tables that are known only while it runs: functions that calls through pointers call, and those of
//! modules that are loaded later.
use hopscope_event::table::ModuleEntry;
use hopscope_event::{CaptureEntry, FunctionEntry, Refusal};

/// What no sink was told of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRows {
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub captures: Vec<CaptureEntry>,
    pub refusals: Vec<Refusal>,
}

impl NewRows {
    pub fn is_empty(&self) -> bool {
        *self == NewRows::default()
    }

    pub(super) fn append(&mut self, new: &NewRows) {
        self.modules.extend_from_slice(&new.modules);
        self.functions.extend_from_slice(&new.functions);
        self.captures.extend_from_slice(&new.captures);
        self.refusals.extend_from_slice(&new.refusals);
    }
}
