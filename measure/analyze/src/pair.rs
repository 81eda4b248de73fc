//! From the records of one thread, in ring order, to its calls.
//!
//! Order and stack pointer are all there is. Entry and exit of one activation have the same
//! function and the same stack pointer; a frame is dead once a record of the same stack lies
//! above it. That holds through longjmp, exceptions and signal handlers. Limit: a frame that left
//! no trace of its end (longjmp, escape) looks alive until a record lies above it; calls made
//! meanwhile from deeper than it was hang below it in the tree. Their own times are right.
//!
//! A stack that is left and comes back (coroutines, signal stacks) was suspended at least from the
//! first to the last record of other stacks in between; that is taken out of own times.
//!
//! Slot order is not time order: a signal handler may run between the reservation of a slot and
//! the reading of the clock. Such inversions are counted; a call's time is taken out of the own
//! time of a caller only when the caller's clock was already running.
use crate::balance::{Fate, Oddities};
use crate::counting::Counting;
use crate::limbo::{Limbo, Moved};
use crate::measured::Measured;
use crate::slot::Slot;
use crate::stacks::{Below, RESUMED_BYTES, SAME_STACK_BYTES, Stack, Waiting};
use crate::taken::TakenPages;
use crate::values::{self, Returned};
use hopscope_event::{CapturePlace, Content, FunctionId, Record, RecordKind, Value};

mod moved;
mod readings;

pub use crate::mark::Mark;
pub use crate::sink::{Call, Enter, Gap, Sink};
pub use crate::stacks::Frame;

/// The open calls of one thread.
#[derive(Debug, Default)]
pub struct Pairer {
    running: Stack,
    waiting: Waiting,
    limbo: Limbo,
    oddities: Oddities,
    last_tsc: u64,
    /// Stamp of the record before the last.
    before_tsc: u64,
    tail: Option<Tail>,
    /// Where the stack was in the record before, if that is an exit.
    returned_at: Option<u32>,
    /// Ends without entry may belong to lost entries.
    gap_seen: bool,
    /// A slot somewhere in this batch was never stored.
    torn_here: bool,
    /// Highest stack position of an outermost call, and whether callers are unknown below it.
    outermost: Option<u32>,
    after_gap: bool,
    returned: Returned,
    /// The innermost call was entered, and nothing but its values came since.
    just_entered: bool,
    /// Pages of stacks that other threads had; mostly none.
    taken: Option<Box<TakenPages>>,
    /// Of recordings with counters, where the sink asks for counts.
    counting: Option<Box<Counting>>,
}

/// A call that left by a jump in the record before.
#[derive(Debug, Clone, Copy)]
struct Tail {
    rsp: u32,
    mark: Mark,
    function: FunctionId,
}

impl Pairer {
    pub fn new() -> Pairer {
        Pairer::default()
    }

    pub fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// Records are missing before (or, when torn, among) those that come next: nothing that is
    /// open can be paired any more.
    pub fn gap(&mut self, gap: Gap, sink: &mut impl Sink) {
        self.torn_here = gap.torn_among;
        if gap.lost == 0 && gap.torn == 0 && !gap.discontinuous {
            return;
        }
        self.oddities.lost += gap.lost;
        self.oddities.torn += gap.torn;
        self.oddities.missing += gap.missing;
        self.oddities.gaps += 1;
        self.gap_seen = true;
        self.after_gap = true;
        (self.tail, self.returned_at) = (None, None);
        self.close(Fate::Cut, sink);
    }

    /// The recording ends here.
    pub fn finish(mut self, sink: &mut impl Sink) -> Oddities {
        self.close(Fate::OpenAtEnd, sink);
        self.oddities
    }

    fn close(&mut self, fate: Fate, sink: &mut impl Sink) {
        self.returned.give_up(&mut self.oddities);
        self.just_entered = false;
        let running = std::mem::take(&mut self.running);
        for stack in self.waiting.drain().chain([running]) {
            for frame in stack.frames {
                tell(frame, fate, sink);
            }
        }
        let taken = self.taken.as_deref();
        self.limbo.drain(|frame, fate| {
            let moved = taken.is_some_and(|taken| taken.has(frame.rsp, frame.entry));
            tell(frame, if moved { Fate::Moved } else { fate }, sink);
        });
        if let Some(counting) = &mut self.counting {
            counting.clear();
        }
    }

