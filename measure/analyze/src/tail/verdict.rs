//! From events to causes: what chance does not explain gets a name.
use super::baseline::{BatchSize, Ordinary};
use super::blame::Blame;
use super::brief::Place;
use super::cause::{Cause, Evidence, Reason};
use super::chance::{binomial_at_least, normal_at_least};
use super::events::{Event, Late};
use super::flows::{Expensive, Flows};
use super::search::{Tail, TailCounts};
use hopscope_event::StreamIx;
use std::collections::{BTreeMap, BTreeSet};

/// ln of the probability below which an outlier, or a burst of arrivals, is statistically significant: p < 1 % over
/// the whole recording.
const OUTLIER_LN: f64 = -4.6;
/// ln of the chance that outliers gather in one place just so: 0.1 % over all places.
const GATHERING_LN: f64 = -6.9;
/// ln of how many lengths a crowd of arrivals is looked for at.
const STRETCHES_LN: f64 = 4.6;
/// Fewer events tell nothing of where they happen.
const EVENTS_MIN: u64 = 3;
/// Packets of a flow so many times farther apart than ordinarily are another order.
const REUSE_FARTHER: f64 = 1.5;
const EXAMPLES: usize = 3;
const FLOWS_LISTED: usize = 8;

/// What explains late packets.
#[derive(Debug)]
pub struct TailReport {
    /// Largest share of the late packets' time first; what is unknown takes its place among them.
    pub rows: Vec<TailRow>,
    pub counts: TailCounts,
    pub threshold_ticks: u64,
    /// Sum over the packets that were attributed.
    pub latency_ticks: i128,
    /// Sums of [`super::Parts`] over them, by the name of the part: add up to `latency_ticks`.
    pub parts: Vec<(&'static str, i128)>,
    pub batch_from: BatchSize,
    /// Runs that what is ordinary was learnt from.
    pub runs: u64,
}

#[derive(Debug)]
pub struct TailRow {
    pub cause: Cause,
    pub packets: u64,
    /// Runs, busy periods or single packets that it leads back to.
    pub events: u64,
    /// Part of `latency_ticks` that it explains.
    pub explained_ticks: i128,
    pub latency_ticks: i128,
    /// Expensive flows, most late packets first.
    pub flows: Vec<((StreamIx, u32), u64)>,
    /// Flows that are not listed.
    pub more_flows: u64,
    /// Latest first, one of an event.
    pub examples: Vec<Example>,
}

/// The latest packet of an event.
#[derive(Debug, Clone)]
pub struct Example {
    pub late: Late,
    pub evidence: Evidence,
    /// Further evidence, for expensive input: the flow.
    pub flow: Evidence,
}

/// Outliers that chance must be asked about once more: where they gather.
type Where = (u8, Option<Place>);

fn place_of(event: &Event) -> Where {
    event.blame.kind()
}

fn is_outlier(event: &Event, ordinary: &Ordinary) -> bool {
    let tries = match event.blame {
        Blame::Gathered(_) | Blame::WokenLate(_) => ordinary.pickups as f64,
        Blame::WayOut(_) => ordinary.way_outs as f64,
        _ => ordinary.runs as f64 * ordinary.places() as f64,
    };
    normal_at_least(event.z) + tries.max(1.0).ln() < OUTLIER_LN
}

impl Tail {
    /// Ends the input of runs and packets.
    pub fn finish(mut self) -> TailReport {
        self.look_at_rest();
        conclude(self)
    }
}

fn conclude(tail: Tail) -> TailReport {
    let Tail {
        ordinary,
        flows,
        counts,
        nothing,
        ..
    } = tail;
    let beyond = tail.events.beyond;
    let mut judged = Vec::new();
    let mut outliers: BTreeMap<Where, u64> = BTreeMap::new();
    let events = tail.events.into_sorted();
    let held = events.iter().filter(|e| matches!(e.blame, Blame::Held(_)));
    let holds = held.count() as u64 >= EVENTS_MIN;
    let mut held_up: BTreeMap<Where, u64> = BTreeMap::new();
    for event in events.iter().filter(|e| e.holds_up) {
        *held_up.entry(place_of(event)).or_default() += 1;
    }
    let blocks = |event: &Event| {
        let times = held_up.get(&place_of(event));
        event.holds_up && times.is_some_and(|n| *n >= EVENTS_MIN)
    };
    for event in events {
        let (cause, flow) = match (blocks(&event), event.blame.kind().1) {
            (true, Some(place)) => match flows.expensive(place, &event.flows) {
                Some(e) => (Some(Cause::ExpensiveInput(place)), evidence(e)),
                None => (Some(Cause::RareFunction(place)), Evidence::None),
            },
            _ => first_cause(&event, &ordinary, &flows, holds),
        };
        if cause.is_none() {
            *outliers.entry(place_of(&event)).or_default() += 1;
        }
        judged.push((event, cause, flow));
    }
    // Where some flows are surely expensive, those too rare to be significant alone
    // but were slow each time are of the same kind.
    let proven: BTreeSet<Where> = judged
        .iter()
        .filter(|(_, cause, _)| matches!(cause, Some(Cause::ExpensiveInput(_))))
        .map(|(event, ..)| place_of(event))
        .collect();
    for (event, cause, flow) in &mut judged {
        if let Blame::Slow(_, place) = event.blame
            && !matches!(cause, Some(Cause::ExpensiveInput(_)))
            && proven.contains(&place_of(event))
            && let Some(e) = flows.each_time(place, &event.flows)
        {
            if cause.is_none() {
                *outliers.entry(place_of(event)).or_default() -= 1;
            }
            (*cause, *flow) = (Some(Cause::ExpensiveInput(place)), evidence(e));
        }
    }
    let all: u64 = outliers.values().sum();
    let mut rows = Rows::default();
    for (event, cause, flow) in judged {
        let cause = cause.unwrap_or_else(|| {
            let at = place_of(&event);
            match gathers(at, outliers[&at], all, &ordinary) {
                true => named(&event),
                false => Cause::Unknown(Reason::Hiccups),
            }
        });
        rows.add(cause, event, flow);
    }
    rows.loose(
        Reason::NothingStandsOut,
        nothing.packets,
        nothing.latency,
        nothing.example,
    );
    rows.loose(Reason::TooManyEvents, beyond.0, beyond.1, None);
    TailReport {
        rows: rows.finish(),
        counts,
        threshold_ticks: tail.threshold_ticks,
        latency_ticks: tail.latency_ticks,
        parts: tail.parts.into_iter().collect(),
        batch_from: ordinary.batch_from,
        runs: ordinary.runs,
    }
}

fn evidence(e: Expensive) -> Evidence {
    Evidence::Flow {
        stream: e.flow.0,
        flow: e.flow.1,
        slow_runs: e.slow_runs,
        runs: e.runs,
    }
}

/// `None`: an outlier, of which it is to be seen where they gather.
/// `holds`: packets were held often enough to tell.
fn first_cause(
    event: &Event,
    ordinary: &Ordinary,
    flows: &Flows,
    holds: bool,
) -> (Option<Cause>, Evidence) {
    let unknown = |reason| (Some(Cause::Unknown(reason)), Evidence::None);
    match event.blame {
        Blame::Slow(_, place) => {
            if let Some(e) = flows.expensive(place, &event.flows) {
                return (Some(Cause::ExpensiveInput(place)), evidence(e));
            }
            match is_outlier(event, ordinary) {
                true => (None, Evidence::None),
                false => unknown(Reason::OrdinarySpread),
            }
        }
        Blame::Outside(..) | Blame::Gathered(_) | Blame::WayOut(_) => {
            match is_outlier(event, ordinary) {
                true => (None, Evidence::None),
                false => unknown(Reason::OrdinarySpread),
            }
        }
        // Neither chance nor an interruption makes a thread sleep that is awake with a packet there: its own doing.
        // But a packet is there later than its stamp says when its sender loses its processor between the two.
        Blame::Held(_) if holds => (Some(named(event)), Evidence::None),
        Blame::Held(_) => unknown(Reason::Hiccups),
        // Of a sleeping processor and of those that share it, so no place gathers these either.
        Blame::WokenLate(_) => match is_outlier(event, ordinary) {
            true => unknown(Reason::WokenLate),
            false => unknown(Reason::OrdinarySpread),
        },
        Blame::Slower(_) => match event.evidence {
            Evidence::Slower {
                reuse,
                ordinary_reuse,
                ..
            } if reuse > ordinary_reuse * REUSE_FARTHER => {
                (Some(Cause::CacheHostile), Evidence::None)
            }
            _ => unknown(Reason::SlowerForAWhile),
        },
        Blame::PreemptedIn(_) | Blame::PreemptedBefore(_) => {
            (Some(Cause::Preempted), Evidence::None)
        }
        Blame::Ordinary(_) if !ordinary.arrivals_known => unknown(Reason::ArrivalsNotSeen),
        Blame::Ordinary(_) => {
            // A stretch may begin at any packet, and its length was chosen to fit.
            let tries = (ordinary.packets.max(1) as f64).ln() + STRETCHES_LN;
            match event.chance_ln + tries < OUTLIER_LN {
                true => (Some(Cause::Burst), Evidence::None),
                false => unknown(Reason::OrdinaryQueueing),
            }
        }
        Blame::Generator => (Some(Cause::GeneratorLate), Evidence::None),
        Blame::NotWhole(_) => unknown(Reason::RunNotWhole),
        Blame::HistoryCut => unknown(Reason::HistoryCut),
    }
}

/// Interruptions hit a place in proportion to the time that is spent there. More than that is its
/// own doing.
fn gathers(at: Where, events: u64, all: u64, ordinary: &Ordinary) -> bool {
    let share = match at {
        (_, Some(place)) => ordinary.share(place),
        (3, None) => ordinary.pickup_share(),
        _ => ordinary.way_out_share(),
    };
    let several = (ordinary.places() as f64).ln();
    events >= EVENTS_MIN && binomial_at_least(events, all, share) + several < GATHERING_LN
}

fn named(event: &Event) -> Cause {
    match event.blame {
        Blame::Slow(_, place) | Blame::Outside(_, place) => Cause::SlowFunction(place),
        Blame::Gathered(_) | Blame::Held(_) if event.large_batch => Cause::BigBatch,
        Blame::Gathered(_) | Blame::Held(_) => Cause::BeforeNf,
        _ => Cause::WayOut,
    }
}

#[derive(Default)]
struct Rows {
    by_cause: BTreeMap<Cause, TailRow>,
    flows: BTreeMap<(Cause, (StreamIx, u32)), u64>,
}

impl Rows {
    fn row(&mut self, cause: Cause) -> &mut TailRow {
        self.by_cause.entry(cause).or_insert_with(|| TailRow {
            cause,
            packets: 0,
            events: 0,
            explained_ticks: 0,
            latency_ticks: 0,
            flows: Vec::new(),
            more_flows: 0,
            examples: Vec::new(),
        })
    }

