//! A captured value in a slot of the ring: a record of kind [`RecordKind::Value`].
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | value << 1 \| 1; or, even, why there is none |
//! | 8 | 4 | function id << 3 \| 4 |
//! | 12 | 4 | bit 3: bit 63 of the value, bits 4–15: number of the capture, bits 16–31: element, plus the mark of the slot's lap (wrapping); stored last |
//!
//! Why there is none: 2 = its memory could not be read; n << 8 \| 4 = what follows is left out of
//! an array that had n elements (`element` is the first that is missing); 6, 8 of counters ([`crate::counter`]).
//!
//! Order and the two highest bits of the capture's number determine the call it belongs to:
//! 0 = captured at the entry, 1 = inside the body, 2 = at a return. What is captured at the entry lies in the slots
//! right after that of the entry, what is captured at a return in those right before that of the
//! exit: a probe reserves all of them at once, so that a signal handler's probes come before or
//! after them. What is captured inside the body lies between, and belongs to the innermost open
//! call of its function on the stack that runs.
use crate::record::{FunctionId, LAP_MASK, Record, RecordKind};
use crate::table::CapturePlace;

/// Counters of one recording ([`crate::counter`]).
pub const COUNTERS_MAX: usize = 4;
/// Captures of one function at one place. The numbers behind it are of counters ([`crate::counter`]).
pub const CAPTURES_MAX: usize = (1 << PLACE_SHIFT) - COUNTERS_MAX;
/// Elements of one array that one call may record.
pub const ELEMENTS_MAX: usize = 256;

const PLACE_SHIFT: u32 = 10;
const NTH_MASK: u16 = (1 << PLACE_SHIFT) - 1;
const NUMBER_MASK: u16 = (1 << (PLACE_SHIFT + 2)) - 1;
const CAPTURE_SHIFT: u32 = 4;
const ELEMENT_SHIFT: u32 = 16;
const TOP_SHIFT: u32 = 3;
const UNREADABLE: u64 = 2;
const LEFT_OUT: u64 = 4;
pub(crate) const NOT_COUNTING: u64 = 6;
pub(crate) const NOT_OPENED: u64 = 8;
const REASON_BITS: u32 = 8;

const _: () = {
    assert!(LAP_MASK == (1 << TOP_SHIFT) - 1);
    assert!(PLACE_SHIFT + 2 == ELEMENT_SHIFT - CAPTURE_SHIFT);
    assert!(ELEMENTS_MAX <= 1 << (32 - ELEMENT_SHIFT));
};

/// What a capture gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Extended to 64 bits by the sign of its type.
    Value(u64),
    /// The memory where it should be is not there, or may not be read.
    Unreadable,
    /// The array has more: this is its number of elements (modulo 2^56).
    LeftOut { elements: u64 },
    /// Of a counter: its event does not count, since it has no counter of the processor.
    NotCounting,
    /// Of a counter: this thread's was not opened, or not yet.
    NotOpened,
    /// A reason unknown to this version, or not written by hopscope.
    Unknown(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    /// Number of the capture within its function.
    pub capture: u16,
    /// Index within an array; 0 of what is no array.
    pub element: u16,
    pub content: Content,
}

impl Content {
    /// The first field of the record.
    pub const fn word(self) -> u64 {
        match self {
            Content::Value(value) => value << 1 | 1,
            Content::Unreadable => UNREADABLE,
            Content::LeftOut { elements } => elements << REASON_BITS | LEFT_OUT,
            Content::NotCounting => NOT_COUNTING,
            Content::NotOpened => NOT_OPENED,
            Content::Unknown(word) => word,
        }
    }

    const fn of(word: u64, top: u64) -> Content {
        if word & 1 != 0 {
            return Content::Value(word >> 1 | top << 63);
        }
        match word & ((1 << REASON_BITS) - 1) {
            UNREADABLE => Content::Unreadable,
            NOT_COUNTING if word == NOT_COUNTING => Content::NotCounting,
            NOT_OPENED if word == NOT_OPENED => Content::NotOpened,
            LEFT_OUT => Content::LeftOut {
                elements: word >> REASON_BITS,
            },
            _ => Content::Unknown(word),
        }
    }
}

/// The number of the `nth` capture (from 0) at a place of a function.
pub const fn number(at: CapturePlace, nth: u16) -> u16 {
    (at as u16) << PLACE_SHIFT | nth & NTH_MASK
}

