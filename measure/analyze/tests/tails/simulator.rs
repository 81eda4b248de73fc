//! A network function in virtual time: packets come, a polling thread takes what is there in
//! batches through its modules, and sends them on. Every number is from one seed.
use super::random::Random;
use hopscope_analyze::{Match, NoMatch, OutsideCall, Packet, Run, RunCall, RunIx};
use hopscope_event::{FunctionId, OffCpu, Stamp, StreamIx, ThreadIx, Tsc};
use std::collections::VecDeque;

/// Ticks a microsecond.
pub const US: f64 = 2600.0;
pub const MODULES: u32 = 8;
/// Called for each packet, by module 4: the rules.
pub const LOOKUP: FunctionId = FunctionId(20);
/// What a command does.
pub const WALK: FunctionId = FunctionId(21);
const COMMAND: FunctionId = FunctionId(22);
const EXCEPTION: FunctionId = FunctionId(23);
const ROOT: FunctionId = FunctionId(0);
const BATCH_MAX: usize = 32;
/// Flows whose table entries are in the cache.
const CACHED: usize = 48;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// Some packets, of any flow, make this module slow.
    SlowPacket(FunctionId),
    Burst,
    /// Now and then packets are let gather.
    BigBatch,
    /// The rules of a few flows are found last.
    ExpensiveRule,
    /// Another process on the core.
    Interrupting,
    /// For a while flows come in an order in which no table entry is still cached.
    CacheHostile,
    /// Now and then the loop serves a command: in its pass, or between two runs.
    Command {
        in_run: bool,
    },
    /// Some packets, of any flow, need a short function more: nothing is wrong with that.
    Exceptions,
}

pub struct Recording {
    pub runs: Vec<Run>,
    pub packets: Vec<Packet>,
    pub off_cpu: Vec<OffCpu>,
    /// Packets, by number, that the planted thing touched itself.
    pub touched: usize,
}

impl Recording {
    /// The run of the first packet from this one on that came back and found nothing under way.
    pub fn idle_before(&self, packet: usize) -> RunIx {
        let known = self.packets[packet..].iter();
        let mut runs = known.filter_map(|packet| Some((packet.run?, packet.stamp.sent)));
        let idle = |(run, sent): &(RunIx, Tsc)| self.runs[run.0 as usize - 1].end < *sent;
        runs.find(idle).expect("a packet that did not wait").0
    }

    /// The packets of this run were sent, and then its thread, awake, slept for so long.
    pub fn let_wait(&mut self, late: RunIx, ticks: u64) {
        let later = |tsc: &mut Tsc| tsc.0 += ticks;
        let start = self.runs[late.0 as usize].start;
        for run in &mut self.runs[late.0 as usize..] {
            later(&mut run.start);
            later(&mut run.end);
            for call in &mut run.calls {
                later(&mut call.entry);
                later(&mut call.exit);
            }
        }
        for packet in &mut self.packets {
            let stamp = &mut packet.stamp;
            if stamp.sent >= start {
                later(&mut stamp.sent);
                later(&mut stamp.intended);
            }
            if packet.run.is_some_and(|run| run >= late) {
                stamp.received.iter_mut().for_each(later);
            }
        }
        self.off_cpu.push(OffCpu {
            out: Tsc(start.0 + ticks / 8),
            back: Tsc(start.0 + ticks),
            preempted: false,
        });
    }
}

struct Arrival {
    seq: u64,
    flow: u32,
    sent: f64,
    at: f64,
    slow: bool,
    expensive: bool,
    dropped: bool,
}

struct Simulator {
    random: Random,
    planted: Planted,
    /// Begin of the next interruption that has nothing to do with anything.
    hiccup: f64,
    preemption: f64,
    cache: VecDeque<u32>,
    off_cpu: Vec<OffCpu>,
    costs: [(f64, f64); MODULES as usize],
    spread: f64,
    /// Begin of the next command, and what one takes.
    command: f64,
    command_takes: f64,
    touched: usize,
}

pub fn simulate(seed: u64, planted: Planted, packets: usize) -> Recording {
    let mut random = Random::new(seed);
    // Per batch and per packet, in microseconds.
    let mut cost = |_| (random.between(0.1, 0.5), random.between(0.05, 0.35));
    let costs = std::array::from_fn(&mut cost);
    let mut s = Simulator {
        hiccup: random.exponential(4000.0 * US),
        preemption: random.exponential(6000.0 * US),
        spread: random.between(0.1, 0.3),
        command: 1e6 + 4000.0 * US,
        command_takes: 0.0,
        random,
        planted,
        cache: VecDeque::new(),
        off_cpu: Vec::new(),
        costs,
        touched: 0,
    };
    if matches!(planted, Planted::Command { .. }) {
        s.command_takes = s.random.between(300.0, 2500.0) * US;
    }
    let arrivals = s.arrivals(packets);
    s.serve(arrivals)
}

