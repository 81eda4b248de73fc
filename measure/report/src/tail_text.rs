//! Causes, chains and evidence as sentences.
use crate::recording::Names;
use crate::units::{Scale, grouped};
use hopscope_analyze::tail::TailRow;
use hopscope_analyze::tail::{Cause, Evidence, Example, Link, PartOf, Place, Reason, Segment};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Chain links that are told for an example.
const LINKS_TOLD: usize = 4;

fn place_text(names: &Names<'_>, place: Place) -> String {
    match place {
        Place::Function(f) => names.function(f),
        Place::Loop => "the polling loop itself".to_owned(),
    }
}

/// A cause in a few words.
pub(crate) fn cause_text(names: &Names<'_>, cause: Cause) -> String {
    match cause {
        Cause::SlowFunction(place) => format!("slow function {}", place_text(names, place)),
        Cause::RareFunction(place) => {
            format!(
                "rare function {} holds up packets",
                place_text(names, place)
            )
        }
        Cause::ExpensiveInput(place) => format!("expensive input for {}", place_text(names, place)),
        Cause::Burst => "burst of arrivals".to_owned(),
        Cause::BigBatch => "big batch".to_owned(),
        Cause::Preempted => "preempted".to_owned(),
        Cause::CacheHostile => "cache-hostile order of flows".to_owned(),
        Cause::GeneratorLate => "the generator was late".to_owned(),
        Cause::BeforeNf => "before the network function".to_owned(),
        Cause::WayOut => "on the way out".to_owned(),
        Cause::Unknown(reason) => format!("unknown: {}", reason_text(reason)),
    }
}

fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::NothingStandsOut => "no part stands out",
        Reason::OrdinarySpread => "slower than usual, no more than chance brings",
        Reason::OrdinaryQueueing => "ordinary queueing at this rate",
        Reason::ArrivalsNotSeen => "queueing, or large batches; arrivals are not seen here",
        Reason::WokenLate => "its thread slept and was woken late",
        Reason::Hiccups => "interruptions that hit anything",
        Reason::SlowerForAWhile => "all was slower for a while",
        Reason::RunNotWhole => "records of a run are missing",
        Reason::HistoryCut => "it began too far back",
        Reason::TooManyEvents => "more events than are told apart",
    }
}

/// How things are said.
pub(crate) struct Words<'a> {
    pub(crate) names: &'a Names<'a>,
    pub(crate) scale: Scale,
}

