//! `hopscope report --tail p99.9|500us`.
use super::between;
use super::joined::{add_packets, no_packets, stamps_beside};
use super::packet_id::packet_id;
use super::{ReportArgs, unit};
use crate::runs::RunSource;
use anyhow::{Context, bail};
use hopscope_analyze::join::{Joined, Joiner};
use hopscope_analyze::tail::{Baseline, Tail, TailReport, Threshold};
use hopscope_analyze::{Packet, Run, RunIx, parse_span_ns};
use hopscope_event::{CaptureEntry, CapturePlace, FunctionId, OffCpu, ThreadIx};
use hopscope_report::{LateReport, Names, Recording, Scale};
use hopscope_trace::TraceReader;
use std::io::Write;

/// `p99.9` or a span of time.
pub fn parse_tail(text: &str) -> Result<(Threshold, String), String> {
    let wrong = || format!("{text:?}: write a percentile (p99.9) or a time (500us)");
    let threshold = match text.strip_prefix('p') {
        Some(percent) => {
            let percent: f64 = percent.parse().map_err(|_| wrong())?;
            if !(percent > 0.0 && percent < 100.0) {
                return Err(format!("{text:?}: a percentile lies between p0 and p100"));
            }
            Threshold::Percentile(percent)
        }
        None => Threshold::Ns(parse_span_ns(text).map_err(|_| wrong())?.0),
    };
    Ok((threshold, text.to_owned()))
}

pub fn write(
    out: &mut impl Write,
    args: &ReportArgs,
    source: &RunSource<'_>,
    recording: &Recording<'_>,
    asked: &(Threshold, String),
) -> anyhow::Result<()> {
    let other = stamps_beside(args, recording)?;
    let stamps = other.as_ref().unwrap_or(source.reader);
    if let Some(thin) = recording.thin.filter(|t| t.every > 1) {
        bail!(
            "only 1 of {} runs was kept: what a packet waited behind is not in the recording; \
             record without --every",
            thin.every
        );
    }
    let id = packet_id(args.packet_id.as_deref(), recording.captures)?;
    let without = between::without_stamps(args, source, recording, stamps, id.as_ref())?;
    let (mut joined, runs, between) = match without {
        Some(found) => (found.joined, found.runs, Some(found.between)),
        None => {
            let counts = batch_capture(recording.captures);
            let mut joiner = Joiner::new(id.map(|(id, _)| id)).counted_by(counts);
            if add_packets(&mut joiner, stamps, source.window)? == 0 {
                bail!("{}", no_packets(stamps, other.is_some()));
            }
            let runs = source.each(|run, runs| {
                let taken = joiner.run(&run);
                taken.context("narrow it down with --from and --to")?;
                runs.recycle(run);
                Ok(())
            })?;
            (joiner.finish(runs.losses()), runs, None)
        }
    };
    let arrivals = match &between {
        Some(_) => Arrivals::NotSeen,
        None => Arrivals::Stamped,
    };
    let found = search(source, recording, &mut joined, asked.0, arrivals)?;
    let names = Names::new(recording);
    let report = LateReport {
        names: &names,
        scale: Scale::new(unit(args.time), recording.meta.tsc_frequency),
        root: runs.root(),
        between: between.as_ref(),
        tail: &found.report,
        joined: &joined.counts,
        asked: &asked.1,
        off_cpu: &found.off_cpu,
        number: args.number,
    };
    match args.json {
        true => {
            hopscope_report::write_header_json(out, recording, unit(args.time))?;
            hopscope_report::write_tail_json(out, &report)?;
        }
        false => {
            hopscope_report::write_header(out, recording, unit(args.time))?;
            hopscope_report::write_tail(out, &report)?;
        }
    }
    Ok(())
}

/// Causes, and what is known of context switches in words.
pub(super) struct Found {
    pub report: TailReport,
    pub off_cpu: String,
}

/// Whether packets' times tell when they arrived.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arrivals {
    Stamped,
    NotSeen,
}