impl Simulator {
    fn arrivals(&mut self, packets: usize) -> Vec<Arrival> {
        let service: f64 = self.costs.iter().map(|(_, packet)| packet).sum::<f64>() + 0.2;
        let load = self.random.between(0.15, 0.45);
        let every = (service + 2.5) / load * US;
        let flows = 2000;
        let (mut sent, mut last, mut flow) = (1e6, 0f64, 0);
        let mut all: Vec<Arrival> = Vec::with_capacity(packets);
        let mut burst = 0;
        // The stretches of a hostile order: a tenth of all.
        let hostile = |seq: usize| self.planted == Planted::CacheHostile && seq % 10_000 >= 9_000;
        while all.len() < packets {
            let seq = all.len();
            if self.planted == Planted::Burst && burst == 0 && self.random.below(1500) == 0 {
                burst = 100 + self.random.below(100);
            }
            sent += match burst {
                0 => self.random.exponential(every),
                _ => 0.05 * US,
            };
            self.touched += usize::from(burst > 0);
            burst = burst.saturating_sub(1);
            flow = match hostile(seq) {
                // In turn: farthest from one packet of a flow to its next.
                true => (flow + 1) % flows,
                false if seq.is_multiple_of(8) => self.random.below(flows.into()) as u32,
                false => flow,
            };
            let transit = self.random.log_normal(2.0 * US, self.spread);
            last = last.max(sent + transit);
            let slow =
                matches!(self.planted, Planted::SlowPacket(_)) && self.random.below(600) == 0;
            let expensive = self.planted == Planted::ExpensiveRule && flow % 250 == 7;
            self.touched += usize::from(slow || expensive || hostile(seq));
            all.push(Arrival {
                seq: seq as u64,
                flow,
                sent,
                at: last,
                slow,
                expensive,
                dropped: self.random.below(5) == 0,
            });
        }
        all
    }

    /// Time passes for the thread, with what interrupts it meanwhile.
    fn pass(&mut self, now: &mut f64, ticks: f64) {
        let mut end = *now + ticks;
        while self.hiccup < end {
            if self.hiccup > *now {
                end += self.random.log_normal(12.0 * US, 0.6);
            }
            self.hiccup = self.hiccup.max(*now) + self.random.exponential(4000.0 * US);
        }
        while self.planted == Planted::Interrupting && self.preemption < end {
            if self.preemption > *now {
                let took = self.random.between(150.0, 500.0) * US;
                self.off_cpu.push(OffCpu {
                    out: Tsc(self.preemption as u64),
                    back: Tsc((self.preemption + took) as u64),
                    preempted: true,
                });
                end += took;
                self.touched += 1;
            }
            self.preemption = self.preemption.max(*now) + self.random.exponential(9000.0 * US);
        }
        *now = end;
    }

    fn serve(mut self, arrivals: Vec<Arrival>) -> Recording {
        let mut runs: Vec<Run> = Vec::new();
        let mut packets = Vec::with_capacity(arrivals.len());
        let (mut now, mut next, mut out_last) = (0f64, 0, 0f64);
        while next < arrivals.len() {
            if arrivals[next].at > now {
                now = arrivals[next].at;
                let wakes = self.random.log_normal(1.0 * US, self.spread);
                self.pass(&mut now, wakes);
            }
            if self.planted == Planted::BigBatch && self.random.below(400) == 0 {
                let all = (next + 23).min(arrivals.len() - 1);
                now = now.max(arrivals[all].at);
                self.touched += 1;
            }
            let mut outside = Vec::new();
            let commanded = self.command_takes > 0.0 && now >= self.command;
            if commanded && self.planted == (Planted::Command { in_run: false }) {
                outside.push(self.command_outside(&mut now));
            }
            let there = arrivals[next..].iter().take(BATCH_MAX);
            let n = there.take_while(|a| a.at <= now).count().max(1);
            let batch = &arrivals[next..next + n];
            next += n;
            let mut run = self.run(RunIx(runs.len() as u64), &mut now, batch);
            run.outside = outside;
            for a in batch {
                let mut way = 0.0;
                let takes = self.random.log_normal(4.0 * US, self.spread);
                // The receiver's core has hiccups of its own.
                way += takes;
                if self.random.below(20_000) == 0 {
                    way += self.random.log_normal(12.0 * US, 0.6);
                }
                out_last = f64::max(out_last, now + way);
                let stamp = Stamp {
                    seq: a.seq,
                    flow: a.flow,
                    len: 64,
                    intended: Tsc(a.sent as u64),
                    sent: Tsc(a.sent as u64),
                    received: (!a.dropped).then_some(Tsc(out_last as u64)),
                    ..Stamp::default()
                };
                packets.push(match a.dropped {
                    true => Packet {
                        stream: StreamIx(0),
                        stamp,
                        run: None,
                        matched: Match::None(NoMatch::NeverCameBack),
                    },
                    false => Packet {
                        stream: StreamIx(0),
                        stamp,
                        run: Some(run.ix),
                        matched: Match::Order { ambiguous_among: 1 },
                    },
                });
            }
            runs.push(run);
            now += 0.3 * US;
        }
        Recording {
            runs,
            packets,
            off_cpu: self.off_cpu,
            touched: self.touched,
        }
    }

