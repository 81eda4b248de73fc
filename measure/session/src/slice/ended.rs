//! What ended a session.
use std::fmt::{Display, Formatter, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As many packets as were asked for.
    Enough,
    Signal,
    Duration,
    Command,
    /// The device whose packets were followed.
    Disappeared,
}

impl Display for Ended {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Ended::Enough => "enough packets",
            Ended::Signal => "a signal",
            Ended::Duration => "the time is over",
            Ended::Command => "the command ended",
            // As tcpdump says it.
            Ended::Disappeared => "the interface disappeared",
        })
    }
}
