//! The policies by name, as the command line and the control socket take them.
use super::HOLD_MAX;
use crate::Ns;
use std::fmt;
use std::str::FromStr;

/// Entries that the original's front end aggregates at most.
const TAM_LIMIT: u32 = 1_024;
const NO_LIMIT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// `plain`: each entry, even if suppressed.
    Plain,
    /// `suppress`: each entry, unless the peer's flag suppresses it.
    Suppress,
    /// `event-idx`: each entry, if the peer's event index requests it. The same decisions as
    /// `suppress`; the ring's test differs.
    EventIdx,
    /// `tam[:LIMIT]`: one notification for all that waits, even if suppressed.
    Tam { limit: u32 },
    /// `batch[:LIMIT]`: one notification for all that waits, unless suppressed.
    Batch { limit: u32 },
    /// `ahc:US:LIMIT`
    Ahc { time: Ns, limit: u32 },
    /// `ahc-window:US:LIMIT`: the time follows the rate, up to that many microseconds.
    AhcWindow { time: Ns, limit: u32 },
    /// `coal:PACKETS:US`
    Coalesce { packets: u32, time: Ns },
    /// `adaptive`
    Adaptive,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    #[error(
        "no policy {0:?}: plain, suppress, event-idx, tam[:LIMIT], batch[:LIMIT], ahc:US:LIMIT, \
         ahc-window:US:LIMIT, coal:PACKETS:US, adaptive"
    )]
    Unknown(String),
    #[error("{policy}: {word:?} is not a whole number of {what}")]
    Number {
        policy: String,
        word: String,
        what: &'static str,
    },
    #[error("{policy}: a limit of 0 entries would never notify; 1 is the least")]
    NoEntries { policy: PolicyKind },
    #[error("{policy}: entries are held back for {} us at most", HOLD_MAX.0 / 1_000)]
    TooLong { policy: PolicyKind },
}

impl PolicyKind {
    pub(super) fn check(self) -> Result<(), BadPolicy> {
        let (limit, time) = match self {
            PolicyKind::Tam { limit } | PolicyKind::Batch { limit } => (limit, Ns(0)),
            PolicyKind::Ahc { time, limit } | PolicyKind::AhcWindow { time, limit } => {
                (limit, time)
            }
            PolicyKind::Coalesce { time, .. } => (1, time),
            PolicyKind::Plain
            | PolicyKind::Suppress
            | PolicyKind::EventIdx
            | PolicyKind::Adaptive => (1, Ns(0)),
        };
        if limit == 0 {
            return Err(BadPolicy::NoEntries { policy: self });
        }
        if time > HOLD_MAX {
            return Err(BadPolicy::TooLong { policy: self });
        }
        Ok(())
    }
}

impl FromStr for PolicyKind {
    type Err = BadPolicy;

    fn from_str(text: &str) -> Result<PolicyKind, BadPolicy> {
        let words: Vec<&str> = text.split(':').collect();
        let number = |word: &str, what| {
            word.parse::<u32>().map_err(|_| BadPolicy::Number {
                policy: text.into(),
                word: word.into(),
                what,
            })
        };
        let entries = |word| number(word, "entries");
        let us = |word| number(word, "microseconds").map(|us| Ns::from_us(us.into()));
        let kind = match words[..] {
            ["plain"] => PolicyKind::Plain,
            ["suppress"] => PolicyKind::Suppress,
            ["event-idx"] => PolicyKind::EventIdx,
            ["tam"] => PolicyKind::Tam { limit: TAM_LIMIT },
            ["tam", limit] => PolicyKind::Tam {
                limit: entries(limit)?,
            },
            ["batch"] => PolicyKind::Batch { limit: NO_LIMIT },
            ["batch", limit] => PolicyKind::Batch {
                limit: entries(limit)?,
            },
            ["ahc", time, limit] => PolicyKind::Ahc {
                time: us(time)?,
                limit: entries(limit)?,
            },
            ["ahc-window", time, limit] => PolicyKind::AhcWindow {
                time: us(time)?,
                limit: entries(limit)?,
            },
            ["coal", packets, time] => PolicyKind::Coalesce {
                packets: entries(packets)?,
                time: us(time)?,
            },
            ["adaptive"] => PolicyKind::Adaptive,
            _ => return Err(BadPolicy::Unknown(text.into())),
        };
        kind.check()?;
        Ok(kind)
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyKind::Plain => f.write_str("plain"),
            PolicyKind::Suppress => f.write_str("suppress"),
            PolicyKind::EventIdx => f.write_str("event-idx"),
            PolicyKind::Tam { limit: TAM_LIMIT } => f.write_str("tam"),
            PolicyKind::Tam { limit } => write!(f, "tam:{limit}"),
            PolicyKind::Batch { limit: NO_LIMIT } => f.write_str("batch"),
            PolicyKind::Batch { limit } => write!(f, "batch:{limit}"),
            PolicyKind::Ahc { time, limit } => write!(f, "ahc:{}:{limit}", time.0 / 1_000),
            PolicyKind::AhcWindow { time, limit } => {
                write!(f, "ahc-window:{}:{limit}", time.0 / 1_000)
            }
            PolicyKind::Coalesce { packets, time } => {
                write!(f, "coal:{packets}:{}", time.0 / 1_000)
            }
            PolicyKind::Adaptive => f.write_str("adaptive"),
        }
    }
}

impl serde::Serialize for PolicyKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
