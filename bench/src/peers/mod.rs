//! The other tools of the same kind, where they are installed.
pub mod wrap;

use crate::Settings;
use crate::program::Compiler;
use crate::rows::{NotMeasured, Row};

/// Every peer that is measured after hopscope, each in its own processes.
pub(crate) fn others(
    _settings: &Settings,
    _compiler: &Compiler,
    _ms: u64,
    _rows: &mut Vec<Row>,
    _not_measured: &mut Vec<NotMeasured>,
) {
}
