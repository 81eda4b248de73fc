//! Runs in the making, of one thread.
use super::outside::OutsideCalls;
use crate::run::{Captured, Run, RunCall, RunIx};
use hopscope_event::{FunctionId, ThreadIx, Tsc};

/// Most calls, and most values, of a run that are kept one by one: 14 MiB.
pub const CALLS_MAX: usize = 1 << 18;
/// Most runs of a thread that are under way at once (coroutines; roots left by longjmp).
pub(super) const OPEN_MAX: usize = 1024;

/// The call has no place: it is in no run.
pub(super) const NOWHERE: u32 = u32::MAX;
/// The call is in a run that keeps no more calls.
const NOT_KEPT: u32 = u32::MAX;
/// Exit of a call that has not ended.
const OPEN: Tsc = Tsc(u64::MAX);

#[derive(Debug)]
pub(super) struct Open {
    pub(super) run: Run,
    /// Tells this use of the slot from earlier ones.
    serial: u32,
    /// Kept calls that have not ended.
    unended: u32,
    /// Latest stamp of the run.
    pub(super) last: Tsc,
    pub(super) values_left_out: u64,
    pub(super) under_way: bool,
    /// It may be part of a run whose begin was lost.
    pub(super) callers_unknown: bool,
}

/// Where an open call stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) slot: u32,
    serial: u32,
    call: u32,
    /// Its end is the end of the run.
    pub(super) root: bool,
}

