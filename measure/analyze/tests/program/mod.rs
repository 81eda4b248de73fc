//! A program that runs on several stacks, leaves records like probes do, and knows the truth.
use hopscope_event::value::number;
use hopscope_event::{CapturePlace, Content, FunctionId, Record, RecordKind, Value};
use proptest::prelude::*;

#[derive(Debug, Clone)]
pub enum Act {
    /// A measured call; the caller has used this many 16-byte units of stack.
    Call {
        function: u32,
    },
    /// A call of a function without probes.
    Unmeasured {
        units: u32,
    },
    Return,
    TailCall {
        function: u32,
    },
    /// The running function goes on in its original body.
    Escape {
        units: u32,
    },
    /// Leaves this many frames without a trace.
    Longjmp {
        frames: usize,
    },
    Switch {
        stack: usize,
    },
    /// A signal handler runs on the current stack; `inside` a probe whose slot is reserved and
    /// whose clock is not read yet.
    Signal {
        function: u32,
        inside: bool,
    },
    /// So many of the latest records are overwritten before they are read.
    Lose {
        records: usize,
    },
    Pass {
        ticks: u64,
    },
    /// The running function loads what is captured in its body.
    Load,
}

/// One capture at each place; the value of each is the entry stamp of its call.
pub const AT_ENTRY: u16 = number(CapturePlace::Entry, 0);
pub const AT_RETURN: u16 = number(CapturePlace::Return, 0);
pub const IN_BODY: u16 = number(CapturePlace::Body, 0);

fn value(capture: u16, function: u32, entry: u64) -> Record {
    let value = Value {
        capture,
        element: 0,
        content: Content::Value(entry),
    };
    value.record(FunctionId(function))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrueCall {
    pub function: u32,
    pub entry: u64,
    pub exit: u64,
    /// Sum of the inclusive times of measured callees, with the time from the first to the last record
    /// of other stacks while its own was left; and the entry stamp of the caller.
    pub callee_ticks: u64,
    pub callees: u64,
    pub caller: Option<u64>,
}

#[derive(Debug, Clone)]
struct Frame {
    rsp: u32,
    units: u32,
    function: Option<u32>,
    entry: u64,
    callee_ticks: u64,
    callees: u64,
    escaped: bool,
    /// The first record of another stack since this one was left.
    left: Option<u64>,
}

/// A batch as the recorder would store it.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    pub lost: u64,
    pub records: Vec<Record>,
}

#[derive(Debug, Default)]
pub struct Truth {
    pub calls: Vec<TrueCall>,
    pub entries: u64,
    pub unfinished: u64,
    pub escaped: u64,
}

pub struct Program {
    stacks: Vec<Vec<Frame>>,
    bases: Vec<u32>,
    current: usize,
    /// Where the last record was made, and its stamp.
    recorded: (usize, u64),
    tsc: u64,
    pub batches: Vec<Batch>,
    pub truth: Truth,
}

impl Program {
    pub fn new(bases: &[u32]) -> Program {
        Program {
            stacks: vec![Vec::new(); bases.len()],
            bases: bases.to_vec(),
            current: 0,
            recorded: (0, 0),
            tsc: 1000,
            batches: vec![Batch::default()],
            truth: Truth::default(),
        }
    }

    pub fn run(mut self, acts: &[Act]) -> Program {
        for act in acts {
            self.act(act);
        }
        let open = self
            .stacks
            .iter()
            .flatten()
            .filter(|f| f.function.is_some());
        for frame in open {
            match frame.escaped {
                true => self.truth.escaped += 1,
                false => self.truth.unfinished += 1,
            }
        }
        self
    }

    /// How many values of these captures there are among the records.
    pub fn stored(&self, captures: &[u16]) -> usize {
        let records = self.batches.iter().flat_map(|b| &b.records);
        let values = records.filter_map(|r| r.value());
        values.filter(|v| captures.contains(&v.capture)).count()
    }

    fn tick(&mut self) -> u64 {
        self.tsc += 7;
        self.tsc
    }

    fn frames(&mut self) -> &mut Vec<Frame> {
        &mut self.stacks[self.current]
    }

    fn store(&mut self, record: Record) {
        let batch = self.batches.last_mut().expect("there is always one");
        batch.records.push(record);
    }

