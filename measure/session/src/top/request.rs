//! What is to be looked at, and how it is shown.
use super::by::By;
use crate::attach::AttachRequest;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct TopRequest {
    pub attach: AttachRequest,
    /// What matches is measured, too, when targets load it later.
    pub follow_dlopen: bool,
    /// Between two pictures.
    pub interval: Duration,
    pub duration: Option<Duration>,
    pub max_overhead_percent: f64,
    pub sort: By,
    /// Lines instead of a screen.
    pub raw: bool,
    /// Lines of JSON.
    pub json: bool,
}