/// The last field of the record but for the value's highest bit: what a probe adds to the lap.
pub const fn place(capture: u16, element: u16) -> u32 {
    (capture as u32) << CAPTURE_SHIFT | (element as u32) << ELEMENT_SHIFT
}

impl Value {
    /// Where it was captured; `None` of a number that no probe gives.
    pub const fn at(self) -> Option<CapturePlace> {
        match self.capture >> PLACE_SHIFT {
            0 => Some(CapturePlace::Entry),
            1 => Some(CapturePlace::Body),
            2 => Some(CapturePlace::Return),
            _ => None,
        }
    }

    /// Number within its place.
    pub const fn nth(self) -> u16 {
        self.capture & NTH_MASK
    }

    /// The record that a probe of `function` stores. Of a capture's number only the low 12 bits
    /// have room.
    pub const fn record(self, function: FunctionId) -> Record {
        let top = match self.content {
            Content::Value(value) => (value >> 63) as u32,
            _ => 0,
        };
        let capture = self.capture & NUMBER_MASK;
        Record {
            tsc: self.content.word(),
            id_kind: crate::record::id_kind(function, RecordKind::Value),
            stack: place(capture, self.element) | top << TOP_SHIFT,
        }
    }
}

impl Record {
    /// `None` for a record of another kind.
    pub fn value(self) -> Option<Value> {
        if self.kind() != Some(RecordKind::Value) {
            return None;
        }
        Some(Value {
            capture: (self.stack >> CAPTURE_SHIFT) as u16 & NUMBER_MASK,
            element: (self.stack >> ELEMENT_SHIFT) as u16,
            content: Content::of(self.tsc, u64::from(self.stack >> TOP_SHIFT & 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::lap_mark;

    fn record(capture: u16, element: u16, content: Content) -> Record {
        let value = Value {
            capture,
            element,
            content,
        };
        let record = value.record(FunctionId(77));
        assert_eq!(record.value(), Some(value));
        assert_eq!(record.function(), FunctionId(77));
        record
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let r = record(0x123, 0x4567, Content::Value(0x8000_0000_0000_0005));
        assert_eq!(r.tsc, 0xb);
        assert_eq!(r.id_kind, 77 << 3 | 4);
        assert_eq!(r.stack, 0x4567_1238);
        assert_eq!(record(0, 0, Content::Value(0)).tsc, 1);
        assert_eq!(record(4095, 0, Content::Unreadable).tsc, 2);
        let left_out = record(1, 256, Content::LeftOut { elements: 300 });
        assert_eq!((left_out.tsc, left_out.stack), (0x12c04, 0x0100_0010));
    }

    #[test]
    fn a_number_says_the_place() {
        for at in [
            CapturePlace::Entry,
            CapturePlace::Body,
            CapturePlace::Return,
        ] {
            for nth in [0, 1, CAPTURES_MAX as u16 - 1, 1023] {
                let capture = number(at, nth);
                let value = record(capture, 0, Content::Value(1))
                    .value()
                    .expect("a value");
                assert_eq!(value.at(), Some(at));
                let value = record(capture, 0, Content::NotOpened).value();
                assert_eq!(value.map(Value::nth), Some(nth));
            }
        }
        let none = record(0xc00, 0, Content::Value(1))
            .value()
            .expect("a value");
        assert_eq!(none.at(), None);
    }

    #[test]
    fn every_bit_of_a_value_comes_back() {
        for bit in 0..64 {
            record(9, 31, Content::Value(1 << bit));
            record(9, 31, Content::Value(!(1 << bit)));
        }
    }

    #[test]
    fn a_slot_shows_whether_it_is_stored_in_every_lap() {
        let stored = record(4095, 0xffff, Content::Value(u64::MAX));
        for lap in [0, 1, 7, 8, 1 << 31, u64::from(u32::MAX)] {
            let raw = Record {
                stack: stored.stack.wrapping_add(lap_mark(lap)),
                ..stored
            };
            assert_eq!(Record::stored(raw, lap), Some(stored));
            assert_eq!(Record::stored(raw, lap + 1), None);
        }
    }

    #[test]
    fn other_kinds_hold_no_value_and_unknown_reasons_stay() {
        let exit = Record::new(5, FunctionId(1), RecordKind::Exit, 0x1000);
        assert_eq!(exit.value(), None);
        record(0, 0, Content::NotCounting);
        record(0, 0, Content::Unknown(10));
        record(0, 0, Content::Unknown(0x106));
    }
}