    fn next_rsp(&self) -> u32 {
        let below = |f: &Frame| f.rsp.wrapping_sub(f.units * 16);
        let base = self.bases[self.current];
        self.stacks[self.current].last().map_or(base, below)
    }

    fn push(&mut self, function: Option<u32>, rsp: u32, units: u32, entry: u64) {
        self.truth.entries += u64::from(function.is_some());
        self.frames().push(Frame {
            rsp,
            units: units.max(1),
            function,
            entry,
            callee_ticks: 0,
            callees: 0,
            escaped: false,
            left: None,
        });
    }

    /// A record is made on the current stack: others are left from now on, and this one is back.
    fn recorded(&mut self, tsc: u64) {
        let (on, last) = std::mem::replace(&mut self.recorded, (self.current, tsc));
        if on == self.current {
            return;
        }
        let top = |frames: &mut Vec<Frame>| frames.iter().rposition(|f| f.function.is_some());
        if let Some(at) = top(&mut self.stacks[on]) {
            self.stacks[on][at].left = Some(tsc);
        }
        if let Some(at) = top(self.frames()) {
            let frame = &mut self.frames()[at];
            frame.callee_ticks += frame
                .left
                .take()
                .map_or(0, |left| last.saturating_sub(left));
        }
    }

    fn enter(&mut self, function: u32, rsp: u32) {
        let tsc = self.tick();
        self.recorded(tsc);
        self.store(Record::new(
            tsc,
            FunctionId(function),
            RecordKind::Entry,
            rsp,
        ));
        self.store(value(AT_ENTRY, function, tsc));
        self.push(Some(function), rsp, 1 + function % 5, tsc);
    }

    fn leave(&mut self, kind: RecordKind) -> Option<u32> {
        let top = self.frames().last()?;
        if top.function.is_some() && !top.escaped {
            let tsc = self.tsc + 7;
            self.recorded(tsc);
        }
        let frame = self.frames().pop()?;
        let function = frame.function?;
        let tsc = self.tick();
        if frame.escaped {
            self.truth.escaped += 1;
            self.adopt(&frame);
            return Some(frame.rsp);
        }
        if kind == RecordKind::Exit {
            self.store(value(AT_RETURN, function, frame.entry));
        }
        self.store(Record::new(tsc, FunctionId(function), kind, frame.rsp));
        self.finish(&frame, function, tsc);
        Some(frame.rsp)
    }

    fn finish(&mut self, frame: &Frame, function: u32, exit: u64) {
        let open = self.frames().iter_mut().rev();
        let caller = open
            .filter(|f| f.function.is_some())
            .find(|f| f.entry <= frame.entry);
        let caller = caller.map(|caller| {
            caller.callee_ticks += exit - frame.entry;
            caller.callees += 1;
            caller.entry
        });
        self.truth.calls.push(TrueCall {
            function,
            entry: frame.entry,
            exit,
            callee_ticks: frame.callee_ticks,
            callees: frame.callees,
            caller,
        });
    }

    /// What an unfinished frame had measured counts for the frame it leaves behind.
    fn adopt(&mut self, frame: &Frame) {
        let mut open = self.frames().iter_mut().rev();
        if let Some(caller) = open.find(|f| f.function.is_some()) {
            caller.callee_ticks += frame.callee_ticks;
            caller.callees += frame.callees;
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Call { function } => {
                let rsp = self.next_rsp();
                self.enter(function, rsp);
            }
            Act::Unmeasured { units } => {
                let rsp = self.next_rsp();
                self.push(None, rsp, units, 0);
            }
            Act::Return => {
                self.leave(RecordKind::Exit);
            }
            Act::TailCall { function } => {
                let Some(top) = self.frames().last() else {
                    return;
                };
                if top.function.is_some()
                    && !top.escaped
                    && let Some(rsp) = self.leave(RecordKind::TailExit)
                {
                    self.enter(function, rsp);
                }
            }
            Act::Escape { units } => {
                let tsc = self.tick();
                let Some(top) = self.frames().last_mut() else {
                    return;
                };
                if let (Some(function), false) = (top.function, top.escaped) {
                    top.escaped = true;
                    // A callee's return address would lie 8 below the lowest of these.
                    let deep = (units.min(top.units) * 16).saturating_sub(8);
                    let rsp = top.rsp.wrapping_sub(deep);
                    self.store(Record::new(
                        tsc,
                        FunctionId(function),
                        RecordKind::Escape,
                        rsp,
                    ));
                }
            }
            Act::Longjmp { frames } => {
                for _ in 0..frames {
                    let Some(frame) = self.frames().pop() else {
                        return;
                    };
                    self.adopt(&frame);
                    match (frame.function, frame.escaped) {
                        (Some(_), true) => self.truth.escaped += 1,
                        (Some(_), false) => self.truth.unfinished += 1,
                        (None, _) => {}
                    }
                }
            }
            Act::Switch { stack } => self.current = stack % self.stacks.len(),
            Act::Signal { function, inside } => self.signal(function, inside),
            Act::Lose { records } => {
                let batch = self.batches.last_mut().expect("there is always one");
                let keep = batch.records.len().saturating_sub(records);
                let lost = batch.records.split_off(keep).len() as u64;
                self.batches.push(Batch {
                    lost,
                    records: Vec::new(),
                });
            }
            Act::Pass { ticks } => self.tsc += ticks,
            Act::Load => {
                if let Some(top) = self.frames().last()
                    && let (Some(function), false) = (top.function, top.escaped)
                {
                    let value = value(IN_BODY, function, top.entry);
                    self.store(value);
                }
            }
        }
    }