    fn command_takes(&mut self, now: &mut f64) {
        let takes = self.random.log_normal(self.command_takes, 0.05);
        self.pass(now, takes);
        self.command = *now + self.random.between(10.0, 40.0) * self.command_takes;
        self.touched += 1;
    }

    fn command_outside(&mut self, now: &mut f64) -> OutsideCall {
        let entry = Tsc(*now as u64);
        self.command_takes(now);
        let exit = Tsc(*now as u64);
        let mut call = OutsideCall::new(entry, exit);
        call.add(WALK, exit - entry - 500);
        call.add(COMMAND, 500);
        call
    }

    /// A pass serves commands first, and then takes packets: those that came meanwhile are taken by the
    /// next pass.
    fn command_in_run(&mut self, now: &mut f64, calls: &mut Vec<RunCall>) {
        let at = calls.len();
        calls.push(call(COMMAND, 1, *now));
        self.pass(now, 500.0);
        calls.push(call(WALK, 2, *now));
        self.command_takes(now);
        calls[at + 1].exit = Tsc(*now as u64);
        calls[at].exit = Tsc(*now as u64);
    }

    fn hit(&mut self, flow: u32) -> bool {
        let known = self.cache.iter().position(|f| *f == flow);
        if let Some(at) = known {
            self.cache.remove(at);
        }
        self.cache.push_back(flow);
        if self.cache.len() > CACHED {
            self.cache.pop_front();
        }
        known.is_some()
    }

    fn run(&mut self, ix: RunIx, now: &mut f64, batch: &[Arrival]) -> Run {
        let start = Tsc(*now as u64);
        let mut calls = vec![call(ROOT, 0, *now)];
        let hits: Vec<bool> = batch.iter().map(|a| self.hit(a.flow)).collect();
        self.pass(now, 0.05 * US);
        let planted = self.planted == (Planted::Command { in_run: true });
        if planted && *now >= self.command {
            self.command_in_run(now, &mut calls);
        }
        for module in 0..MODULES {
            let at = calls.len();
            calls.push(call(FunctionId(module + 1), 1, *now));
            let (of_batch, of_packet) = self.costs[module as usize];
            let takes = self.random.log_normal(of_batch * US, self.spread);
            self.pass(now, takes);
            for (a, hit) in batch.iter().zip(&hits) {
                // Three modules look into tables.
                let miss = if !hit && module % 3 == 0 { 6.0 } else { 1.0 };
                let takes = self.random.log_normal(of_packet * miss * US, self.spread);
                self.pass(now, takes);
                if module == 3 {
                    let inner = calls.len();
                    calls.push(call(LOOKUP, 2, *now));
                    let rule = if a.expensive { 60.0 } else { 0.1 };
                    let takes = self.random.log_normal(rule * US, self.spread);
                    self.pass(now, takes);
                    calls[inner].exit = Tsc(*now as u64);
                }
                if a.slow && self.planted == Planted::SlowPacket(FunctionId(module + 1)) {
                    let takes = self.random.between(100.0, 300.0) * US;
                    self.pass(now, takes);
                }
            }
            let exceptions = batch.iter().filter(|a| a.seq % 31 == 0);
            for _ in exceptions.take(usize::from(module == 5)) {
                if self.planted == Planted::Exceptions {
                    let inner = calls.len();
                    calls.push(call(EXCEPTION, 2, *now));
                    let takes = self.random.log_normal(0.6 * US, self.spread);
                    self.pass(now, takes);
                    calls[inner].exit = Tsc(*now as u64);
                }
            }
            calls[at].exit = Tsc(*now as u64);
        }
        let end = Tsc(*now as u64);
        calls[0].exit = end;
        Run {
            ix,
            thread: ThreadIx(0),
            root: ROOT,
            start,
            end,
            complete: true,
            calls,
            values: Vec::new(),
            off_cpu_ticks: 0,
            calls_left_out: 0,
            outside: Vec::new(),
        }
    }
}

fn call(function: FunctionId, depth: u16, entry: f64) -> RunCall {
    RunCall {
        function,
        depth,
        parent: None,
        entry: Tsc(entry as u64),
        exit: Tsc(entry as u64),
        fused: false,
        own_ticks: 0,
        own_corrected: 0,
        off_cpu_ticks: 0,
    }
}
