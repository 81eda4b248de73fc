//! Which call a captured value belongs to. Its record holds no stack pointer: order determines it.
use crate::balance::Oddities;
use crate::counting::Counting;
use crate::sink::Sink;
use crate::stacks::{Frame, Stack, Waiting};
use hopscope_event::{Content, FunctionId, Value};

/// Values captured at a return, and readings of counters there: they wait for the record of the exit, which comes
/// next.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    values: Vec<Value>,
    function: Option<FunctionId>,
}

impl Returned {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn are_of(&self, function: FunctionId) -> bool {
        self.function == Some(function)
    }

    pub(crate) fn push(&mut self, function: FunctionId, value: Value) {
        self.function = Some(function);
        self.values.push(value);
    }

    /// Their call has ended.
    pub(crate) fn give(
        &mut self,
        frame: &Frame,
        counting: Option<&mut Counting>,
        sink: &mut impl Sink,
    ) {
        let mut counting = counting;
        for value in self.values.drain(..) {
            match (value.counter(), counting.as_deref_mut()) {
                (None, _) => tell(frame, &value, sink),
                (Some(reading), Some(counting)) => counting.at_end(&reading),
                (Some(_), None) => {}
            }
        }
    }

    /// The end of their call is not there, or not its entry.
    pub(crate) fn give_up(&mut self, oddities: &mut Oddities) {
        for value in self.values.drain(..) {
            *match value.counter() {
                None => &mut oddities.values_homeless,
                Some(_) => &mut oddities.readings_homeless,
            } += 1;
        }
    }
}

/// The call whose body captured a value: the innermost open one of that function on the running
/// stack; a switch to another one leaves no record, so that others may be meant too. Where stacks move between
/// threads (`moves`) it may also be a call that began on another one.
pub(crate) fn capturer<'a>(
    function: FunctionId,
    running: &'a Stack,
    waiting: &'a Waiting,
    moves: bool,
    oddities: &mut Oddities,
) -> Option<&'a Frame> {
    let here = running.innermost(function);
    let mut elsewhere = waiting.innermost(function);
    match (here, elsewhere.next()) {
        (Some(frame), None) if !moves => Some(frame),
        (Some(frame), _) => {
            oddities.values_ambiguous += 1;
            Some(frame)
        }
        (None, Some(frame)) if !moves && elsewhere.next().is_none() => Some(frame),
        _ => None,
    }
}

pub(crate) fn count(value: &Value, oddities: &mut Oddities) {
    oddities.values += 1;
    match value.content {
        Content::Value(_) | Content::NotCounting | Content::NotOpened => {}
        Content::Unreadable => oddities.values_unreadable += 1,
        Content::LeftOut { .. } => oddities.values_left_out += 1,
        Content::Unknown(_) => oddities.values_unknown += 1,
    }
}

pub(crate) fn tell(frame: &Frame, value: &Value, sink: &mut impl Sink) {
    sink.value(frame.function, frame.mark(), frame.entry, value);
}
