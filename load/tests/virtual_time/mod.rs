//! A link that does exactly what it is told, on a clock that only the test turns: what the
//! generator finds can be compared with the truth to the tick.
use hopscope_event::{Stamp, Tsc, TscFrequency};
use hopscope_load::packets::clock::Clock;
use hopscope_load::packets::due::Due;
use hopscope_load::packets::flow::{Flow, FlowTable, Protocol, numbered};
use hopscope_load::packets::frame::{Frames, Link};
use hopscope_load::packets::matcher::{Bounds, Matcher, Recognition, Strays};
use hopscope_load::packets::order::FlowOrder;
use hopscope_load::packets::recognize::Recognizer;
use hopscope_load::packets::sender::{Sender, SenderCounts, Span, Step};
use hopscope_load::packets::sizes::{SizeDraw, Sizes};
use hopscope_load::packets::source::{Generated, Source};
use hopscope_load::packets::tally::{Interval, PacketCounts, Tally};
use hopscope_load::packets::window::Window;
use hopscope_netio::{Capabilities, Counters, Fill, Frame, Offload, PacketIo, PortError, Visit};
use hopscope_openloop::random::seeded;
use hopscope_openloop::{Arrivals, Schedule};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A tick is a nanosecond.
pub const FREQUENCY: TscFrequency = TscFrequency(1_000_000_000);

#[derive(Clone, Default)]
pub struct Turned(Arc<AtomicU64>);

impl Turned {
    pub fn set(&self, at: Tsc) {
        self.0.fetch_max(at.0, Ordering::Relaxed);
    }
}

impl Clock for Turned {
    /// Each look takes a while, as on a machine.
    fn now(&self) -> Tsc {
        Tsc(self.0.fetch_add(25, Ordering::Relaxed))
    }
}

/// What the link does to one frame: each arrival with its delay, and the byte that is changed. A
/// change behind the end makes it a frame of someone else.
pub type Fate = Vec<(u64, Option<(usize, u8)>)>;

/// Decides from the number of the frame, its length and the time it was given.
pub type Decide = Box<dyn FnMut(u64, usize, Tsc) -> Fate + Send>;

pub struct TheLink {
    clock: Turned,
    decide: Decide,
    flying: Vec<(Tsc, u64, Vec<u8>)>,
    count: u64,
    arrivals: u64,
    slot: Vec<u8>,
    /// Takes so many frames and no more until time goes on; for a port that is too slow.
    pub gap: u64,
    free_at: Tsc,
}

impl TheLink {
    pub fn new(clock: Turned, decide: Decide) -> TheLink {
        TheLink {
            clock,
            decide,
            flying: Vec::new(),
            count: 0,
            arrivals: 0,
            slot: vec![0; 2048],
            gap: 0,
            free_at: Tsc(0),
        }
    }
}

impl PacketIo for TheLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: 1514,
            offload: false,
        }
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        let now = self.clock.now();
        self.flying.sort_by_key(|(at, order, _)| (*at, *order));
        let ready = self.flying.partition_point(|(at, ..)| *at <= now).min(max);
        for (at, _, bytes) in self.flying.drain(..ready) {
            visit(Frame {
                bytes: &bytes,
                wire_len: bytes.len(),
                received: at,
                offload: Offload::default(),
            });
        }
        Ok(ready)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        for done in 0..count {
            if self.free_at > self.clock.now() {
                return Ok(done);
            }
            let len = fill(&mut self.slot).len;
            if len == 0 {
                return Ok(done);
            }
            let now = self.clock.now();
            self.free_at = now + self.gap;
            for (delay, change) in (self.decide)(self.count, len, now) {
                let mut bytes = self.slot[..len].to_vec();
                match change {
                    Some((at, flip)) if at < len => bytes[at] ^= flip,
                    Some((_, fill)) => bytes.fill(fill),
                    None => {}
                }
                self.flying.push((now + delay, self.arrivals, bytes));
                self.arrivals += 1;
            }
            self.count += 1;
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(0)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(Counters::default())
    }
}

