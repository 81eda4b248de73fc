//! `--kick-policy`: what a back end can ask of a driver that it cannot change.
use crate::Ns;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kicks {
    /// The event index is offered, and set to the next entry.
    EventIdx,
    /// No event index is offered.
    Flags,
    /// Enables kicks after busy-polling for as long as a kick costs.
    Adaptive,
    /// The event index is set further ahead.
    Defer { entries: u16, time: Ns },
}

impl Kicks {
    pub(super) fn offers_index(self) -> bool {
        self != Kicks::Flags
    }

    pub(super) fn defer(self) -> Option<DeferKicks> {
        match self {
            Kicks::Defer { entries, time } => Some(DeferKicks { entries, time }),
            Kicks::EventIdx | Kicks::Flags | Kicks::Adaptive => None,
        }
    }
}

impl FromStr for Kicks {
    type Err = BadKicks;

    fn from_str(text: &str) -> Result<Kicks, BadKicks> {
        let words: Vec<&str> = text.split(':').collect();
        match words[..] {
            ["event-idx"] => Ok(Kicks::EventIdx),
            ["flags"] => Ok(Kicks::Flags),
            ["adaptive"] => Ok(Kicks::Adaptive),
            ["defer", entries, us] => {
                let entries = entries.parse().ok().filter(|n| (1..=1024).contains(n));
                let us = us.parse().ok().filter(|us| (1..=10_000).contains(us));
                let (entries, us) = entries.zip(us).ok_or(BadKicks::Range)?;
                let time = Ns::from_us(us);
                Ok(Kicks::Defer { entries, time })
            }
            _ => Err(BadKicks::Unknown),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKicks {
    #[error("defer:K:US takes 1 to 1024 entries and 1 to 10000 microseconds")]
    Range,
    #[error("one of event-idx, flags, adaptive, defer:K:US")]
    Unknown,
}

impl fmt::Display for Kicks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kicks::EventIdx => f.write_str("event-idx"),
            Kicks::Flags => f.write_str("flags"),
            Kicks::Adaptive => f.write_str("adaptive"),
            Kicks::Defer { entries, time } => write!(f, "defer:{entries}:{}", time.0 / 1_000),
        }
    }
}

impl serde::Serialize for Kicks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A kick asked for at the `entries`-th entry from now, and an alarm after `time`, once as many were served
/// in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferKicks {
    pub entries: u16,
    pub time: Ns,
}
