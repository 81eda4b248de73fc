//! Figures that are missing.
use serde::Serialize;

/// Why something asked for has no figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotMeasured {
    pub what: String,
    pub reason: String,
}
