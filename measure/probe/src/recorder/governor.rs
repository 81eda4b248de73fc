//! What ends a recording for its targets' sake, whatever else was asked for. Their probes go at once.
use super::RingCounts;
use super::trigger::Trigger;
use hopscope_event::{TriggerEntry, TscFrequency};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Clone, Default)]
pub struct Governor {
    /// Of the records of a second.
    pub max_loss_percent: Option<f64>,
    pub heartbeat: Option<Heartbeat>,
    /// Calls that take too long.
    pub slow_calls: Vec<Trigger>,
}

/// A file that somebody touches as long as all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    pub file: PathBuf,
    pub within: Duration,
}

/// Why the targets were left alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Distress {
    Loss { percent: f64, limit: f64 },
    NoHeartbeat(Heartbeat),
    SlowCall { trigger: String, took: Duration },
}

impl fmt::Display for Distress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distress::Loss { percent, limit } => write!(
                f,
                "{percent:.1} % of the records of a second were lost, above the limit of {limit} % (--max-loss)"
            ),
            Distress::NoHeartbeat(Heartbeat { file, within }) => write!(
                f,
                "{} was not touched for {within:?} (--heartbeat)",
                file.display()
            ),
            Distress::SlowCall { trigger, took } => {
                write!(f, "a call took {took:.1?} (--detach-on {trigger:?})")
            }
        }
    }
}

impl Governor {
    pub(super) fn slow(&self, call: TriggerEntry, frequency: TscFrequency) -> Distress {
        let ticks = call.took_ticks.unwrap_or_default();
        let ns = frequency.ns(ticks.min(i64::MAX as u64) as i64);
        Distress::SlowCall {
            trigger: call.trigger,
            took: Duration::from_nanos(ns as u64),
        }
    }

    fn loss(&self, recorded: u64, lost: u64) -> Option<Distress> {
        let limit = self.max_loss_percent?;
        let percent = 100.0 * lost as f64 / (recorded + lost).max(1) as f64;
        (percent > limit).then_some(Distress::Loss { percent, limit })
    }
}

/// What had come out of all rings when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Counted {
    recorded: u64,
    lost: u64,
}

impl Counted {
    pub(super) fn loss_since(
        &mut self,
        governor: &Governor,
        now: impl Iterator<Item = RingCounts>,
    ) -> Option<Distress> {
        let (recorded, lost) = now.fold((0u64, 0u64), |(recorded, lost), counts| {
            (recorded + counts.recorded, lost + counts.lost)
        });
        let before = std::mem::replace(self, Counted { recorded, lost });
        governor.loss(recorded - before.recorded, lost - before.lost)
    }
}

/// The heartbeat as it is watched: whatever its clock says, the file's time is to change.
#[derive(Debug)]
pub(super) struct Beats {
    heartbeat: Option<Heartbeat>,
    last: Option<SystemTime>,
    since: Instant,
}

impl Beats {
    pub(super) fn begin(heartbeat: Option<Heartbeat>, now: Instant) -> Beats {
        let last = heartbeat.as_ref().and_then(touched);
        Beats {
            heartbeat,
            last,
            since: now,
        }
    }

    pub(super) fn look(&mut self, now: Instant) -> Option<Distress> {
        let heartbeat = self.heartbeat.as_ref()?;
        // One that is gone beats no more.
        let last = touched(heartbeat);
        if last.is_some() && last != self.last {
            (self.last, self.since) = (last, now);
        }
        (now - self.since > heartbeat.within).then(|| Distress::NoHeartbeat(heartbeat.clone()))
    }
}

fn touched(heartbeat: &Heartbeat) -> Option<SystemTime> {
    fs::metadata(&heartbeat.file).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_a_share_of_what_there_was() {
        let governor = Governor {
            max_loss_percent: Some(10.0),
            ..Governor::default()
        };
        assert_eq!(governor.loss(90, 10), None);
        let distress = governor.loss(89, 11);
        assert_eq!(
            distress,
            Some(Distress::Loss {
                percent: 11.0,
                limit: 10.0
            })
        );
        assert_eq!(governor.loss(0, 0), None);
        assert_eq!(Governor::default().loss(0, 10), None);
    }

    #[test]
    fn a_file_beats_when_its_time_changes() {
        let file = std::env::temp_dir().join(format!("heartbeat-{}", std::process::id()));
        fs::write(&file, b"").unwrap();
        let within = Duration::from_secs(1);
        let beats = |now| {
            let file = file.clone();
            Beats::begin(Some(Heartbeat { file, within }), now)
        };
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut watched = beats(start);
        assert_eq!(watched.look(at(1000)), None);
        // A clock that was set back: it is another time all the same.
        let touched = fs::File::options().write(true).open(&file).unwrap();
        touched.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(watched.look(at(1001)), None);
        assert_eq!(watched.look(at(2000)), None);
        assert!(matches!(
            watched.look(at(2002)),
            Some(Distress::NoHeartbeat(_))
        ));
        let mut gone = beats(start);
        fs::remove_file(&file).unwrap();
        assert_eq!(gone.look(at(999)), None);
        assert!(gone.look(at(1001)).is_some());
        assert_eq!(Beats::begin(None, start).look(at(9999)), None);
    }
}
