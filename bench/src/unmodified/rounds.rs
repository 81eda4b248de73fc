//! One figure of several ways, in turn.
use super::Bench;
use super::processes::cpu_ns;
use super::ways::{Serving, Way};
use crate::error::Result;
use hopscope_compare::median::Interval;
use hopscope_compare::stats::Spread;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// What one turn of one way found.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Turn {
    /// Requests, or bits; of calls, nanoseconds each.
    pub(super) value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99_us: Option<f64>,
    /// Time on the processor of the program and of the instance, for a request or a kilobyte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_us: Option<f64>,
    /// The client's share of its processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_busy: Option<f64>,
}

/// Of each way, a turn of each round.
pub(super) type Turns = BTreeMap<Way, Vec<Turn>>;

impl Turn {
    pub(super) fn of(value: f64) -> Turn {
        Turn {
            value,
            p50_us: None,
            p99_us: None,
            cpu_us: None,
            client_busy: None,
        }
    }

    /// With what server and client take while `client` runs, which says how many units it had.
    pub(super) fn with_processors(
        serving: &Serving,
        client: impl FnOnce() -> Result<(Turn, f64)>,
    ) -> Result<Turn> {
        let (before, clients, start) = (cpu_ns(serving.pids()), of_children(), Instant::now());
        let (turn, units) = client()?;
        let (wall, of_client) = (start.elapsed().as_secs_f64(), of_children() - clients);
        let of_server = cpu_ns(serving.pids()).saturating_sub(before);
        Ok(Turn {
            cpu_us: Some(of_server as f64 / 1e3 / units),
            client_busy: Some(of_client / wall),
            ..turn
        })
    }
}

/// Of those that have ended, in seconds.
fn of_children() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    let us = usage.map_or(0, |usage| {
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    });
    us as f64 / 1e6
}

impl Bench<'_, '_> {
    /// Another way is first in each round. What goes wrong leaves out one way of this figure.
    pub(super) fn in_turn(
        &mut self,
        what: &'static str,
        ways: &[Way],
        mut measure: impl FnMut(&Self, Way) -> Result<Turn>,
    ) -> Result<()> {
        let mut left = ways.to_vec();
        let mut turns = Turns::new();
        for round in 0..self.rounds {
            let (number, rounds) = (round + 1, self.rounds);
            self.settings.say(&format!("{what}, {number} of {rounds}"));
            let count = left.len().max(1);
            left.rotate_left(usize::from(round > 0) % count);
            for way in left.clone() {
                match measure(self, way) {
                    Ok(turn) => {
                        let (side, found) = (way.name(), turn);
                        self.sample(
                            json!({ "what": what, "round": round, "side": side, "found": found }),
                        )?;
                        turns.entry(way).or_default().push(turn);
                    }
                    Err(error) => {
                        self.missing(&format!("{what} {}", way.name()), &error.to_string());
                        left.retain(|other| *other != way);
                        turns.remove(&way);
                    }
                }
            }
        }
        self.found.insert(what, turns);
        Ok(())
    }

    /// One way over another, of the rounds that they shared.
    pub(super) fn over(
        &self,
        what: &str,
        way: Way,
        other: Way,
        of: impl Fn(&Turn) -> Option<f64>,
    ) -> Option<Interval> {
        let turns = self.found.get(what)?;
        let (ours, theirs) = (turns.get(&way)?, turns.get(&other)?);
        let pairs = ours.iter().zip(theirs);
        crate::ratio::ratio(pairs.filter_map(|(a, b)| Some((of(a)?, of(b)?))))
    }

    pub(super) fn spread(&self, what: &str, way: Way) -> Option<Spread> {
        let turns = self.found.get(what)?.get(&way)?;
        let values: Vec<f64> = turns.iter().map(|turn| turn.value).collect();
        Spread::of(&values)
    }
}
