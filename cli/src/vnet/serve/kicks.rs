//! `--kick-policy`: what a back end can ask of a driver that it cannot change.
use hopscope_vnet::Ns;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kicks {
    EventIdx,
    Flags,
    Defer { entries: u16, time: Ns },
}

impl FromStr for Kicks {
    type Err = String;

    fn from_str(text: &str) -> Result<Kicks, String> {
        let words: Vec<&str> = text.split(':').collect();
        match words[..] {
            ["event-idx"] => Ok(Kicks::EventIdx),
            ["flags"] => Ok(Kicks::Flags),
            ["defer", entries, us] => {
                let entries = entries.parse().ok().filter(|n| (1..=1024).contains(n));
                let us = us.parse().ok().filter(|us| (1..=10_000).contains(us));
                let (entries, us) = entries
                    .zip(us)
                    .ok_or("defer:K:US takes 1 to 1024 entries and 1 to 10000 microseconds")?;
                let time = Ns::from_us(us);
                Ok(Kicks::Defer { entries, time })
            }
            _ => Err("one of event-idx, flags, defer:K:US".into()),
        }
    }
}

impl fmt::Display for Kicks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kicks::EventIdx => f.write_str("event-idx"),
            Kicks::Flags => f.write_str("flags"),
            Kicks::Defer { entries, time } => write!(f, "defer:{entries}:{}", time.0 / 1_000),
        }
    }
}
