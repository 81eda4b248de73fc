//! Readings of counters: order says which call they are of, as of captured values.
use super::Pairer;
use crate::sink::Sink;
use crate::stacks::Frame;
use hopscope_event::{CapturePlace, CounterReading, FunctionId, Value};

impl Pairer {
    pub(super) fn reading(
        &mut self,
        function: FunctionId,
        value: Value,
        reading: &CounterReading,
        sink: &mut impl Sink,
    ) {
        self.oddities.readings += 1;
        let wanted = sink.counter(reading.counter).is_some();
        match reading.at {
            CapturePlace::Return => {
                if !self.returned.are_of(function) {
                    self.returned.give_up(&mut self.oddities);
                }
                if wanted {
                    self.counting.get_or_insert_default();
                    self.returned.push(function, value);
                }
            }
            CapturePlace::Entry | CapturePlace::Body => {
                let own = |f: &&mut Frame| {
                    reading.at == CapturePlace::Entry && self.just_entered && f.function == function
                };
                match self.running.frames.last_mut().filter(own) {
                    Some(frame) if wanted => {
                        let counting = self.counting.get_or_insert_default();
                        counting.at_entry(frame, reading);
                    }
                    Some(_) => {}
                    None => self.oddities.readings_homeless += 1,
                }
            }
        }
    }
}