    pub fn feed(&mut self, record: Record, sink: &mut impl Sink) {
        self.oddities.records += 1;
        let (function, rsp) = (record.function(), record.rsp_lo32());
        let (Some(kind), true) = (record.kind(), sink.known(function)) else {
            self.oddities.unknown += 1;
            return;
        };
        if let Some(value) = record.value() {
            return self.value(function, value, sink);
        }
        let ends = matches!(kind, RecordKind::Exit | RecordKind::TailExit);
        let waits_on = ends && self.returned.are_of(function);
        if !(waits_on || self.returned.is_empty()) {
            self.returned.give_up(&mut self.oddities);
        }
        self.just_entered = kind == RecordKind::Entry;
        if record.tsc < self.last_tsc {
            self.oddities.inversions += 1;
        }
        self.before_tsc = std::mem::replace(&mut self.last_tsc, record.tsc);
        let tail = self.tail.take();
        let behind = self.returned_at.take();
        self.returned_at = (kind == RecordKind::Exit).then_some(rsp);
        match kind {
            RecordKind::Entry => {
                // A clock that is read again has gone on (Intel SDM vol. 3, 17.17): this one was not.
                let fused = behind == Some(rsp) && record.tsc == self.before_tsc;
                self.entry(function, rsp, (record.tsc, fused), tail, sink);
            }
            RecordKind::Exit => self.exit(function, rsp, record.tsc, false, sink),
            RecordKind::TailExit => self.exit(function, rsp, record.tsc, true, sink),
            RecordKind::Escape => self.escape(function, rsp, record.tsc, sink),
            RecordKind::Value => {}
        }
    }

    fn value(&mut self, function: FunctionId, value: Value, sink: &mut impl Sink) {
        if let Some(reading) = value.counter() {
            return self.reading(function, value, &reading, sink);
        }
        values::count(&value, &mut self.oddities);
        let frame = match value.at() {
            _ if matches!(value.content, Content::Unknown(_)) => return,
            Some(CapturePlace::Entry) => {
                let own = |f: &&Frame| self.just_entered && f.function == function;
                self.running.frames.last().filter(own)
            }
            Some(CapturePlace::Body) => {
                let stacks = (&self.running, &self.waiting);
                let moves = self.taken.is_some();
                values::capturer(function, stacks.0, stacks.1, moves, &mut self.oddities)
            }
            Some(CapturePlace::Return) => {
                if !self.returned.are_of(function) {
                    self.returned.give_up(&mut self.oddities);
                }
                return self.returned.push(function, value);
            }
            None => None,
        };
        match frame {
            Some(frame) => values::tell(frame, &value, sink),
            None => self.oddities.values_homeless += 1,
        }
    }

    fn entry(
        &mut self,
        function: FunctionId,
        rsp: u32,
        (tsc, fused): (u64, bool),
        tail: Option<Tail>,
        sink: &mut impl Sink,
    ) {
        let deeper = match self.running.frames.last() {
            Some(top) => top.rsp.wrapping_sub(rsp).wrapping_sub(1) < SAME_STACK_BYTES,
            None => true,
        };
        if !(deeper && self.waiting.is_empty()) {
            self.go_to(rsp, false, sink);
        }
        let mut after_gap = false;
        if self.running.frames.is_empty() {
            after_gap = self.outermost_at(rsp);
        }
        let tail = tail.filter(|t| t.rsp == rsp);
        let mark = sink.enter(Enter {
            function,
            tsc,
            open: &self.running.frames,
            tail_of: tail.map(|t| t.mark),
            tail_from: tail.map(|t| t.function),
            after_gap,
        });
        let frame = Frame {
            entry: tsc,
            below: Below::default(),
            rsp,
            function,
            mark,
            escaped: false,
            fused,
            left_tsc: None,
            was_left: false,
            slot: Slot::NONE,
        };
        match self.may_be_elsewhere(rsp, tsc) {
            false => self.running.frames.push(frame),
            true => {
                // What it captured is not that of the call around it.
                self.just_entered = false;
                tell(frame, Fate::Moved, sink);
            }
        }
    }

    /// Notes where outermost calls lie; true while a gap may hide callers of this one.
    fn outermost_at(&mut self, rsp: u32) -> bool {
        let Some(highest) = self.outermost else {
            self.outermost = Some(rsp);
            return self.after_gap;
        };
        if rsp.wrapping_sub(highest) < SAME_STACK_BYTES {
            self.outermost = Some(rsp);
            self.after_gap = false;
        }
        self.after_gap && highest.wrapping_sub(rsp) < SAME_STACK_BYTES
    }

