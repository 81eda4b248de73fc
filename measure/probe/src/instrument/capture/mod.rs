//! Captured values: how they are specified, located and read.
pub mod parse;

use hopscope_event::counter::capture_number;
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, CounterEntry, FunctionId};

/// Type of a captured integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    pub signed: bool,
    /// In network byte order.
    pub swapped: bool,
}

impl Scalar {
    pub const WORD: Scalar = Scalar::unsigned(8);

    pub const fn unsigned(bytes: u8) -> Scalar {
        Scalar::native(bytes, false)
    }

    pub const fn native(bytes: u8, signed: bool) -> Scalar {
        Scalar {
            bytes,
            signed,
            swapped: false,
        }
    }

    /// Whether bit 63 can be set once it is extended.
    pub fn may_be_negative(self) -> bool {
        self.signed || self.bytes == 8
    }
}

/// A general register by its number in machine code: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

impl Reg {
    pub const RAX: Reg = Reg(0);
    pub const RCX: Reg = Reg(1);
    pub const RDX: Reg = Reg(2);
    pub const RSI: Reg = Reg(6);
    pub const RDI: Reg = Reg(7);
    pub const R8: Reg = Reg(8);
    pub const R9: Reg = Reg(9);
    pub const R10: Reg = Reg(10);
    pub const R11: Reg = Reg(11);

    /// Integer arguments in their order (System V ABI, 3.2.3).
    pub const ARGUMENTS: [Reg; 6] = [Reg::RDI, Reg::RSI, Reg::RDX, Reg::RCX, Reg::R8, Reg::R9];
}

/// An argument register, and the way from there: with offsets, the register plus the first is an
/// address; each further one is added to the pointer that lies at the address before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub base: Reg,
    pub offsets: Vec<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    Number(u64),
    Value { at: Chain, scalar: Scalar },
}

/// Elements `0..to` of an array whose first element's address is the end of `start` (nothing is
/// loaded there). Each element's scalar lies at the end of `tail`, pointers loaded in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    pub start: Chain,
    pub stride: u32,
    /// From an element's address: loads a pointer there, adds the offset; for each.
    pub tail: Vec<i32>,
    pub to: Bound,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Scalar(Chain),
    Array(Array),
    Return,
    Counter(ReadCounter),
}

/// How a probe reads a counter of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadCounter {
    pub number: u8,
    /// The count is in the event's page; otherwise in the processor's counter that the page names.
    pub software: bool,
}

/// A capture of one function, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The row of the recording's table; its function is filled in by the plan.
    pub entry: CaptureEntry,
    pub scalar: Scalar,
    pub source: Source,
    /// Instructions that load it: address, register of the value. Of [`CapturePlace::Body`] only.
    ///
    /// [`CapturePlace::Body`]: hopscope_event::CapturePlace::Body
    pub loads: Vec<(u64, Reg)>,
}

impl Capture {
    pub fn of(mut self, function: FunctionId) -> Capture {
        self.entry.function = function;
        self
    }

    /// A counter, at the entry of a function or at its end.
    pub fn counted(counter: &CounterEntry, at: CapturePlace) -> Capture {
        Capture {
            entry: CaptureEntry {
                function: FunctionId(0),
                capture: capture_number(at, counter.number),
                name: format!("@{}", counter.name),
                bits: counter.bits,
                signed: false,
                at,
                method: CaptureMethod::Counter,
                elements_max: 1,
            },
            scalar: Scalar::WORD,
            source: Source::Counter(ReadCounter {
                number: counter.number,
                software: counter.event.is_software(),
            }),
            loads: Vec::new(),
        }
    }

    pub fn is_counter(&self) -> bool {
        matches!(self.source, Source::Counter(_))
    }

    /// Reading it takes the kernel's help.
    pub fn copies(&self) -> bool {
        self.entry.method == hopscope_event::CaptureMethod::CheckedCopy
    }
}