    fn add(&mut self, cause: Cause, event: Event, flow: Evidence) {
        if let Evidence::Flow { stream, flow, .. } = flow {
            *self.flows.entry((cause, (stream, flow))).or_default() += event.packets;
        }
        let row = self.row(cause);
        row.packets += event.packets;
        row.events += 1;
        row.explained_ticks += event.explained;
        row.latency_ticks += event.latency;
        row.examples.push(Example {
            late: event.example,
            evidence: event.evidence,
            flow,
        });
        if row.examples.len() > 2 * EXAMPLES {
            row.keep_latest();
        }
    }

    fn loose(&mut self, reason: Reason, packets: u64, latency: i128, example: Option<Late>) {
        if packets == 0 {
            return;
        }
        let row = self.row(Cause::Unknown(reason));
        row.packets += packets;
        row.latency_ticks += latency;
        row.examples.extend(example.map(|late| Example {
            late,
            evidence: Evidence::None,
            flow: Evidence::None,
        }));
    }

    fn finish(mut self) -> Vec<TailRow> {
        for ((cause, flow), packets) in std::mem::take(&mut self.flows) {
            self.row(cause).flows.push((flow, packets));
        }
        let mut rows: Vec<_> = self.by_cause.into_values().collect();
        for row in &mut rows {
            row.keep_latest();
            row.flows
                .sort_by_key(|(flow, packets)| (std::cmp::Reverse(*packets), *flow));
            row.more_flows = row.flows.len().saturating_sub(FLOWS_LISTED) as u64;
            row.flows.truncate(FLOWS_LISTED);
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.latency_ticks), row.cause));
        rows
    }
}

impl TailRow {
    fn keep_latest(&mut self) {
        let key = |e: &Example| (-e.late.parts.latency_ticks, e.late.packet.stamp.seq);
        self.examples.sort_by_key(key);
        self.examples.truncate(EXAMPLES);
    }
}