    fn exit(&mut self, function: FunctionId, rsp: u32, tsc: u64, tail: bool, sink: &mut impl Sink) {
        let own =
            |f: &Frame| f.rsp == rsp && f.function == function && self.limbo.is_older_than(f.entry);
        if !self.running.frames.last().is_some_and(own) && !self.find(function, rsp, sink) {
            self.returned.give_up(&mut self.oddities);
            self.go_to(rsp, false, sink);
            sink.orphan(function, tsc, self.why_without_entry(rsp));
            return;
        }
        let Some(frame) = self.running.frames.pop() else {
            return;
        };
        self.returned
            .give(&frame, self.counting.as_deref_mut(), sink);
        let inclusive = tsc.wrapping_sub(frame.entry) as i64;
        let this = Measured::one(frame.fused);
        let mut under = Below {
            ticks: inclusive,
            callees: this,
            descendants: this,
            suspended: 0,
        };
        under.descendants += frame.below.descendants;
        if inclusive < 0 {
            self.oddities.negative += 1;
            under.ticks = 0;
        }
        let open = self.running.frames.iter_mut();
        let mut caller = open.rev().find(|f| f.entry <= frame.entry);
        if let Some(caller) = &mut caller {
            caller.below.add(&under);
        }
        if tail {
            self.tail = Some(Tail {
                rsp,
                mark: frame.mark,
                function,
            });
        }
        let call = Call {
            function,
            mark: frame.mark,
            entry: frame.entry,
            inclusive,
            callee_ticks: frame.below.ticks,
            callees: frame.below.callees,
            descendants: frame.below.descendants,
            fused: frame.fused,
            suspended_ticks: frame.below.suspended,
            tail,
        };
        if let Some(counting) = &mut self.counting {
            counting.end(&frame, caller, &call, sink);
        }
        sink.call(&call);
    }

    /// Brings the activation that ends now to the top of the running stack. Of several with this
    /// function and position the one entered last is alive: the others' memory was used again.
    fn find(&mut self, function: FunctionId, rsp: u32, sink: &mut impl Sink) -> bool {
        let here = self.running.activation(function, rsp);
        let here_entry = here.map(|at| self.running.frames[at].entry);
        let waiting = self.waiting.activation(function, rsp, here.is_none());
        let buried = self.limbo.activation(function, rsp);
        let latest = [here_entry, waiting.map(|w| w.0), buried.map(|b| b.0)];
        let Some(latest) = latest.into_iter().flatten().max() else {
            return false;
        };
        if let (Some(at), true) = (here, here_entry == Some(latest)) {
            self.cut_back(at + 1, sink);
            return true;
        }
        if let Some((entry, base)) = waiting
            && entry == latest
            && let Some(mut stack) = self.waiting.take(base)
        {
            stack.proven = true;
            self.switch(stack, sink);
            let at = self.running.activation(function, rsp);
            self.cut_back(at.map_or(0, |at| at + 1), sink);
            return at.is_some();
        }
        buried.is_some_and(|(_, place)| self.revive(place, sink))
    }

    fn revive(&mut self, place: usize, sink: &mut impl Sink) -> bool {
        let taken = self.taken.as_deref();
        let moved = |frame: &Frame| taken.is_some_and(|taken| taken.has(frame.rsp, frame.entry));
        let mut frames = match self.limbo.bring_back(place, moved) {
            Ok(frames) => frames,
            Err(Moved { rsp }) => {
                self.end_is_moved(rsp);
                return false;
            }
        };
        self.oddities.revived += frames.len() as u64;
        if let Some(own) = frames.last_mut() {
            own.was_left = true;
        }
        self.switch(Stack::proven(frames), sink);
        true
    }

    fn escape(&mut self, function: FunctionId, rsp: u32, tsc: u64, sink: &mut impl Sink) {
        self.oddities.escape_records += 1;
        self.go_to(rsp, true, sink);
        let its = |f: &Frame| f.function == function;
        match self.running.frames.iter().rposition(its) {
            // The function that escapes is the one that runs: frames further in are dead.
            Some(at) => {
                self.cut_back(at + 1, sink);
                self.running.frames[at].escaped = true;
            }
            None => match self.limbo.body(function, rsp) {
                Some((_, place)) if self.revive(place, sink) => {
                    if let Some(own) = self.running.frames.last_mut() {
                        own.escaped = true;
                    }
                }
                _ => sink.orphan(function, tsc, self.why_without_entry(rsp)),
            },
        }
    }

