//! What is counted. Every request that was asked ends in exactly one of: done, corrupt, failed,
//! unsent.
use hopscope_openloop::latency::Latency;
use nix::errno::Errno;
use serde::Serialize;
use std::collections::BTreeMap;

/// Failures by what was being done and why it failed: `connect: ECONNREFUSED`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Failures(BTreeMap<String, u64>);

impl Failures {
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, count)| (what.as_str(), *count))
    }

    fn add(&mut self, what: String, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    fn merge(&mut self, other: &Failures) {
        for (what, count) in &other.0 {
            self.add(what.clone(), *count);
        }
    }
}

/// Why a request got no right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Errno(Errno),
    /// No answer within `Plan::timeout`.
    TimedOut,
    /// The other side ended the connection.
    Closed,
    /// More bytes than were asked for.
    Surplus,
}

impl Cause {
    pub(super) fn errno(self) -> Errno {
        match self {
            Cause::Errno(errno) => errno,
            _ => Errno::UnknownErrno,
        }
    }

    pub(super) fn of(error: &std::io::Error) -> Cause {
        Cause::Errno(
            error
                .raw_os_error()
                .map_or(Errno::UnknownErrno, Errno::from_raw),
        )
    }
}

#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Intended times that passed; without a rate, requests begun.
    pub asked: u64,
    /// Answered wholly, and rightly where that is checked.
    pub done: u64,
    /// Answered with other bytes than the right ones.
    pub corrupt: u64,
    /// Due, and not sent before the run gave up.
    pub unsent: u64,
    /// Sent late with nothing but the generator in the way.
    pub behind: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes that answer nothing.
    pub surplus: u64,
    /// Answers that came again, or after they were given up.
    pub duplicate: u64,
    /// Answers that came after that of a later request on the same socket.
    pub reordered: u64,
    pub failures: Failures,
    /// Where the first wrong byte was.
    pub first_corrupt: Option<String>,
    /// From the intended time to the last byte; see `Pace`.
    pub latency: Latency,
    /// From the call to `connect` until the connection stood.
    pub connect: Latency,
    /// From the sending to the last byte of the answer, where connecting is part of a request.
    pub exchange: Latency,
    /// When the last answer was complete, in ns from the start.
    pub last_done_ns: u64,
}

impl Tally {
    pub(super) fn fail(&mut self, doing: &str, cause: Cause, count: u64) {
        if count > 0 {
            let why = match cause {
                Cause::Errno(errno) => format!("{errno:?}"),
                Cause::TimedOut => "no answer in time".into(),
                Cause::Closed => "closed by the other side".into(),
                Cause::Surplus => "more bytes than requested".into(),
            };
            self.failures.add(format!("{doing}: {why}"), count);
        }
    }

    #[inline]
    pub(super) fn done(&mut self, now_ns: u64, latency_ns: u64) {
        self.done += 1;
        self.latency.record(latency_ns);
        self.last_done_ns = now_ns;
    }

    pub(super) fn corrupted(&mut self, request: &str, (at, got, expected): (usize, u8, u8)) {
        self.corrupt += 1;
        let first = || format!("{request}: byte {at} is {got:#04x}, not {expected:#04x}");
        self.first_corrupt.get_or_insert_with(first);
    }

    pub(super) fn merge(&mut self, other: &Tally) {
        self.asked += other.asked;
        self.done += other.done;
        self.corrupt += other.corrupt;
        self.unsent += other.unsent;
        self.behind += other.behind;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.surplus += other.surplus;
        self.duplicate += other.duplicate;
        self.reordered += other.reordered;
        self.failures.merge(&other.failures);
        self.first_corrupt = self.first_corrupt.take().or(other.first_corrupt.clone());
        self.latency.merge(&other.latency);
        self.connect.merge(&other.connect);
        self.exchange.merge(&other.exchange);
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
    }
}
