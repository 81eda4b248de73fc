//! `hopscope load packets`: open-loop packets, and what became of each.
mod args;
mod reflect;
mod search;
mod traffic;

pub(crate) use args::PacketsArgs;

use crate::json::tagged;
use anyhow::bail;
use args::Rate;
use hopscope_event::{StreamEntry, StreamIx};
use hopscope_load::packets::clock;
use hopscope_load::packets::lines::{Lines, SummaryLine};
use hopscope_load::packets::matcher::RowSink;
use hopscope_load::packets::plan::{Pace, PacketPlan, Traffic};
use hopscope_load::packets::ports::Opened;
use hopscope_load::packets::rows;
use hopscope_load::packets::run::{OnInterval, RunResult, Timing};
use hopscope_load::packets::wait::Wait;
use hopscope_openloop::latency::LogWriter;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) fn run(args: PacketsArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::command::stop_flag()?;
    if args.reflect {
        return reflect::run(&args, &stop);
    }
    let rules = traffic::rules(&args)?;
    if let (Some(path), Some(rules)) = (&args.write_rules, &rules) {
        traffic::write_rules(path, rules)?;
        if args.tx.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let Some(tx) = &args.tx else {
        bail!("give a transmit port: --tx packet:DEVICE (or --write-rules FILE alone)");
    };
    let mut ports = Opened::open(tx, args.rx.as_ref(), args.threads)?;
    let traffic = traffic::build(&args, rules, &mut ports)?;
    let described = traffic::describe(&args, &traffic);
    let pace = match (args.rate, &traffic) {
        (Some(Rate::PerSecond(rate)), _) => Pace::Rate(rate),
        (Some(Rate::Max), _) => Pace::Max,
        (None, Traffic::Replay { .. }) => Pace::Original,
        (None, Traffic::Generated { .. }) => Pace::Rate(args::DEFAULT_RATE),
    };
    let plan = PacketPlan {
        traffic,
        arrivals: args.arrivals.0,
        ramp: args.ramp,
        seed: args.seed,
        frequency: clock::frequency(),
        wait: if args.spin { Wait::Spin } else { Wait::Sleep },
    };
    plan.check(pace)?;
    let session = Session {
        args: &args,
        plan,
        described,
        stop: &stop,
    };
    if args.find_max {
        return search::run(&session, &mut ports);
    }
    session.once(pace, &mut ports)
}

#[derive(Serialize)]
struct Summary<'a> {
    traffic: &'a str,
    sender: &'a str,
    receiver: &'a str,
    seed: u64,
    rows_unwritten: u64,
    #[serde(flatten)]
    packets: SummaryLine,
}

/// A plan and how to tell what came of it.
struct Session<'a> {
    args: &'a PacketsArgs,
    plan: PacketPlan,
    described: String,
    stop: &'a AtomicBool,
}

impl Session<'_> {
    fn timing(&self, duration: Duration) -> Timing {
        Timing {
            warm_up: self.args.warmup,
            duration,
            count: self.args.count.unwrap_or(u64::MAX),
            interval: Duration::from_secs(1),
            late_after: self.args.behind_after,
            lost_after: self.args.lost_after,
            rate: 0.0,
        }
    }

    fn lines(&self, ports: &Opened) -> Lines {
        Lines {
            frequency: self.plan.frequency,
            start: hopscope_event::Tsc(0),
            receives: ports.receives(),
        }
    }

    fn say(&self, line: &str) {
        if !self.args.json {
            crate::status::say!("{line}");
        }
    }

    fn print(&self, line: impl std::fmt::Display) -> anyhow::Result<()> {
        writeln!(std::io::stdout(), "{line}")?;
        Ok(())
    }

    fn once(&self, pace: Pace, ports: &mut Opened) -> anyhow::Result<ExitCode> {
        let args = self.args;
        let stream = StreamEntry {
            ix: StreamIx(0),
            sender: ports.sender.clone(),
            receiver: ports.receiver.clone().unwrap_or_default(),
            traffic: self.described.clone(),
        };
        if args.packets.is_some() && !ports.receives() {
            bail!(
                "--packets needs --rx: without it nothing is known of a packet but that it was sent"
            );
        }
        let rows = match &args.packets {
            Some(path) => Some(rows::create(path, &stream, self.plan.frequency)?),
            None => None,
        };
        let mut hdr = match &args.hdr {
            Some(path) => Some(LogWriter::create(path)?),
            None => None,
        };
        let (row_sink, row_file) = match rows {
            Some((mut sender, file)) => {
                let sink = move |stamp: &hopscope_event::Stamp| sender.row(stamp);
                (Some(Box::new(sink) as Box<_>), Some(file))
            }
            None => (None, None),
        };
        let from = &ports.sender;
        let to = ports
            .receiver
            .as_deref()
            .unwrap_or("nowhere (nothing is received)");
        self.say(&format!("{} from {from} to {to}", self.described));
        if matches!(pace, Pace::Max) {
            self.say("as fast as the port takes packets: latency counts from sending, and shows no waiting");
        }

        let mut lines = self.lines(ports);
        let mut first = None;
        let mut failed = None;
        let mut on_interval = |interval: &hopscope_load::packets::tally::Interval,
                               asked: Option<f64>| {
            lines.start = *first.get_or_insert(interval.start);
            let line = lines.interval(interval, asked);
            let printed = if args.json {
                tagged("interval", &line)
                    .map_err(Into::into)
                    .and_then(|line| self.print(line))
            } else {
                self.print(line)
            };
            if let Err(error) = printed {
                failed.get_or_insert(error);
                self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            let frequency = lines.frequency;
            let time = |ticks: i64| Duration::from_nanos(frequency.ns(ticks).max(0) as u64);
            if let Some(hdr) = hdr.as_mut().filter(|_| !interval.warm_up) {
                let start = time(interval.start - lines.start);
                let length = time(interval.end - interval.start);
                hdr.interval(start, length, interval.counts.latency.clone());
            }
        };
        let timing = self.timing(args.duration);
        let outcome = self.run(pace, timing, 0, ports, row_sink, &mut on_interval)?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(hdr) = hdr {
            hdr.finish()?;
        }
        let unwritten = match row_file {
            Some(file) => {
                let because = if outcome.interrupted {
                    "interrupted"
                } else {
                    "its time was over"
                };
                let sent = outcome.total.sent + outcome.warm_up.sent;
                let lost = outcome.total.lost + outcome.warm_up.lost;
                file.finish(because, sent, lost)?
            }
            None => 0,
        };
        let packets = self.lines(ports).summary(&outcome);
        if args.json {
            let summary = Summary {
                traffic: &self.described,
                sender: &stream.sender,
                receiver: &stream.receiver,
                seed: args.seed,
                rows_unwritten: unwritten,
                packets,
            };
            self.print(tagged("summary", &summary)?)?;
        } else {
            self.print(packets)?;
            if unwritten > 0 {
                self.print(format!("{unwritten} rows dropped: the disk was too slow"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn run(
        &self,
        pace: Pace,
        timing: Timing,
        trial: u8,
        ports: &mut Opened,
        rows: Option<RowSink>,
        on_interval: &mut OnInterval<'_>,
    ) -> anyhow::Result<RunResult> {
        // Trials differ, and so do runs that follow each other on the same ports.
        let number = (std::process::id() as u8).wrapping_add(trial);
        let ports = ports.ports();
        Ok(self
            .plan
            .run(pace, timing, number, ports, rows, self.stop, on_interval)?)
    }
}
