//! Figures that are missing.
use serde::Serialize;

/// Why something asked for has no figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotMeasured {
    pub what: String,
    pub reason: String,
}

impl NotMeasured {
    pub(crate) fn new(what: impl ToString, reason: impl ToString) -> NotMeasured {
        NotMeasured {
            what: what.to_string(),
            reason: reason.to_string(),
        }
    }
}
