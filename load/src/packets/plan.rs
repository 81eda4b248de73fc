//! What is sent, decided before the first packet. A plan can be run several times, at several
//! rates: each run begins its models anew.
use super::PacketsError;
use super::due::{Due, Recorded};
use super::frame::{Frames, Link};
use super::matcher::{ByContent, Recognition, RowSink};
use super::order::{FlowOrder, Scatter};
use super::recognize::Recognizer;
use super::replay::{Capture, Replay};
use super::run::{OnInterval, Ports, Run, RunResult, Timing};
use super::sizes::{SizeDraw, Sizes};
use super::source::{Generated, Source};
use super::wait::Wait;
use hopscope_event::{Ns, TscFrequency};
use hopscope_openloop::random::seeded;
use hopscope_openloop::{Arrivals, Schedule};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub enum Traffic {
    Generated {
        frames: Arc<Frames>,
        sizes: Sizes,
        link: Link,
        /// Packets of a flow back to back.
        locality: u32,
        scatter: Option<Scatter>,
        zipf: Option<f64>,
    },
    Replay {
        capture: Arc<Capture>,
        /// When each frame was captured, from the first on.
        offsets_ns: Arc<[u64]>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Packets a second.
    Rate(f64),
    /// As captured.
    Original,
    /// Whenever the port has room.
    Max,
}

pub struct PacketPlan {
    pub traffic: Traffic,
    pub arrivals: Arrivals,
    pub ramp: Duration,
    pub seed: u64,
    pub frequency: TscFrequency,
    pub wait: Wait,
}

impl PacketPlan {
    pub fn flows(&self) -> u32 {
        match &self.traffic {
            Traffic::Generated { frames, .. } => frames.flows().len(),
            Traffic::Replay { capture, .. } => capture.flow_count(),
        }
    }

    /// `number` tells the frames of this run from those of others on the same ports.
    ///
    /// # Errors
    /// An impossible rate; the ports'.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is the caller's own, and used once"
    )]
    pub fn run(
        &self,
        pace: Pace,
        timing: Timing,
        number: u8,
        ports: Ports<'_>,
        rows: Option<RowSink>,
        stop: &AtomicBool,
        on_interval: &mut OnInterval<'_>,
    ) -> Result<RunResult, PacketsError> {
        let (source, recognition) = match &self.traffic {
            Traffic::Generated {
                frames,
                sizes,
                link,
                locality,
                scatter,
                zipf,
            } => (
                Source::Generated(Generated {
                    frames: Arc::clone(frames),
                    order: FlowOrder::new(frames.flows().len(), *locality, *zipf, self.seed)
                        .scattered(*scatter),
                    sizes: SizeDraw::new(sizes, self.seed),
                }),
                Recognition::Stamped(Recognizer::new(frames, sizes.lengths(), *link, number)),
            ),
            Traffic::Replay { capture, .. } => (
                Source::Replay(Replay::new(Arc::clone(capture))),
                Recognition::Content(ByContent::new(Arc::clone(capture))),
            ),
        };
        let (due, rate) = self.due(pace)?;
        let run = Run {
            source,
            due,
            recognition,
            flows: self.flows(),
            number,
            timing: Timing { rate, ..timing },
            frequency: self.frequency,
            wait: self.wait,
            rows,
            stop,
        };
        run.run(ports, on_interval)
    }

    /// Whether this pace can be kept by any clock.
    ///
    /// # Errors
    /// [`PacketsError::Rate`] when it cannot.
    pub fn check(&self, pace: Pace) -> Result<(), PacketsError> {
        self.due(pace).map(drop)
    }

    /// And the mean rate, 0 where none is asked for.
    fn due(&self, pace: Pace) -> Result<(Due, f64), PacketsError> {
        let largest = self.frequency.0 as f64;
        match (pace, &self.traffic) {
            (Pace::Rate(rate), _) => {
                let random = seeded(self.seed, "arrivals");
                let schedule = Schedule::new(self.arrivals, rate, largest, random)
                    .ok_or(PacketsError::Rate { rate, largest })?;
                let ramp = self.ramp.as_secs_f64() * largest;
                Ok((Due::Model(schedule.with_ramp(ramp)), rate))
            }
            (Pace::Original, Traffic::Replay { offsets_ns, .. }) => {
                let offsets = offsets_ns.iter().map(|ns| self.frequency.ticks(Ns(*ns)));
                let offsets: Arc<[u64]> = offsets.collect();
                let span = offsets_ns.last().map_or(1, |last| (*last).max(1));
                let rate = offsets.len() as f64 * 1e9 / span as f64;
                Ok((Due::Recorded(Recorded::new(offsets)), rate))
            }
            (Pace::Max | Pace::Original, _) => Ok((Due::AtOnce, 0.0)),
        }
    }
}
