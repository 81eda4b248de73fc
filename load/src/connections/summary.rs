//! The end of a run, as one object or some lines.
use super::limits::TimeWait;
use super::serve::ServerReport;
use super::{Close, Descriptors, Failures, LoadPlan, Pace, RunResult, Tally};
use crate::interval::{marked, share, spoilt};
use crate::kernel_counters::KernelCounters;
use hopscope_openloop::Arrivals;
use hopscope_openloop::latency::Percentiles;
use serde::Serialize;
use std::fmt::Write;

/// Everything that a run found. Counts are of the measured part.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    r#type: &'static str,
    schema: u32,
    /// `tcp_rr`, `tcp_stream`, …
    pub test: &'static str,
    target: String,
    sources: Vec<String>,
    connections: usize,
    threads: usize,
    request_bytes: usize,
    response_bytes: usize,
    depth: usize,
    close: Close,
    verified: bool,
    seed: u64,
    descriptors_raised_to: Option<u64>,
    /// `open`, `closed` or `together`.
    pace: &'static str,
    arrivals: Option<Arrivals>,
    /// What the rate was to be; `None` in a closed loop.
    asked_per_s: Option<f64>,
    pub achieved_per_s: f64,
    /// Payload received and sent, in 10^6 bit/s.
    pub received_mbit_per_s: f64,
    pub sent_mbit_per_s: f64,
    pub elapsed_s: f64,
    warmup_asked: u64,
    pub asked: u64,
    pub done: u64,
    pub corrupt: u64,
    first_corrupt: Option<String>,
    pub failed: u64,
    failures: Failures,
    pub unsent: u64,
    surplus_bytes: u64,
    /// Datagrams only.
    duplicate: u64,
    reordered: u64,
    behind: u64,
    behind_share: f64,
    /// Percentiles that late sending alone could have moved.
    marked: Vec<&'static str>,
    bytes_sent: u64,
    bytes_received: u64,
    pub latency: Percentiles,
    connect: Percentiles,
    exchange: Percentiles,
    /// Of this network namespace, at the end of a run of short connections that ended in order.
    time_wait: Option<TimeWait>,
    /// Of this network namespace, during the run.
    kernel: Option<KernelCounters>,
    /// What our server counted during the run, and the kernel on its side.
    pub server: Option<ServerReport>,
}

const QUANTILES: &[(&str, f64)] = &[
    ("p50_ns", 0.5),
    ("p90_ns", 0.9),
    ("p99_ns", 0.99),
    ("p99_9_ns", 0.999),
    ("max_ns", 1.0),
];

impl Summary {
    pub fn new(
        test: &'static str,
        plan: &LoadPlan,
        outcome: &RunResult,
        descriptors: Descriptors,
        server: Option<ServerReport>,
    ) -> Summary {
        let run: &Tally = &outcome.run;
        let elapsed_s = outcome.elapsed.as_secs_f64();
        let per_s = |n: u64| {
            if elapsed_s > 0.0 {
                n as f64 / elapsed_s
            } else {
                0.0
            }
        };
        let behind_share = share(run.behind, run.asked);
        let (pace, asked_per_s, arrivals) = match plan.pace {
            Pace::Closed => ("closed", None, None),
            Pace::Together => ("together", None, None),
            Pace::Open { rate_hz, arrivals } => ("open", Some(rate_hz), Some(arrivals)),
        };
        let suspect = QUANTILES.iter().filter(|(_, q)| spoilt(*q, behind_share));
        Summary {
            r#type: "summary",
            schema: 1,
            test,
            target: plan.target.to_string(),
            sources: plan.sources.iter().map(ToString::to_string).collect(),
            connections: plan.connections,
            threads: plan.threads,
            request_bytes: plan.request,
            response_bytes: plan.response,
            depth: plan.depth,
            close: plan.close,
            verified: plan.verify,
            seed: plan.seed,
            descriptors_raised_to: match descriptors {
                Descriptors::Enough => None,
                Descriptors::Raised { to, .. } => Some(to),
            },
            pace,
            arrivals,
            asked_per_s,
            achieved_per_s: per_s(run.done),
            received_mbit_per_s: per_s(run.bytes_received) * 8.0 / 1e6,
            sent_mbit_per_s: per_s(run.bytes_sent) * 8.0 / 1e6,
            elapsed_s,
            warmup_asked: outcome.warmup.asked,
            asked: run.asked,
            done: run.done,
            corrupt: run.corrupt,
            first_corrupt: run.first_corrupt.clone(),
            failed: run.failures.total(),
            failures: run.failures.clone(),
            unsent: run.unsent,
            surplus_bytes: run.surplus,
            duplicate: run.duplicate,
            reordered: run.reordered,
            behind: run.behind,
            behind_share,
            marked: suspect.map(|(name, _)| *name).collect(),
            bytes_sent: run.bytes_sent,
            bytes_received: run.bytes_received,
            latency: run.latency.percentiles(),
            connect: run.connect.percentiles(),
            exchange: run.exchange.percentiles(),
            time_wait: match (test, plan.close) {
                ("tcp_crr" | "tcp_echo", Close::Orderly) => TimeWait::now(plan.sources.len()),
                _ => None,
            },
            kernel: outcome.kernel.clone(),
            server,
        }
    }

