//! What a run took: latency of packets, time and switches of its thread.
use super::counts::{Latency, ResourceUsage};
use super::error::DriveError;
use crate::Ns;
use hdrhistogram::Histogram;
use hopscope_serving::clock::Clock;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// Longer ones count as this.
const LONGEST_NS: u64 = 60_000_000_000;

pub(super) struct Spending {
    clock: Clock,
    begun: Ns,
    cpu: Ns,
    before: Usage,
    latency: Histogram<u64>,
}

fn usage() -> Result<Usage, DriveError> {
    getrusage(UsageWho::RUSAGE_THREAD).map_err(DriveError::system("asking for the thread's time"))
}

/// Of this thread; the kernel's other figure is in ticks of some milliseconds.
fn cpu() -> Result<Ns, DriveError> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    let time = time.map_err(DriveError::system("asking for the thread's time"))?;
    Ok(Ns(
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    ))
}

impl Spending {
    /// # Errors
    /// As getrusage(2).
    pub(super) fn begin(clock: Clock) -> Result<Spending, DriveError> {
        let latency = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        let latency = latency.map_err(|e| {
            DriveError::system("making a histogram")(std::io::Error::other(e.to_string()))
        })?;
        Ok(Spending {
            begun: clock.now(),
            cpu: cpu()?,
            before: usage()?,
            clock,
            latency,
        })
    }

    pub(super) fn packet(&mut self, took: Ns) {
        self.latency.saturating_record(took.0);
    }

    /// # Errors
    /// As getrusage(2).
    pub(super) fn end(self) -> Result<(Latency, ResourceUsage), DriveError> {
        let after = usage()?;
        let count = |after: i64, before: i64| (after - before).max(0) as u64;
        let spent = ResourceUsage {
            elapsed: self.clock.now().since(self.begun),
            cpu: cpu()?.since(self.cpu),
            voluntary_switches: count(
                after.voluntary_context_switches(),
                self.before.voluntary_context_switches(),
            ),
            involuntary_switches: count(
                after.involuntary_context_switches(),
                self.before.involuntary_context_switches(),
            ),
        };
        let at = |quantile| Ns(self.latency.value_at_quantile(quantile));
        let latency = if self.latency.is_empty() {
            Latency::default()
        } else {
            Latency {
                p50: at(0.5),
                p99: at(0.99),
                max: Ns(self.latency.max()),
            }
        };
        Ok((latency, spent))
    }
}