#[derive(Clone)]
pub struct Settings {
    pub protocol: Protocol,
    pub ipv6: bool,
    pub sizes: &'static str,
    pub flows: u32,
    pub rate: f64,
    pub duration: Duration,
    pub warm_up: Duration,
    pub arrivals: Arrivals,
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            protocol: Protocol::Udp,
            ipv6: false,
            sizes: "64",
            flows: 5,
            rate: 100_000.0,
            duration: Duration::from_millis(100),
            warm_up: Duration::ZERO,
            arrivals: Arrivals::Poisson,
            seed: 1,
        }
    }
}

pub struct Found {
    pub rows: Vec<Stamp>,
    pub intervals: Vec<Interval>,
    pub sender: SenderCounts,
    pub strays: Strays,
    pub total: PacketCounts,
    pub warm_up: PacketCounts,
}

pub const LATE_AFTER: u64 = 5_000;
pub const LOST_AFTER: u64 = 20_000_000;
pub const START: Tsc = Tsc(1 << 45);

/// The same sender and matcher that the command runs, a step of each in turn.
pub fn run(settings: &Settings, link: &mut TheLink) -> Found {
    let clock = link.clock.clone();
    clock.set(START);
    let address = |v4: &str, v6: &str| -> IpAddr {
        let text = if settings.ipv6 { v6 } else { v4 };
        text.parse().expect("an address")
    };
    let first = Flow {
        protocol: settings.protocol,
        source: address("198.18.0.1", "2001:2::1"),
        destination: address("198.19.0.1", "2001:2::2"),
        source_port: 1024,
        destination_port: 9,
    };
    let sizes: Sizes = settings.sizes.parse().expect("sizes");
    let addresses = Link {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };
    let flows = FlowTable::new(&numbered(first, settings.flows)).expect("one family");
    let frames = Arc::new(Frames::new(flows, &sizes, addresses, 1514).expect("room"));
    let seed = settings.seed;
    let source = Source::Generated(Generated {
        frames: Arc::clone(&frames),
        order: FlowOrder::new(settings.flows, 1, None, seed),
        sizes: SizeDraw::new(&sizes, seed),
    });
    let arrivals = settings.arrivals;
    let random = seeded(seed, "arrivals");
    let schedule = Schedule::new(arrivals, settings.rate, FREQUENCY.0 as f64, random);
    let schedule = schedule.expect("a rate");
    let ticks = |time: Duration| time.as_nanos() as u64;
    let measure_from = START + ticks(settings.warm_up);
    let end = measure_from + ticks(settings.duration);
    let span = Span {
        start: START,
        end,
        give_up: end + 1_000_000,
        count: u64::MAX,
    };
    let window = Arc::new(Window::new(1 << 16));
    let rows = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&rows);
    let run = 0x5a;
    let recognizer = Recognizer::new(&frames, sizes.lengths(), addresses, run);
    let mut sender = Sender::new(source, Due::Model(schedule), Arc::clone(&window), span, run);
    let mut matcher = Matcher::new(
        window,
        Recognition::Stamped(recognizer),
        settings.flows,
        Bounds {
            late: LATE_AFTER,
            lost: LOST_AFTER,
        },
        Tally::new(START, measure_from, end, 10_000_000, FREQUENCY),
        Some(Box::new(move |stamp| {
            sink.lock().expect("no panic").push(*stamp)
        })),
    );
    let mut intervals = Vec::new();
    while !matcher.is_done() {
        let step = sender.step(link, &clock).expect("the link never fails");
        matcher
            .step(link, clock.now())
            .expect("the link never fails");
        intervals.extend(matcher.closed_interval(clock.now()));
        // As long as nothing is due, time passes in steps that arrivals are seen in.
        let now = clock.now();
        match step {
            Step::NotDue(due) if due > now + 1_000 => clock.set(now + 1_000),
            Step::NotDue(due) => clock.set(due),
            Step::Done => clock.set(now + 10_000),
            Step::Sent(_) | Step::Full => {}
        }
    }
    intervals.extend(std::iter::from_fn(|| matcher.tally().finish(end)));
    let rows = rows.lock().expect("no panic").clone();
    Found {
        rows,
        intervals,
        sender: sender.counts(),
        strays: matcher.strays(),
        total: matcher.tally().total.clone(),
        warm_up: matcher.tally().warm_up.clone(),
    }
}
