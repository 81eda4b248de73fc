//! Counters of the processor or the kernel, read by a probe: values ([`crate::value`]) with the last numbers of their
//! place, one at the entry of a call and one at its end (an exit or a tail exit).
//!
//! The content is the count modulo 2^48 (of narrower counters the bits that they have), with bits 16 to 30 of `updates`
//! from its bit 48 on; the element is bits 0 to 15 of `updates`. That is half of the sequence lock of the event's
//! page (`perf_event_mmap_page`, linux/perf_event.h) in 31 bits: it changes whenever the kernel schedules the event in
//! again, so two counts with the same are of one counter that ran on in between.
use crate::table::CapturePlace;
pub use crate::value::COUNTERS_MAX;
use crate::value::{Content, Value, number};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Bits of a count in a record.
pub const COUNT_BITS: u32 = 48;

const FIRST: u16 = 1024 - COUNTERS_MAX as u16;
const LOW_UPDATES_BITS: u32 = 16;
const UPDATES_BITS: u32 = 31;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// Modulo 2^48.
    pub count: u64,
    /// How often the kernel wrote to the event's page, modulo 2^31; 0 is of no page.
    pub updates: u32,
}

/// What a probe read of a counter, or why it could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterReading {
    /// Number of the counter within the recording.
    pub counter: u8,
    /// Entry, or Return also for tail exits.
    pub at: CapturePlace,
    /// An error is [`Content::NotCounting`], [`Content::NotOpened`] or [`Content::Unknown`].
    pub read: Result<Count, Content>,
}

/// The capture number of a counter at a place.
pub const fn capture_number(at: CapturePlace, counter: u8) -> u16 {
    number(at, FIRST + counter as u16 % COUNTERS_MAX as u16)
}

impl Count {
    /// Content and element of the record.
    pub const fn parts(self) -> (Content, u16) {
        let high = (self.updates >> LOW_UPDATES_BITS) as u64 & 0x7fff;
        let count = self.count & ((1 << COUNT_BITS) - 1);
        (
            Content::Value(count | high << COUNT_BITS),
            self.updates as u16,
        )
    }

    const fn of(word: u64, element: u16) -> Count {
        let high = (word >> COUNT_BITS) as u32 & ((1 << (UPDATES_BITS - LOW_UPDATES_BITS)) - 1);
        Count {
            count: word & ((1 << COUNT_BITS) - 1),
            updates: high << LOW_UPDATES_BITS | element as u32,
        }
    }

    /// What was counted since `before`, of a counter of so many bits.
    pub const fn since(self, before: Count, bits: u8) -> u64 {
        let bits = if bits == 0 || bits as u32 > COUNT_BITS {
            COUNT_BITS
        } else {
            bits as u32
        };
        self.count.wrapping_sub(before.count) & ((1 << bits) - 1)
    }
}

impl Value {
    /// `None`: a captured value.
    pub const fn counter(self) -> Option<CounterReading> {
        let nth = self.nth();
        let at = match self.at() {
            Some(at) if nth >= FIRST => at,
            _ => return None,
        };
        Some(CounterReading {
            counter: (nth - FIRST) as u8,
            at,
            read: match self.content {
                Content::Value(word) => match Count::of(word, self.element) {
                    // The kernel wrote to an event's page when it was mapped: these are zeros that a forked child read.
                    Count { updates: 0, .. } => Err(Content::NotOpened),
                    count => Ok(count),
                },
                absent => Err(absent),
            },
        })
    }
}

/// What the kernel was asked to count (`perf_event_attr`, linux/perf_event.h), in user mode only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CounterEvent {
    /// `perf_event_attr.type`
    pub kind: u32,
    pub config: u64,
}

impl CounterEvent {
    /// `PERF_TYPE_SOFTWARE`: the kernel counts, also while other threads run.
    pub const fn is_software(self) -> bool {
        self.kind == 1
    }
}

/// A counter of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterEntry {
    pub number: u8,
    /// As the user wrote it, without the `@`.
    pub name: String,
    pub event: CounterEvent,
    /// Bits that counts differ in; 48 at most.
    pub bits: u8,
    /// What the probes add to counts, as measured at the start of the recording; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CounterCost>,
    /// No counter of a processor: the measured program answered `rdpmc` itself, in a test.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
}

impl CounterEntry {
    /// Calls that lost their processor, or another event took its place meanwhile, are left out.
    pub const fn counts_unbroken_only(&self) -> bool {
        !self.event.is_software()
    }
}

/// What probes count of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterCost {
    /// What an empty body counts between its own two readings (lowest twentieth, median, highest tenth).
    pub bias: [u64; 3],
    /// What one measured call adds to its caller's count (median). `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FunctionId;
    use crate::value::CAPTURES_MAX;

    fn reading(counter: u8, at: CapturePlace, count: Count) -> Value {
        let (content, element) = count.parts();
        let value = Value {
            capture: capture_number(at, counter),
            element,
            content,
        };
        value.record(FunctionId(5)).value().expect("a value")
    }

    #[test]
    fn a_reading_comes_back_whole() {
        for (count, updates) in [
            (0, 1),
            (1 << 47 | 3, 1 << 30 | 1 << 16 | 5),
            (!0 >> 16, !0 >> 1),
        ] {
            let count = Count { count, updates };
            for at in [CapturePlace::Entry, CapturePlace::Return] {
                for counter in 0..COUNTERS_MAX as u8 {
                    let read = CounterReading {
                        counter,
                        at,
                        read: Ok(count),
                    };
                    assert_eq!(reading(counter, at, count).counter(), Some(read));
                }
            }
        }
    }

    #[test]
    fn what_is_read_of_no_page_is_no_count() {
        let zeros = Count {
            count: 0,
            updates: 0,
        };
        let read = reading(2, CapturePlace::Entry, zeros).counter();
        let read = read.expect("a counter").read;
        assert_eq!(read, Err(Content::NotOpened));
    }

    #[test]
    fn captured_values_are_no_counters() {
        let value = |nth| Value {
            capture: number(CapturePlace::Entry, nth),
            element: 0,
            content: Content::NotOpened,
        };
        assert_eq!(value(CAPTURES_MAX as u16 - 1).counter(), None);
        let first = value(CAPTURES_MAX as u16).counter().expect("a counter");
        assert_eq!((first.counter, first.read), (0, Err(Content::NotOpened)));
    }

    #[test]
    fn counts_wrap_at_the_width_of_their_counter() {
        let at = |count| Count { count, updates: 1 };
        assert_eq!(at(5).since(at((1 << 40) - 3), 40), 8);
        assert_eq!(at(5).since(at((1 << 48) - 3), 48), 8);
        assert_eq!(at(5).since(at((1 << 48) - 3), 0), 8);
    }
}
