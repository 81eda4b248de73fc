//! A program that calls, works, and loses its processor, with probes that read two counters; it knows what each call
//! counted by whose work it was, not by the difference of readings.
use hopscope_analyze::LeftOut;
use hopscope_event::counter::capture_number;
use hopscope_event::{
    CapturePlace, Content, Count, CounterCost, CounterEntry, CounterEvent, FunctionId, Record,
    RecordKind, Value,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub const FUNCTIONS: u32 = 8;
/// What probes count on the first counter: outside of their own readings and inside, at an entry and at an end.
const OUTSIDE: u64 = 7;
const INSIDE: u64 = 5;
pub const BITS: u8 = 40;

#[derive(Debug, Clone)]
pub enum Act {
    Call {
        function: u32,
    },
    Return,
    TailCall {
        function: u32,
    },
    Work {
        events: u64,
    },
    /// The kernel takes the thread's processor away and gives it back.
    Preempt,
    /// The first counter goes to another event, or comes back.
    Multiplex,
    Longjmp {
        frames: usize,
    },
    /// Another stack runs, and calls.
    Switch {
        function: u32,
    },
}

/// The first counts work and is a processor's, the second counts preemptions and is the kernel's.
pub fn counters() -> Vec<CounterEntry> {
    let entry = |number, kind, bits, bias, pair| CounterEntry {
        number,
        name: format!("counter{number}"),
        event: CounterEvent { kind, config: 1 },
        bits,
        cost: Some(CounterCost {
            bias: [bias; 3],
            pair: Some(pair),
        }),
        emulated: false,
    };
    vec![
        entry(0, 0, BITS, 2 * INSIDE, 2 * (INSIDE + OUTSIDE)),
        entry(1, 1, 48, 0, 0),
    ]
}

/// Which counters a function has.
pub fn has(function: u32, counter: usize) -> bool {
    function >> counter & 1 != 0
}

/// What the calls of one function counted on one counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    pub calls: u64,
    pub left_out: BTreeMap<LeftOut, u64>,
    pub own_left_out: BTreeMap<LeftOut, u64>,
    pub mixed_calls: u64,
    pub total_calls: u64,
    pub total_raw: i128,
    /// Without the probes.
    pub total: i128,
    pub own_calls: u64,
    pub own_raw: i128,
    pub own: i128,
}

/// Counts of a call's own, with the probes and without, and of the calls below it.
#[derive(Debug, Clone, Copy, Default)]
struct Attributed {
    raw: u64,
    work: u64,
    below_raw: u64,
    below: u64,
    suspended: bool,
    mixed: bool,
}

#[derive(Debug, Clone)]
struct Frame {
    function: u32,
    rsp: u32,
    read: [Result<Count, LeftOut>; 2],
    counted: [Attributed; 2],
}

pub struct Program {
    stacks: [Vec<Frame>; 2],
    current: usize,
    opened: bool,
    multiplexed: bool,
    counts: [u64; 2],
    updates: u32,
    tsc: u64,
    pub records: Vec<Record>,
    pub truth: BTreeMap<(u32, usize), Truth>,
}

const BASES: [u32; 2] = [0x7fff_0000, 0x1000_0000];

