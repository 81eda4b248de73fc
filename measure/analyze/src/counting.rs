//! Readings of counters at the entries of calls that are open, and what these calls' callees counted: beside
//! their frames, so that recordings without counters do not pay for them.
use crate::counts::{CallCount, CallCounts, Callees, CounterKind, LeftOut, Reading, reading};
use crate::sink::{Call, Sink};
use crate::slot::Slot;
use crate::stacks::Frame;
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::{CapturePlace, CounterReading};

#[derive(Debug, Clone, Copy, Default)]
struct OfFrame {
    entry: [Option<Reading>; COUNTERS_MAX],
    below: [Callees; COUNTERS_MAX],
}

/// Of one thread. Frames without readings have a place only while a call below them has counted.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    frames: Vec<OfFrame>,
    free: Vec<u32>,
    /// Readings of the call that is about to end.
    ended: [Option<Reading>; COUNTERS_MAX],
}

fn put(readings: &mut [Option<Reading>; COUNTERS_MAX], read: &CounterReading) {
    if let Some(place) = readings.get_mut(usize::from(read.counter)) {
        *place = Some(match place {
            None => reading(read.read),
            Some(_) => Err(LeftOut::Incomplete),
        });
    }
}

impl Counting {
    fn of(&mut self, frame: &mut Frame) -> &mut OfFrame {
        if frame.slot == Slot::NONE {
            frame.slot = Slot(self.free.pop().unwrap_or_else(|| {
                self.frames.push(OfFrame::default());
                self.frames.len() as u32 - 1
            }));
        }
        &mut self.frames[frame.slot.0 as usize]
    }

    /// Frames for which there is room.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn at_entry(&mut self, frame: &mut Frame, read: &CounterReading) {
        put(&mut self.of(frame).entry, read);
    }

    pub(crate) fn at_end(&mut self, read: &CounterReading) {
        debug_assert_eq!(read.at, CapturePlace::Return);
        put(&mut self.ended, read);
    }

    /// The frame is no longer open.
    pub(crate) fn release(&mut self, slot: Slot) {
        if slot != Slot::NONE {
            self.frames[slot.0 as usize] = OfFrame::default();
            self.free.push(slot.0);
        }
    }

    /// No frame is open.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.free.clear();
        self.ended = Default::default();
    }

    /// What a dead frame's calls had counted is not the own count of the frame that it leaves behind.
    pub(crate) fn adopt(&mut self, by: &mut Frame, dead: &Frame) {
        let below = match dead.slot {
            Slot::NONE => [Callees::default(); COUNTERS_MAX],
            Slot(at) => self.frames[at as usize].below,
        };
        for (counter, below) in below.into_iter().enumerate() {
            self.pass_on(by, counter, below, dead.was_left);
        }
    }

    fn pass_on(&mut self, to: &mut Frame, counter: usize, mut below: Callees, was_left: bool) {
        below.suspended |= was_left;
        if below != Callees::default() {
            self.of(to).below[counter].add(&below);
        }
    }

    /// A call has ended with `descendants`; tells the sink what it counted, and its caller.
    pub(crate) fn end(
        &mut self,
        frame: &Frame,
        mut caller: Option<&mut Frame>,
        call: &Call,
        sink: &mut impl Sink,
    ) {
        let ended = std::mem::take(&mut self.ended);
        let of = match frame.slot {
            Slot::NONE => OfFrame::default(),
            Slot(at) => self.frames[at as usize],
        };
        self.release(frame.slot);
        let mut counts = CallCounts::default();
        for (counter, end) in ended.into_iter().enumerate() {
            let (entry, mut callees) = (of.entry[counter], of.below[counter]);
            let Some(kind) = sink.counter(counter as u8) else {
                continue;
            };
            if entry.is_none() && end.is_none() {
                if let Some(caller) = caller.as_deref_mut() {
                    self.pass_on(caller, counter, callees, frame.was_left);
                }
                continue;
            }
            callees.suspended |= frame.was_left;
            let total = kind.counted(entry, end, call.inclusive);
            counts[counter] = Some(CallCount {
                total,
                callees,
                descendants: call.descendants.calls,
            });
            if let Some(caller) = caller.as_deref_mut() {
                self.count_in(caller, counter, kind, entry, total, call.descendants.calls);
            }
        }
        if counts != CallCounts::default() {
            sink.counts(call, &counts);
        }
    }

    fn count_in(
        &mut self,
        caller: &mut Frame,
        counter: usize,
        kind: CounterKind,
        entry: Option<Reading>,
        total: Result<u64, LeftOut>,
        descendants: u64,
    ) {
        let of = self.of(caller);
        // A signal handler inside the caller's probe: its clock had been read, its counter not yet.
        let within = kind.follows(of.entry[counter], entry);
        of.below[counter].add(&Callees {
            count: total.unwrap_or(0),
            calls: 1,
            descendants,
            unknown: total.is_err() || !within,
            suspended: false,
        });
    }
}
