//! A captured value in words.
use crate::json_line::Object;
use crate::printable_text::printable;
use hopscope_event::{CaptureEntry, CaptureMethod, Content, CounterReading, Value, callee};

/// What is told of a reading: the count without what else its record holds.
pub(crate) fn of_counter(reading: &CounterReading) -> Content {
    match reading.read {
        Ok(count) => Content::Value(count.count),
        Err(absent) => absent,
    }
}

/// As the user wrote it, with the index of the element: `frame->pkts[3].seq`.
pub(crate) fn name(capture: Option<&CaptureEntry>, value: Value) -> String {
    match capture {
        Some(entry) if value.counter().is_some() => printable(&entry.name),
        Some(entry) => printable(&entry.name).replacen("[]", &format!("[{}]", value.element), 1),
        None => match value.counter() {
            Some(reading) => format!("counter #{}", reading.counter),
            None => format!("capture #{}[{}]", value.capture, value.element),
        },
    }
}

fn is_address(capture: Option<&CaptureEntry>) -> bool {
    capture.is_some_and(|entry| entry.method == CaptureMethod::Callee)
}

fn is_signed(capture: Option<&CaptureEntry>) -> bool {
    capture.is_some_and(|entry| entry.signed)
}

/// `= 32`, or why there is none.
pub(crate) fn text(capture: Option<&CaptureEntry>, content: Content) -> String {
    match content {
        Content::Value(value) if is_signed(capture) => format!("= {}", value as i64),
        Content::Value(address) if is_address(capture) => {
            format!("= {:#x}", callee::address(address))
        }
        Content::Value(value) => format!("= {value}"),
        Content::Unreadable => "could not be read: memory not mapped".into(),
        Content::LeftOut { elements } => format!("and on is left out: {elements} elements"),
        Content::NotCounting => "is absent: its event does not count".into(),
        Content::NotOpened => "is absent: not opened for this thread yet".into(),
        Content::Unknown(word) => format!("is absent for a reason that is not known ({word:#x})"),
    }
}

/// `value`; without one `absent` says why.
pub(crate) fn json(line: &mut Object<'_>, capture: Option<&CaptureEntry>, content: Content) {
    match content {
        Content::Value(value) if is_signed(capture) => line.put("value", value as i64),
        Content::Value(value) => line.put("value", value),
        Content::Unreadable => line.put("absent", "unreadable"),
        Content::LeftOut { elements } => {
            line.put("absent", "left_out");
            line.put("elements", elements);
        }
        Content::NotCounting => line.put("absent", "not_counting"),
        Content::NotOpened => line.put("absent", "not_opened"),
        Content::Unknown(word) => {
            line.put("absent", "unknown");
            line.put("word", word);
        }
    }
}
