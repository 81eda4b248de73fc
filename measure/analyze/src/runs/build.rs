//! From calls to runs.
use super::Shared;
use super::open::{Building, Jumped, NOWHERE, OPEN_MAX, Place};
use crate::balance::{Fate, Orphan};
use crate::pair::{Call, Enter, Mark, Sink};
use crate::run::RootChoice;
use crate::{Correction, Index, OffCpuIndex, Window};
use hopscope_event::{Content, FunctionId, ThreadIx, Tsc, Value};

pub(super) struct Builder<'a> {
    pub(super) thread: ThreadIx,
    pub(super) choice: RootChoice,
    pub(super) window: Window,
    pub(super) correction: Option<&'a Correction>,
    pub(super) index: &'a Index,
    pub(super) building: &'a mut Building,
    pub(super) off_cpu: Option<&'a OffCpuIndex>,
    pub(super) shared: &'a mut Shared,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Complete,
    Cut,
    Left,
    OpenAtEnd,
}

impl From<Fate> for How {
    fn from(fate: Fate) -> How {
        match fate {
            Fate::Cut => How::Cut,
            Fate::Unwound | Fate::Escaped | Fate::Moved => How::Left,
            Fate::OpenAtEnd => How::OpenAtEnd,
        }
    }
}

impl Builder<'_> {
    /// Records are missing here: what a jump led to is not known.
    pub(super) fn before_gap(&mut self) {
        self.building.jumped = None;
    }

    /// A pass of the loop is cut even between two calls of it.
    pub(super) fn after_gap(&mut self) {
        self.end_all(How::Cut);
    }

    pub(super) fn at_end(&mut self) {
        self.end_all(How::OpenAtEnd);
    }

    fn end_all(&mut self, how: How) {
        self.building.jumped = None;
        for slot in self.building.all() {
            self.close(slot, None, how);
        }
    }

    /// Ends a run whose root has left by a jump to something that is not measured.
    #[inline]
    fn settle_jump(&mut self) {
        if let Some(Jumped { slot, at, .. }) = self.building.jumped.take() {
            self.close(slot, Some(at), How::Complete);
        }
    }

    fn begin(&mut self, enter: &Enter<'_>) -> u32 {
        if self.building.under_way() >= OPEN_MAX
            && let Some(oldest) = self.building.oldest()
        {
            self.close(oldest, None, How::Left);
        }
        let (spare, at) = (self.shared.spare.pop(), Tsc(enter.tsc));
        let root = enter.function;
        let slot = self.building.begin(spare, self.thread, root, at);
        self.building.slot(slot).callers_unknown = self.building.outermost_unknown;
        slot
    }

    /// The call has no caller in a run.
    #[inline]
    fn enter_outside(&mut self, enter: &Enter<'_>) -> u32 {
        let at = Tsc(enter.tsc);
        match self.choice {
            RootChoice::Function(root) if root == enter.function => {
                let slot = self.begin(enter);
                self.building.add(slot, root, at, None, true)
            }
            RootChoice::PollingLoop(head) if head == enter.function => {
                if let Some(pass) = self.building.pass.take() {
                    self.close(pass, None, How::Complete);
                }
                let slot = self.begin(enter);
                self.building.pass = Some(slot);
                self.building.loop_caller = enter.open.last().map(|f| f.function);
                self.building.add(slot, head, at, None, false)
            }
            RootChoice::PollingLoop(_) => {
                let caller = enter.open.last().map(|f| f.function);
                match self.building.pass {
                    Some(pass) if caller == self.building.loop_caller => {
                        self.building.add(pass, enter.function, at, None, false)
                    }
                    _ => self.nowhere(),
                }
            }
            RootChoice::Function(_) => self.nowhere(),
        }
    }

    fn nowhere(&mut self) -> u32 {
        self.shared.counts.calls_outside += 1;
        NOWHERE
    }

    /// Takes a call out of the open ones; its place, while its run is under way.
    #[inline]
    fn leave(&mut self, mark: Mark) -> Option<Place> {
        if mark.node == NOWHERE {
            return None;
        }
        let place = self.building.place(mark.node);
        self.building.release(mark.node);
        if place.is_none() {
            self.shared.counts.late_ends += 1;
        }
        place
    }

    fn close(&mut self, slot: u32, end: Option<Tsc>, how: How) {
        if self.building.pass == Some(slot) {
            self.building.pass = None;
        }
        let open = self.building.slot(slot);
        let last = open.last;
        let values_left_out = std::mem::take(&mut open.values_left_out);
        let start = open.run.start;
        let how = match open.callers_unknown && how == How::Complete {
            true => How::Cut,
            false => how,
        };
        // A clock that ran backwards makes no run of negative length: it is not known whole.
        let backwards = end.is_some_and(|end| end < start);
        let end = end.filter(|_| !backwards).unwrap_or(last);
        let mut run = self.building.take(slot, end);
        let counts = &mut self.shared.counts;
        let kept = run.calls.len() as u64;
        if !self.window.contains(start.0) {
            counts.outside_window += 1;
            counts.calls_outside += kept + run.calls_left_out;
            return self.shared.recycle(run);
        }
        let is_loop = matches!(self.choice, RootChoice::PollingLoop(_));
        if is_loop && kept == 1 && how == How::Complete {
            counts.idle_passes += 1;
            return self.shared.recycle(run);
        }
        let overfull = run.calls_left_out > 0 || values_left_out > 0;
        counts.runs += 1;
        counts.calls += kept;
        counts.overfull += u64::from(overfull);
        counts.calls_left_out += run.calls_left_out;
        counts.values_left_out += values_left_out;
        let how = match backwards {
            true => How::Left,
            false => how,
        };
        *match how {
            How::Complete => &mut counts.complete,
            How::Cut => &mut counts.cut,
            How::Left => &mut counts.left,
            How::OpenAtEnd => &mut counts.open_at_end,
        } += 1;
        run.complete = how == How::Complete && run.calls_left_out == 0;
        if let Some(off_cpu) = self.off_cpu {
            run.off_cpu_ticks = off_cpu.within(run.start, run.end).ticks;
            if run.off_cpu_ticks > 0 {
                for call in &mut run.calls {
                    call.off_cpu_ticks = off_cpu.within(call.entry, call.exit).ticks;
                }
            }
        }
        self.shared.merge.push(run);
    }
}