impl Words<'_> {
    fn time(&self, ticks: i64) -> String {
        self.scale.text(ticks.into())
    }

    pub(crate) fn row(&self, out: &mut impl Write, row: &TailRow) -> io::Result<()> {
        if !row.flows.is_empty() {
            let of = |((_, flow), n): &(_, u64)| format!("{flow} ({} late)", grouped(*n));
            let flows: Vec<_> = row.flows.iter().map(of).collect();
            let more = match row.more_flows {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            writeln!(out, "   flows {}{more}", flows.join(", "))?;
        }
        for example in &row.examples {
            self.example(out, example)?;
        }
        Ok(())
    }

    fn example(&self, out: &mut impl Write, e: &Example) -> io::Result<()> {
        writeln!(out, "   {}", self.headline(e))?;
        let story = self.story(e);
        if story.is_empty() {
            Ok(())
        } else {
            writeln!(out, "      {}", story.join("; "))
        }
    }

    /// Which packet, and what its time went to.
    pub(crate) fn headline(&self, e: &Example) -> String {
        let stamp = &e.late.packet.stamp;
        let run = e.late.packet.run;
        format!(
            "packet {} (flow {}, run {}) took {}: {}",
            stamp.seq,
            stamp.flow,
            run.map_or("none".to_owned(), |ix| ix.0.to_string()),
            self.time(e.late.parts.latency_ticks),
            self.parts(&e.late.parts.segments)
        )
    }

    /// From the packet back to what made it late.
    pub(crate) fn story(&self, e: &Example) -> Vec<String> {
        let links = e.late.links.iter().take(LINKS_TOLD);
        let mut said: Vec<String> = links.map(|link| self.link(link)).collect();
        let more = e.late.links.len().saturating_sub(LINKS_TOLD) as u32 + e.late.more_links;
        if more > 0 {
            said.push(format!("and {more} runs farther back"));
        }
        for evidence in [e.evidence, e.flow] {
            if evidence != Evidence::None {
                said.push(self.evidence(evidence));
            }
        }
        if e.late.parts.history_cut {
            said.push("earlier causes are unknown".to_owned());
        }
        said
    }

    fn link(&self, link: &Link) -> String {
        match link {
            Link::WaitedBehind {
                run,
                packets,
                ticks,
            } => format!(
                "it waited {} behind run {} ({})",
                self.time(*ticks),
                run.0,
                of_packets(*packets)
            ),
            Link::InBatch { run, packets } => {
                format!("it was one of {packets} packets in run {}", run.0)
            }
        }
    }

    /// The largest parts; all of them add up to the latency.
    fn parts(&self, segments: &[Segment]) -> String {
        let mut largest: Vec<_> = segments.to_vec();
        largest.sort_by_key(|s| std::cmp::Reverse(s.ticks));
        let told: Vec<_> = largest.iter().take(4).map(|s| self.segment(*s)).collect();
        let rest: i64 = largest.iter().skip(4).map(|s| s.ticks).sum();
        match rest {
            0 => told.join(", "),
            rest => format!("{}, the rest {}", told.join(", "), self.time(rest)),
        }
    }

    fn segment(&self, s: Segment) -> String {
        let time = self.time(s.ticks);
        match s.part {
            PartOf::Generator => format!("{time} late from the generator"),
            PartOf::Before => format!("{time} before the network function"),
            PartOf::Queueing(run) => format!("{time} behind run {}", run.0),
            PartOf::BatchMates => format!("{time} for its batch mates"),
            PartOf::Own(place) => format!("{time} own in {}", place_text(self.names, place)),
            PartOf::Preempted => format!("{time} preempted"),
            PartOf::Waiting => format!("{time} asleep in its run"),
            PartOf::WayOut => format!("{time} on the way out"),
        }
    }

    pub(crate) fn segment_json(&self, s: Segment) -> Value {
        let time = format!("time_{}", self.scale.suffix());
        let ticks = self.scale.number(s.ticks.into());
        match s.part {
            PartOf::Queueing(run) => json!({"part": s.part.name(), "run": run.0, time: ticks}),
            PartOf::Own(place) => {
                json!({"part": s.part.name(), "function": place_text(self.names, place), time: ticks})
            }
            part => json!({"part": part.name(), time: ticks}),
        }
    }

    pub(crate) fn evidence(&self, evidence: Evidence) -> String {
        match evidence {
            Evidence::Slow {
                run,
                ticks,
                ordinary_ticks,
            } => format!(
                "in run {} it took {}, ordinarily {} for such a batch",
                run.0,
                self.time(ticks),
                self.time(ordinary_ticks)
            ),
            Evidence::Rare {
                run,
                ticks,
                in_run,
                runs,
                of,
            } => {
                let (when, also) = if in_run {
                    ("in", "in")
                } else {
                    ("between the runs, before", "before")
                };
                format!(
                    "it took {} {when} run {}; it is called {also} {} of {} runs with packets",
                    self.time(ticks),
                    run.0,
                    grouped(runs),
                    grouped(of)
                )
            }
            Evidence::Arrivals {
                packets,
                within_ticks,
                expected,
            } => format!(
                "{packets} packets came within {}, where {expected:.1} are the mean",
                self.time(within_ticks)
            ),
            Evidence::Batch {
                run,
                packets,
                ordinary,
                gathered_ticks,
            } => format!(
                "run {} had {}, ordinarily {ordinary}; they gathered for {} while no run was under way",
                run.0,
                of_packets(packets),
                self.time(gathered_ticks)
            ),
            Evidence::OffCpu { run, ticks, in_run } => format!(
                "the thread was preempted for {} {} run {}",
                self.time(ticks),
                if in_run { "in" } else { "before" },
                run.0
            ),
            Evidence::Slower {
                run,
                ratio,
                reuse,
                ordinary_reuse,
            } => {
                let apart = if reuse > 0.0 && ordinary_reuse > 0.0 {
                    format!(
                        "packets of a flow came {reuse:.0} packets apart, ordinarily {ordinary_reuse:.0}"
                    )
                } else {
                    "how far apart the packets of a flow came is not known".to_owned()
                };
                format!(
                    "around run {} runs took {ratio:.2} times as long, in several functions; {apart}",
                    run.0
                )
            }
            Evidence::Part {
                ticks,
                ordinary_ticks,
            } => format!(
                "that took {}, ordinarily {}",
                self.time(ticks),
                self.time(ordinary_ticks)
            ),
            Evidence::Flow {
                flow,
                slow_runs,
                runs,
                ..
            } => {
                format!("it was slow in {slow_runs} of {runs} runs with packets of flow {flow}")
            }
            Evidence::None => String::new(),
        }
    }
}

fn of_packets(n: u32) -> String {
    match n {
        1 => "1 packet".to_owned(),
        n => format!("{n} packets"),
    }
}
