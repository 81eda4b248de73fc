//! Late packets, by cause.
use crate::between;
use crate::error::{Context, Result, refuse};
use crate::joined::{add_packets, no_packets};
use crate::options::ReportOptions;
use crate::packet_id::{batch_capture, packet_id};
use crate::runs::RunSource;
use crate::selection::Selection;
use crate::stamps;
use hopscope_analyze::join::{Joined, Joiner};
use hopscope_analyze::tail::{Baseline, Tail, TailReport, Threshold};
use hopscope_analyze::{Packet, Run, RunIx};
use hopscope_event::{OffCpu, ThreadIx};
use hopscope_report::{LateReport, Names, Recording, Scale};
use hopscope_trace::TraceReader;
use std::io::Write;

/// By cause, worst first; as text or JSON.
///
/// # Errors
/// No packets or runs, and what cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
    threshold: &(Threshold, String),
) -> Result<()> {
    let source = &selection.runs(options.root.as_deref());
    let other = stamps::of_options(options, recording.meta)?;
    let stamps = other.as_ref().unwrap_or(selection.reader());
    if let Some(thin) = recording.thin.filter(|t| t.every > 1) {
        refuse!(
            "only 1 of {} runs was kept: what a packet waited behind is not in the recording; \
             record without --every",
            thin.every
        );
    }
    let id = packet_id(options.packet_id.as_deref(), recording.captures)?;
    let without = between::without_stamps(options, source, recording, stamps, id.as_ref())?;
    let (mut joined, runs, between) = match without {
        Some(found) => (found.joined, found.runs, Some(found.between)),
        None => {
            let counts = batch_capture(recording.captures);
            let mut joiner = Joiner::new(id.map(|(id, _)| id)).counted_by(counts);
            if add_packets(&mut joiner, selection, stamps)? == 0 {
                refuse!("{}", no_packets(stamps, other.is_some()));
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
    let found = search(source, recording, &mut joined, threshold.0, arrivals)?;
    let names = Names::new(recording);
    let report = LateReport {
        names: &names,
        scale: Scale::new(options.time, recording.meta.tsc_frequency),
        root: runs.root(),
        between: between.as_ref(),
        tail: &found.report,
        joined: &joined.counts,
        asked: &threshold.1,
        off_cpu: &found.off_cpu,
        number: options.number,
    };
    if options.json {
        hopscope_report::write_header_json(out, recording, options.time)?;
        hopscope_report::write_tail_json(out, &report)?;
    } else {
        hopscope_report::write_header(out, recording, options.time)?;
        hopscope_report::write_tail(out, &report)?;
    }
    Ok(())
}

/// Causes, and what is known of context switches in words.
pub(crate) struct Found {
    pub report: TailReport,
    pub off_cpu: String,
}

/// Whether packets' times tell when they arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrivals {
    Stamped,
    NotSeen,
}

/// Two passes over the runs; leaves the packets sorted as they were looked at.
pub(crate) fn search(
    source: &RunSource<'_>,
    recording: &Recording<'_>,
    joined: &mut Joined,
    threshold: Threshold,
    arrivals: Arrivals,
) -> Result<Found> {
    let when = order(joined);
    let reader = source.selection.reader();
    let off_cpu = off_cpu(reader)?;
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
        off_cpu: off_cpu_text(reader, &off_cpu),
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

fn off_cpu(reader: &TraceReader) -> Result<Switches> {
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
    ) -> Result<()> {
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