    /// Makes the stack that `rsp` belongs to the running one, and discards what is dead there.
    fn go_to(&mut self, rsp: u32, keep_equal: bool, sink: &mut impl Sink) {
        if self.stays(rsp, sink) {
            self.cut_back(self.running.alive(rsp, keep_equal), sink);
            return;
        }
        let resumed = match self.waiting.nearest(rsp) {
            Some((base, stack)) if stack.reaches(rsp, RESUMED_BYTES) => self.waiting.take(base),
            _ => None,
        };
        if let Some(stack) = resumed {
            self.switch(stack, sink);
            self.cut_back(self.running.alive(rsp, keep_equal), sink);
            return;
        }
        let rose = |(base, _): (u32, u32)| rsp.wrapping_sub(base) < SAME_STACK_BYTES;
        if !self.running.proven && self.running.ends().is_some_and(rose) {
            self.cut_back(0, sink);
        }
        self.switch(Stack::default(), sink);
    }

    /// Whether `rsp` belongs to the running stack. Waiting stacks that it would have run over
    /// were none of their own, unless an exit has proven otherwise.
    fn stays(&mut self, rsp: u32, sink: &mut impl Sink) -> bool {
        if self.running.contains(rsp) {
            return true;
        }
        let Some((_, top)) = self.running.ends() else {
            return false;
        };
        let depth = top.wrapping_sub(rsp);
        if depth > SAME_STACK_BYTES {
            return false;
        }
        while let Some((base, stack)) = self.waiting.nearest(rsp) {
            if base.wrapping_sub(rsp) >= depth {
                break;
            }
            if stack.proven {
                return false;
            }
            if let Some(dead) = self.waiting.take(base) {
                self.bury(dead.frames, sink);
            }
        }
        true
    }

    /// What ran on other stacks meanwhile is not the innermost frame's own time. Before the first and
    /// after the last record there nothing tells which stack ran: that stays with the frame.
    fn switch(&mut self, mut to: Stack, sink: &mut impl Sink) {
        if let Some(innermost) = to.frames.last_mut() {
            innermost.resume(self.before_tsc);
        }
        if let Some(innermost) = self.running.frames.last_mut() {
            innermost.leave(self.last_tsc);
        }
        let from = std::mem::replace(&mut self.running, to);
        if from.frames.is_empty() {
            return;
        }
        if let Some(displaced) = self.waiting.put(from) {
            self.bury(displaced.frames, sink);
        }
        for stack in self.waiting.give_up() {
            self.oddities.stacks_given_up += 1;
            self.bury(stack.frames, sink);
        }
    }

    /// Discards the running stack's frames from `keep` on. What they had measured goes to the
    /// frame they leave behind, so that its own time does not swallow it.
    fn cut_back(&mut self, keep: usize, sink: &mut impl Sink) {
        if keep >= self.running.frames.len() {
            return;
        }
        let dead = self.running.frames.split_off(keep);
        if let Some(caller) = self.running.frames.last_mut() {
            dead.iter().for_each(|f| caller.below.add(&f.below));
            if let Some(counting) = &mut self.counting {
                dead.iter().for_each(|f| counting.adopt(caller, f));
            }
        }
        self.bury(dead, sink);
    }

    fn bury(&mut self, mut dead: Vec<Frame>, sink: &mut impl Sink) {
        let fate = match self.torn_here {
            true => Fate::Cut,
            false => Fate::Unwound,
        };
        if let Some(innermost) = dead.last_mut() {
            innermost.leave(self.last_tsc);
        }
        let mut counting = self.counting.as_deref_mut();
        let out = |frame: Frame, fate| {
            if let Some(counting) = &mut counting {
                counting.release(frame.slot);
            }
            tell(frame, fate, sink);
        };
        self.limbo.keep(dead.into_iter(), fate, out);
    }
}

fn tell(frame: Frame, fate: Fate, sink: &mut impl Sink) {
    let fate = match frame.escaped {
        true => Fate::Escaped,
        false => fate,
    };
    sink.fate(frame.function, frame.mark, frame.entry, fate);
}

#[cfg(test)]
mod counted_frames;