/// Two passes over the runs; leaves the packets sorted as they were looked at.
pub(super) fn search(
    source: &RunSource<'_>,
    recording: &Recording<'_>,
    joined: &mut Joined,
    threshold: Threshold,
    arrivals: Arrivals,
) -> anyhow::Result<Found> {
    let when = order(joined);
    let off_cpu = off_cpu(source.reader)?;
    let mut baseline = Baseline::new(batch_capture(recording.captures));
    for (thread, rows) in &off_cpu {
        baseline.off_cpu(*thread, rows.iter().copied());
    }
    let step = Step::new(&joined.packets, &when);
    step.each(source, &mut baseline, Baseline::run, Baseline::packet)?;
    let ordinary = match arrivals {
        Arrivals::NotSeen => baseline.finish().without_arrivals(),
        Arrivals::Stamped => baseline.finish(),
    };
    let threshold = threshold.ticks(&ordinary, recording.meta.tsc_frequency);
    let mut tail = Tail::new(ordinary, threshold);
    let step = Step::new(&joined.packets, &when);
    step.each(source, &mut tail, Tail::run, Tail::packet)?;
    Ok(Found {
        report: tail.finish(),
        off_cpu: off_cpu_text(source.reader, &off_cpu),
    })
}

/// Sorts packets so that each comes with its run, or, without one, when it was sent; and says with
/// which run that is.
fn order(joined: &mut Joined) -> Vec<RunIx> {
    let spans = &joined.spans;
    let meanwhile = |p: &Packet| {
        let at = spans.partition_point(|run| run.end < p.stamp.sent);
        RunIx(at as u64)
    };
    let key = |p: &Packet| (p.run.unwrap_or_else(|| meanwhile(p)), p.stamp.sent);
    joined.packets.sort_by_cached_key(key);
    joined.packets.iter().map(|p| key(p).0).collect()
}

type Switches = Vec<(ThreadIx, Vec<OffCpu>)>;

fn off_cpu(reader: &TraceReader) -> anyhow::Result<Switches> {
    let rows = reader.off_cpu().map(|batch| {
        let batch = batch.context("reading the context switches")?;
        Ok((batch.thread, batch.rows))
    });
    rows.collect()
}

fn off_cpu_text(reader: &TraceReader, found: &Switches) -> String {
    let spans: usize = found.iter().map(|(_, rows)| rows.len()).sum();
    match &reader.tables().off_cpu {
        Some(entry) => match &entry.why_not {
            Some(why) => format!("not known, so nothing is put down to it: {why}"),
            None if entry.lost > 0 => {
                format!(
                    "{spans} intervals known, {} switches LOST by the kernel",
                    entry.lost
                )
            }
            None => format!("{spans} intervals known"),
        },
        None => "not recorded, so nothing is put down to it".to_owned(),
    }
}

/// A captured number of packets: the first that is named so and is read once a call.
pub fn batch_capture(captures: &[CaptureEntry]) -> Option<(FunctionId, u16)> {
    let last = |name: &str| {
        let at = name.rfind(['.', '>']).map_or(0, |at| at + 1);
        name[at..].to_lowercase()
    };
    let counts = |c: &&CaptureEntry| {
        c.elements_max == 1
            && c.at != CapturePlace::Return
            && matches!(
                last(&c.name).as_str(),
                "n" | "count" | "received" | "packets" | "nb_pkts" | "n_packets" | "n_vectors"
            )
    };
    captures
        .iter()
        .find(counts)
        .map(|c| (c.function, c.capture))
}

/// One pass over the runs, with each packet in its place.
struct Step<'a> {
    packets: &'a [Packet],
    when: &'a [RunIx],
}

impl<'a> Step<'a> {
    fn new(packets: &'a [Packet], when: &'a [RunIx]) -> Step<'a> {
        Step { packets, when }
    }

    fn each<T>(
        self,
        source: &RunSource<'_>,
        to: &mut T,
        run: impl Fn(&mut T, &Run),
        packet: impl Fn(&mut T, &Packet),
    ) -> anyhow::Result<()> {
        let mut next = 0;
        source.each(|r, runs| {
            run(to, &r);
            while next < self.when.len() && self.when[next] <= r.ix {
                packet(to, &self.packets[next]);
                next += 1;
            }
            runs.recycle(r);
            Ok(())
        })?;
        self.packets[next..].iter().for_each(|p| packet(to, p));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_times() {
        let parsed = |text| parse_tail(text).map(|(t, _)| t);
        assert_eq!(parsed("p99.9"), Ok(Threshold::Percentile(99.9)));
        assert_eq!(parsed("500us"), Ok(Threshold::Ns(500_000)));
        for bad in ["p", "p100", "p0", "99.9%", "", "pNaN", "fast"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