    /// Bytes were right and something was done.
    pub fn is_good(&self) -> bool {
        let wrong_at_server = self.server.as_ref().is_some_and(|s| s.counts.corrupt > 0);
        self.corrupt == 0 && self.surplus_bytes == 0 && !wrong_at_server && self.done > 0
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("numbers, and maps with names for keys")
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let pace = match self.asked_per_s {
            Some(rate) => format!("asked {rate:.0}/s"),
            None if self.pace == "closed" => "closed loop".into(),
            None => "released together".into(),
        };
        writeln!(
            out,
            "{} to {}: {} connections, {} B / {} B, {pace}, achieved {:.1}/s for {:.2} s \
             (sent {:.1}, received {:.1} Mbit/s)",
            self.test,
            self.target,
            self.connections,
            self.request_bytes,
            self.response_bytes,
            self.achieved_per_s,
            self.elapsed_s,
            self.sent_mbit_per_s,
            self.received_mbit_per_s,
        )?;
        let checked = if self.verified {
            "every byte checked"
        } else {
            "bytes not checked"
        };
        writeln!(
            out,
            "asked {}, done {}, wrong {}, failed {}, unsent {}; {checked}",
            self.asked, self.done, self.corrupt, self.failed, self.unsent
        )?;
        for (what, count) in self.failures.iter() {
            writeln!(out, "  failed {count} x {what}")?;
        }
        if self.duplicate + self.reordered > 0 {
            writeln!(
                out,
                "duplicate {}, reordered {}",
                self.duplicate, self.reordered
            )?;
        }
        if let Some(first) = &self.first_corrupt {
            writeln!(out, "  first wrong byte: {first}")?;
        }
        for (name, figures) in [
            ("latency", &self.latency),
            ("connect", &self.connect),
            ("exchange", &self.exchange),
        ] {
            if figures.count > 0 {
                let behind = if name == "latency" {
                    self.behind_share
                } else {
                    0.0
                };
                writeln!(out, "{}", row(name, figures, behind))?;
            }
        }
        if self.behind > 0 {
            writeln!(
                out,
                "the generator itself sent {} of {} late ({:.2} %): percentiles marked ~ may be \
                 its own",
                self.behind,
                self.asked,
                self.behind_share * 100.0
            )?;
        }
        if self.close == Close::Reset {
            writeln!(out, "connections were ended by RST: no TIME_WAIT")?;
        }
        if let Some(waiting) = self.time_wait.filter(|waiting| waiting.is_much()) {
            writeln!(
                out,
                "{} of {} local ports are in TIME_WAIT (whole network namespace): connect looks long for a free one, and \
                 the rate falls; --close reset, or more addresses (--source A-B)",
                waiting.ports, waiting.of
            )?;
        }
        let here = self.kernel.as_ref().map(KernelCounters::text);
        let there = self.server.as_ref().and_then(|s| s.kernel.as_ref());
        for (side, counters) in [
            ("kernel", here),
            ("server's kernel", there.map(|k| k.text())),
        ] {
            if let Some(counters) = counters.filter(|text| !text.is_empty()) {
                writeln!(out, "{side}: {counters} (whole network namespace)")?;
            }
        }
        if let Some(server) = &self.server {
            let c = &server.counts;
            writeln!(
                out,
                "server: accepted {}, datagrams {}, received {} B, sent {} B, reset {}, wrong {}",
                c.accepted, c.datagrams, c.bytes_received, c.bytes_sent, c.reset, c.corrupt
            )?;
        }
        Ok(())
    }
}

fn row(name: &str, p: &Percentiles, behind: f64) -> String {
    let values = [p.p50_ns, p.p90_ns, p.p99_ns, p.p99_9_ns, p.max_ns];
    let mut line = format!("{name:<9}");
    for ((quantile, q), ns) in QUANTILES.iter().zip(values) {
        let quantile = quantile.trim_end_matches("_ns").replace("p99_9", "p99.9");
        line += &format!("{quantile} {}  ", marked(ns, *q, behind));
    }
    line + &format!("n {}", p.count)
}