impl Sink for Builder<'_> {
    #[inline]
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        let at = Tsc(enter.tsc);
        let jump = self.building.jumped;
        // A root that comes next, when what it jumped to is not measured, begins a run of its own.
        let root = self.choice == RootChoice::Function(enter.function);
        let goes_on = |j: &Jumped| !root && enter.tail_of.is_some_and(|mark| mark.node == j.node);
        let node = if let Some(jumped) = jump.filter(goes_on) {
            self.building.jumped = None;
            let function = enter.function;
            self.building.add(jumped.slot, function, at, None, true)
        } else {
            self.settle_jump();
            if enter.open.is_empty() {
                self.building.outermost_unknown = enter.after_gap;
            }
            let caller = enter.open.last().map_or(NOWHERE, |f| f.mark().node);
            match self.building.place(caller) {
                Some(place) => {
                    let (slot, function) = (place.slot, enter.function);
                    self.building.add(slot, function, at, Some(place), false)
                }
                None => self.enter_outside(&enter),
            }
        };
        Mark {
            node,
            ..Mark::default()
        }
    }

    #[inline]
    fn call(&mut self, call: &Call) {
        self.settle_jump();
        let own = call.inclusive - call.callee_ticks;
        if call.mark.node == NOWHERE {
            return self.building.outside.ended(call, own);
        }
        let Some(place) = self.leave(call.mark) else {
            return;
        };
        let corrected = self
            .correction
            .map_or(own, |c| c.own(own, call.fused, call.callees));
        let exit = Tsc(call.entry.wrapping_add_signed(call.inclusive));
        self.building.end(place, exit, (own, corrected), call.fused);
        match (place.root, call.tail) {
            (false, _) => {}
            (true, false) => self.close(place.slot, Some(exit), How::Complete),
            (true, true) => {
                self.building.jumped = Some(Jumped {
                    slot: place.slot,
                    node: call.mark.node,
                    at: exit,
                });
            }
        }
    }

    fn fate(&mut self, _: FunctionId, mark: Mark, _: u64, fate: Fate) {
        self.settle_jump();
        if let Some(place) = self.leave(mark)
            && place.root
        {
            self.shared.counts.moved += u64::from(fate == Fate::Moved);
            self.close(place.slot, None, fate.into());
        }
    }

    fn orphan(&mut self, _: FunctionId, _: u64, _: Orphan) {
        self.settle_jump();
    }

    /// Values that are absent are counted by the pairing.
    fn value(&mut self, _: FunctionId, mark: Mark, _: u64, captured: &Value) {
        if let Content::Value(value) = captured.content
            && let Some(place) = self.building.place(mark.node)
        {
            self.building.value(place, captured, value);
        }
    }

    fn known(&self, function: FunctionId) -> bool {
        self.index.module(function).is_some()
    }
}
