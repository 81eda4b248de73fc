//! What rows are ordered by.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Share,
    Calls,
    P50,
    P99,
    Max,
    Name,
}

impl By {
    pub const ALL: [By; 6] = [By::Share, By::Calls, By::P50, By::P99, By::Max, By::Name];

    pub fn word(self) -> &'static str {
        match self {
            By::Share => "share",
            By::Calls => "calls",
            By::P50 => "p50",
            By::P99 => "p99",
            By::Max => "max",
            By::Name => "name",
        }
    }
}
