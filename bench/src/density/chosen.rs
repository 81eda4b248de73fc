//! The functions that are measured.

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    pub(super) patterns: Vec<String>,
    pub(super) executions: f64,
    pub(super) asked: f64,
}

impl Chosen {
    /// Whether there were enough functions.
    pub(super) fn is_reached(&self) -> bool {
        self.executions >= 0.8 * self.asked
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }
}