impl Program {
    /// Counters come round in the middle; after so many acts they are opened.
    pub fn run(acts: &[Act], open_after: usize) -> Program {
        let mut program = Program {
            stacks: [Vec::new(), Vec::new()],
            current: 0,
            opened: false,
            multiplexed: false,
            counts: [(1 << BITS) - 3_000, 0],
            updates: 17,
            tsc: 1_000,
            records: Vec::new(),
            truth: BTreeMap::new(),
        };
        for (at, act) in acts.iter().enumerate() {
            program.opened |= at >= open_after;
            program.act(act);
        }
        program
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Call { function } => self.call(function),
            Act::Return => self.end(RecordKind::Exit),
            Act::TailCall { function } => {
                if !self.frames().is_empty() {
                    self.end(RecordKind::TailExit);
                    self.call(function);
                }
            }
            Act::Work { events } => self.count(0, events, events),
            Act::Preempt => {
                self.updates += 1;
                self.count(1, 1, 1);
            }
            Act::Multiplex => {
                self.updates += 1;
                self.multiplexed = !self.multiplexed;
            }
            Act::Longjmp { frames } => (0..frames).for_each(|_| self.unwind()),
            Act::Switch { function } => {
                self.current = 1 - self.current;
                // What ran meanwhile was counted too, if this stack had begun something.
                if let Some(top) = self.frames().last_mut() {
                    top.counted.iter_mut().for_each(|c| c.suspended = true);
                }
                self.call(function);
            }
        }
    }

    fn frames(&mut self) -> &mut Vec<Frame> {
        &mut self.stacks[self.current]
    }

    /// The innermost call counts; of it `work` would be there without probes.
    fn count(&mut self, counter: usize, raw: u64, work: u64) {
        if counter == 0 && self.multiplexed {
            return;
        }
        self.counts[counter] += raw;
        if let Some(top) = self.frames().last_mut() {
            top.counted[counter].raw += raw;
            top.counted[counter].work += work;
        }
    }

    fn read(&self, counter: usize) -> Result<Count, LeftOut> {
        match (self.opened, self.multiplexed && counter == 0) {
            (false, _) => Err(LeftOut::NotOpened),
            (true, true) => Err(LeftOut::NotCounting),
            (true, false) => Ok(Count {
                count: self.counts[counter] & ((1 << BITS) - 1),
                updates: self.updates,
            }),
        }
    }

    fn store_readings(&mut self, function: u32, at: CapturePlace) {
        for counter in (0..2).filter(|counter| has(function, *counter)) {
            let (content, element) = match self.read(counter) {
                Ok(count) => count.parts(),
                Err(LeftOut::NotOpened) => (Content::NotOpened, 0),
                Err(_) => (Content::NotCounting, 0),
            };
            let value = Value {
                capture: capture_number(at, counter as u8),
                element,
                content,
            };
            self.records.push(value.record(FunctionId(function)));
        }
    }

    fn store(&mut self, function: u32, kind: RecordKind, rsp: u32) {
        self.tsc += 10;
        let record = Record::new(self.tsc, FunctionId(function), kind, rsp);
        self.records.push(record);
    }

    fn call(&mut self, function: u32) {
        self.count(0, OUTSIDE, 0);
        let rsp = BASES[self.current] - 64 * self.frames().len() as u32;
        let read = [self.read(0), self.read(1)];
        self.store(function, RecordKind::Entry, rsp);
        self.store_readings(function, CapturePlace::Entry);
        self.frames().push(Frame {
            function,
            rsp,
            read,
            counted: Default::default(),
        });
        self.count(0, INSIDE, 0);
    }

    fn end(&mut self, kind: RecordKind) {
        if self.frames().is_empty() {
            return;
        }
        self.count(0, INSIDE, 0);
        let Some(frame) = self.frames().pop() else {
            return;
        };
        self.store_readings(frame.function, CapturePlace::Return);
        self.store(frame.function, kind, frame.rsp);
        let outermost = self.frames().iter().all(|f| f.function != frame.function);
        for counter in 0..2 {
            self.ended(&frame, counter, outermost);
        }
        self.count(0, OUTSIDE, 0);
    }

    fn ended(&mut self, frame: &Frame, counter: usize, outermost: bool) {
        let own = frame.counted[counter];
        if !has(frame.function, counter) {
            return self.merge(counter, own, true);
        }
        let total = frame.read[counter].and_then(|entry| {
            let end = self.read(counter)?;
            match counter == 0 && end.updates != entry.updates {
                true => Err(LeftOut::Rescheduled),
                false => Ok(end.since(entry, BITS)),
            }
        });
        let truth = self.truth.entry((frame.function, counter)).or_default();
        truth.calls += 1;
        match total {
            Err(why) => *truth.left_out.entry(why).or_default() += 1,
            Ok(raw) => {
                if outermost {
                    truth.total_calls += 1;
                    truth.total_raw += i128::from(raw);
                    truth.total += i128::from(own.work + own.below);
                }
                if own.suspended {
                    *truth.own_left_out.entry(LeftOut::Suspended).or_default() += 1;
                } else {
                    truth.own_calls += 1;
                    truth.own_raw += i128::from(own.raw);
                    truth.own += i128::from(own.work);
                    truth.mixed_calls += u64::from(own.mixed);
                }
            }
        }
        if let Some(caller) = self.frames().last_mut() {
            let to = &mut caller.counted[counter];
            to.below_raw += own.raw + own.below_raw;
            to.below += own.work + own.below;
        }
    }

    /// What a call without the counter has counted, or one that has no end, stays with its caller.
    fn merge(&mut self, counter: usize, own: Attributed, is_call: bool) {
        if let Some(caller) = self.frames().last_mut() {
            let to = &mut caller.counted[counter];
            to.raw += own.raw;
            to.work += own.work;
            to.below_raw += own.below_raw;
            to.below += own.below;
            to.suspended |= own.suspended;
            to.mixed |= own.mixed | is_call;
        }
    }

    /// What the probe at its entry has counted is not known to be a probe's.
    fn unwind(&mut self) {
        let Some(frame) = self.frames().pop() else {
            return;
        };
        for counter in 0..2 {
            let mut own = frame.counted[counter];
            if counter == 0 {
                own.work += OUTSIDE + INSIDE;
            }
            self.merge(counter, own, false);
        }
    }
}

pub fn acts(longjmp: bool, switches: bool) -> impl Strategy<Value = Vec<Act>> {
    let function = || 0..FUNCTIONS;
    let mut arms = vec![
        (
            30,
            function()
                .prop_map(|function| Act::Call { function })
                .boxed(),
        ),
        (30, Just(Act::Return).boxed()),
        (
            6,
            function()
                .prop_map(|function| Act::TailCall { function })
                .boxed(),
        ),
        (
            30,
            (0u64..2_000)
                .prop_map(|events| Act::Work { events })
                .boxed(),
        ),
        (2, Just(Act::Preempt).boxed()),
        (1, Just(Act::Multiplex).boxed()),
    ];
    if longjmp {
        arms.push((
            3,
            (1usize..4)
                .prop_map(|frames| Act::Longjmp { frames })
                .boxed(),
        ));
    }
    if switches {
        arms.push((
            5,
            function()
                .prop_map(|function| Act::Switch { function })
                .boxed(),
        ));
    }
    prop::collection::vec(prop::strategy::Union::new_weighted(arms), 1..300)
}