#[derive(Debug, Default)]
pub(super) struct Building {
    slots: Vec<Open>,
    free_slots: Vec<u32>,
    places: Vec<Place>,
    free_places: Vec<u32>,
    /// A root that has just left by a jump: the jump's target, if measured, continues in its place.
    pub(super) jumped: Option<Jumped>,
    /// The pass of the polling loop, and who calls its functions.
    pub(super) pass: Option<u32>,
    pub(super) loop_caller: Option<FunctionId>,
    /// Records were lost, and the calls outside of runs may have callers that are in one.
    pub(super) outermost_unknown: bool,
    pub(super) outside: OutsideCalls,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Jumped {
    pub(super) slot: u32,
    pub(super) node: u32,
    pub(super) at: Tsc,
}

impl Building {
    pub(super) fn under_way(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    pub(super) fn slot(&mut self, slot: u32) -> &mut Open {
        &mut self.slots[slot as usize]
    }

    pub(super) fn begin(
        &mut self,
        spare: Option<Run>,
        thread: ThreadIx,
        root: FunctionId,
        at: Tsc,
    ) -> u32 {
        let mut run = spare.unwrap_or_else(|| Run {
            ix: RunIx(0),
            thread,
            root,
            start: at,
            end: at,
            complete: false,
            calls: Vec::new(),
            values: Vec::new(),
            off_cpu_ticks: 0,
            calls_left_out: 0,
            outside: Vec::new(),
        });
        (run.thread, run.root, run.start, run.end) = (thread, root, at, at);
        (run.complete, run.off_cpu_ticks, run.calls_left_out) = (false, 0, 0);
        self.outside.give(&mut run.outside);
        if let Some(slot) = self.free_slots.pop() {
            let open = &mut self.slots[slot as usize];
            open.run = run;
            (open.unended, open.last, open.values_left_out) = (0, at, 0);
            (open.under_way, open.callers_unknown) = (true, false);
            return slot;
        }
        self.slots.push(Open {
            run,
            serial: 0,
            unended: 0,
            last: at,
            values_left_out: 0,
            under_way: true,
            callers_unknown: false,
        });
        self.slots.len() as u32 - 1
    }

    /// Takes the run out of its slot.
    pub(super) fn take(&mut self, slot: u32, end: Tsc) -> Run {
        let open = &mut self.slots[slot as usize];
        open.serial = open.serial.wrapping_add(1);
        open.under_way = false;
        open.run.end = end;
        self.outside.run_ended(end);
        if open.unended > 0 {
            end_open(&mut open.run.calls);
        }
        self.free_slots.push(slot);
        let (thread, root) = (open.run.thread, open.run.root);
        let empty = Run {
            ix: RunIx(0),
            thread,
            root,
            start: end,
            end,
            complete: false,
            calls: Vec::new(),
            values: Vec::new(),
            off_cpu_ticks: 0,
            calls_left_out: 0,
            outside: Vec::new(),
        };
        std::mem::replace(&mut open.run, empty)
    }

    /// The run that began first of those under way.
    pub(super) fn oldest(&self) -> Option<u32> {
        let under_way = self.slots.iter().enumerate().filter(|(_, o)| o.under_way);
        let oldest = under_way.min_by_key(|(_, o)| o.run.start);
        oldest.map(|(slot, _)| slot as u32)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> + use<> {
        let under_way = self.slots.iter().enumerate().filter(|(_, o)| o.under_way);
        let slots: Vec<u32> = under_way.map(|(slot, _)| slot as u32).collect();
        slots.into_iter()
    }

    /// Adds a call that begins; gives its node.
    #[inline]
    pub(super) fn add(
        &mut self,
        slot: u32,
        function: FunctionId,
        entry: Tsc,
        caller: Option<Place>,
        root: bool,
    ) -> u32 {
        let open = &mut self.slots[slot as usize];
        let calls = &mut open.run.calls;
        open.last = open.last.max(entry);
        let call = match calls.len() < CALLS_MAX {
            true => {
                let parent = caller.map(|c| c.call).filter(|c| *c != NOT_KEPT);
                let outer = parent.map(|p| calls[p as usize].depth);
                calls.push(RunCall {
                    function,
                    depth: outer.map_or(0, |d| d.saturating_add(1)),
                    parent,
                    entry,
                    exit: OPEN,
                    fused: false,
                    own_ticks: 0,
                    own_corrected: 0,
                    off_cpu_ticks: 0,
                });
                open.unended += 1;
                calls.len() as u32 - 1
            }
            false => {
                open.run.calls_left_out += 1;
                NOT_KEPT
            }
        };
        let place = Place {
            slot,
            serial: open.serial,
            call,
            root,
        };
        match self.free_places.pop() {
            Some(node) => {
                self.places[node as usize] = place;
                node
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        }
    }

    /// Where the call of a node stands; `None` when its run is no longer under way.
    #[inline]
    pub(super) fn place(&self, node: u32) -> Option<Place> {
        let place = *self.places.get(node as usize)?;
        let open = &self.slots[place.slot as usize];
        (open.serial == place.serial && open.under_way).then_some(place)
    }

    #[inline]
    pub(super) fn release(&mut self, node: u32) {
        self.free_places.push(node);
    }

    #[inline]
    pub(super) fn end(&mut self, place: Place, exit: Tsc, own: (i64, i64), fused: bool) {
        let open = &mut self.slots[place.slot as usize];
        open.last = open.last.max(exit);
        if let Some(call) = open.run.calls.get_mut(place.call as usize) {
            (call.exit, call.fused) = (exit, fused);
            (call.own_ticks, call.own_corrected) = own;
            open.unended -= 1;
        }
    }

    pub(super) fn value(&mut self, place: Place, captured: &hopscope_event::Value, value: u64) {
        let open = &mut self.slots[place.slot as usize];
        if place.call == NOT_KEPT || open.run.values.len() >= CALLS_MAX {
            open.values_left_out += 1;
            return;
        }
        open.run.values.push(Captured {
            call: place.call,
            capture: captured.capture,
            element: captured.element,
            value,
        });
    }
}

/// What was never seen to end lasts as long as it is known to: until its last callee's end.
#[cold]
fn end_open(calls: &mut [RunCall]) {
    let mut of_callees = vec![(Tsc(0), 0); calls.len()];
    // Callees come after their caller.
    for at in (0..calls.len()).rev() {
        let (latest, ticks) = of_callees[at];
        let call = &mut calls[at];
        if call.exit == OPEN {
            call.exit = call.entry.max(latest);
            call.own_ticks = call.ticks() - ticks;
            call.own_corrected = call.own_ticks;
        }
        if let Some(parent) = call.parent {
            let (latest, ticks) = &mut of_callees[parent as usize];
            *latest = (*latest).max(call.exit);
            *ticks += call.ticks();
        }
    }
}
