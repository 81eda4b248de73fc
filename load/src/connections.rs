//! Connections: netperf's tests over TCP, UDP and ICMP, with the latency of each request, and the
//! servers for them. docs/load-connections.md says line by line what is counted.

pub mod datagram;
mod drive;
mod due;
mod error;
mod limits;
pub mod pattern;
pub mod rr;
pub mod serve;
pub mod short;
mod socket;
pub mod stream;
mod summary;
mod tally;
mod wait;

pub use drive::{Limits, RunResult};
pub use error::LoadError;
pub use limits::{Descriptors, descriptors_for, ports_for};
pub use summary::Summary;
pub use tally::{Failures, Tally};

use hopscope_openloop::{Arrivals, Schedule, SplitMix64};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// When the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At intended times, whatever was answered; latency counts from those.
    Open { rate_hz: f64, arrivals: Arrivals },
    /// As soon as the last one was answered, as netperf does; latency counts from the sending, and
    /// a server that stands still is not asked meanwhile.
    Closed,
    /// All connections at one moment, and again when the last of them is done; latency counts from
    /// that moment.
    Together,
}

/// How a client ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Close {
    /// FIN. The client's port waits 60 seconds in TIME_WAIT.
    Orderly,
    /// RST (`SO_LINGER` 0): no TIME_WAIT, and the server sees ECONNRESET.
    Reset,
}

/// What all the tests are told.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    pub target: SocketAddr,
    /// Used in turn; empty for the kernel's choice. Each gives some 28,000 connections more.
    pub sources: Vec<IpAddr>,
    pub connections: usize,
    pub threads: usize,
    /// Bytes.
    pub request: usize,
    /// Bytes. Byte i is byte i modulo `request` of the request: what an echo gives.
    pub response: usize,
    pub pace: Pace,
    /// Requests under way on a connection at most.
    pub depth: usize,
    pub seed: u64,
    pub verify: bool,
    pub close: Close,
    /// For a connection to be made, and for an answer.
    pub timeout: Duration,
    /// A request sent later than this is the generator's fault where nothing was in its way.
    pub behind_after: Duration,
    pub limits: Limits,
}

/// Schedules of connections are in nanoseconds.
const SECOND_NS: f64 = 1e9;

impl LoadPlan {
    /// # Errors
    /// A rate that cannot be paced.
    fn check(&self) -> Result<(), LoadError> {
        match self.pace {
            Pace::Open { rate_hz, arrivals } => {
                let schedule = Schedule::new(arrivals, rate_hz, SECOND_NS, SplitMix64::new(0));
                schedule.map(drop).ok_or(LoadError::Rate { rate_hz })
            }
            Pace::Closed | Pace::Together => Ok(()),
        }
    }
}

/// The connections of each thread, with their numbers.
type Shares = Vec<Vec<(u64, TcpStream)>>;

/// Makes all connections, one after the other: a queue that is too short for all at once would
/// disturb what is measured afterwards. The tally holds the time that each took.
fn open_all(plan: &LoadPlan) -> Result<(Shares, Tally), LoadError> {
    limits::ports_for(plan.connections, plan.sources.len())?;
    socket::check_sources(plan)?;
    let threads = plan.threads.min(plan.connections);
    let mut shares = Shares::new();
    shares.resize_with(threads, Vec::new);
    let mut tally = Tally::default();
    for number in 0..plan.connections {
        let begun = Instant::now();
        let stream = socket::must_open(plan, number)?;
        tally.connect.record(begun.elapsed().as_nanos() as u64);
        shares[number % threads].push((number as u64, stream));
    }
    Ok((shares, tally))
}
