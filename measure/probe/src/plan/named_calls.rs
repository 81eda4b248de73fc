//! Which calls by name are timed where they are made.
use hopscope_event::table::ModuleIx;
use std::collections::HashSet;

/// A function, and by which name it calls another one.
pub(super) type Caller = (ModuleIx, u64, String);

#[derive(Default)]
pub(super) struct NamedCalls {
    pub(super) timed: HashSet<Caller>,
    /// Some place of it is.
    pub(super) refused: HashSet<Caller>,
}