    fn signal(&mut self, function: u32, inside: bool) {
        let rsp = self.next_rsp();
        if !inside {
            self.push(None, rsp, 40, 0);
            let below = self.next_rsp();
            self.enter(function, below);
            self.leave(RecordKind::Exit);
            self.frames().pop();
            return;
        }
        // The interrupted probe has its slot, so its record comes first; its clock is read last.
        let batch = self.batches.last_mut().expect("there is always one");
        let slot = batch.records.len();
        batch.records.extend([Record::default(); 2]);
        self.recorded(self.tsc + 3 * 7);
        self.push(None, rsp, 40, 0);
        let below = self.next_rsp();
        self.enter(function, below);
        self.leave(RecordKind::Exit);
        self.frames().pop();
        let tsc = self.tick();
        let interrupted = function + 1;
        let record = Record::new(tsc, FunctionId(interrupted), RecordKind::Entry, rsp);
        let batch = self.batches.last_mut().expect("there is always one");
        batch.records[slot] = record;
        batch.records[slot + 1] = value(AT_ENTRY, interrupted, tsc);
        self.push(Some(interrupted), rsp, 3, tsc);
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// Activations that end without a record: longjmp, escape.
    pub traceless: bool,
    pub switches: bool,
    /// Calls and signal handlers from deeper in a frame than its measured callees.
    pub uneven: bool,
    pub losses: bool,
}

pub const FUNCTIONS: u32 = 12;

pub fn acts(habits: Habits) -> impl Strategy<Value = Vec<Act>> {
    let function = || 0..FUNCTIONS - 1;
    let signal = (function(), any::<bool>());
    let mut arms = vec![
        (
            30,
            function()
                .prop_map(|function| Act::Call { function })
                .boxed(),
        ),
        (30, Just(Act::Return).boxed()),
        (
            4,
            function()
                .prop_map(|function| Act::TailCall { function })
                .boxed(),
        ),
        (
            4,
            (1u64..1000).prop_map(|ticks| Act::Pass { ticks }).boxed(),
        ),
        (6, Just(Act::Load).boxed()),
    ];
    if habits.uneven {
        arms.push((
            3,
            (1u32..200)
                .prop_map(|units| Act::Unmeasured { units })
                .boxed(),
        ));
        let signal = signal.prop_map(|(function, inside)| Act::Signal { function, inside });
        arms.push((3, signal.boxed()));
    }
    if habits.traceless {
        arms.push((
            2,
            (1usize..6)
                .prop_map(|frames| Act::Longjmp { frames })
                .boxed(),
        ));
    }
    if habits.traceless && habits.uneven {
        arms.push((1, (0u32..4).prop_map(|units| Act::Escape { units }).boxed()));
    }
    if habits.switches {
        arms.push((
            8,
            (0usize..6).prop_map(|stack| Act::Switch { stack }).boxed(),
        ));
    }
    if habits.losses {
        arms.push((
            2,
            (1usize..8)
                .prop_map(|records| Act::Lose { records })
                .boxed(),
        ));
    }
    prop::collection::vec(prop::strategy::Union::new_weighted(arms), 1..400)
}
