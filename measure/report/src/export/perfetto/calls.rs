//! Calls as nested slices. The reader of a trace ends the innermost open slice of a track, so
//! slices must be ended in order even where the program left several calls at once.
use super::super::calls::{fate_name, orphan_name};
use super::{Event, KernelFlows, Name, Note, Perfetto, STACK, THREAD, Track, What, counts};
use hopscope_analyze::CallCounts;
use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::pair::Gap;
use hopscope_analyze::trail::{Begun, End, Observer};
use hopscope_event::{FunctionId, ThreadIx, Tsc};
use std::io::Write;

/// Open slices of one track.
#[derive(Debug, Default)]
pub(super) struct Stack {
    open: Vec<u64>,
    last_ns: u64,
    named: bool,
}

const CALL: &str = "call";

impl<W: Write> Perfetto<'_, W> {
    /// The first stack is the thread's own track, others have their own below the thread's.
    fn track(&mut self, thread: ThreadIx, stack: u32) -> Track {
        let own = Track(THREAD | u64::from(thread.0));
        if stack == 0 {
            return own;
        }
        let track = Track(STACK | u64::from(thread.0) << 24 | u64::from(stack));
        let named = &mut self.stacks.entry((thread, stack)).or_default().named;
        if !std::mem::replace(named, true) && self.failed.is_none() {
            let name = format!("{}, stack {}", self.names.thread(thread), stack + 1);
            self.failed = self.file.track(track, Some(own), &name).err();
        }
        track
    }

    /// Stamps of a track never go back; those of a signal handler within a probe do. Gives how far
    /// the stamp had to be moved, too.
    fn in_order(&mut self, of: (ThreadIx, u32), at: Tsc) -> (u64, u64) {
        let ns = self.timeline.monotonic_ns(at);
        let last = &mut self.stacks.entry(of).or_default().last_ns;
        let moved = last.saturating_sub(ns);
        *last = ns.max(*last);
        self.counts.moved += u64::from(moved > 0);
        (ns + moved, moved)
    }

    fn slice(
        &mut self,
        (thread, stack): (ThreadIx, u32),
        at_ns: u64,
        what: What<'_>,
        notes: &[(&str, Note<'_>)],
    ) {
        self.slice_of((thread, stack), at_ns, what, notes, &KernelFlows::default());
    }

    fn slice_of(
        &mut self,
        (thread, stack): (ThreadIx, u32),
        at_ns: u64,
        what: What<'_>,
        notes: &[(&str, Note<'_>)],
        flows: &KernelFlows,
    ) {
        let track = self.track(thread, stack);
        self.event(&Event {
            track,
            at_ns,
            what,
            category: CALL,
            notes,
            flows: &flows.through,
            last_of_flows: &flows.last,
        });
    }

    /// Ends the slices above the innermost `keep`.
    fn cut_back(&mut self, of: (ThreadIx, u32), keep: usize, at_ns: u64, why: &str) {
        let open = &mut self.stacks.entry(of).or_default().open;
        let dead = open.len().saturating_sub(keep);
        open.truncate(keep);
        for _ in 0..dead {
            self.slice(of, at_ns, What::End, &[("end_unknown", Note::Text(why))]);
        }
    }
}

impl<W: Write> Observer for Perfetto<'_, W> {
    fn begun(&mut self, call: &Begun) {
        let of = (call.thread, call.stack);
        let (at_ns, moved) = self.in_order(of, call.entry);
        let open = &self.stacks.entry(of).or_default().open;
        let parent = open.iter().rposition(|c| Some(*c) == call.parent);
        self.cut_back(
            of,
            parent.map_or(0, |at| at + 1),
            at_ns,
            "left without an exit",
        );
        let name = self.function(call.function);
        let mut notes = vec![("call", Note::Unsigned(call.call))];
        if moved > 0 {
            notes.push(("begin_moved_ns", Note::Unsigned(moved)));
        }
        if call.after_gap {
            notes.push(("callers_unknown", Note::Text("records before were lost")));
        }
        if let Some(from) = call.tail_of {
            notes.push(("tail_of_call", Note::Unsigned(from)));
        }
        let flows = self.kernel_flows.remove(&(call.thread, call.entry));
        let flows = flows.unwrap_or_default();
        self.slice_of(of, at_ns, What::Begin(name), &notes, &flows);
        self.stacks.entry(of).or_default().open.push(call.call);
    }

    fn counts(&mut self, _: &Begun, counts: &CallCounts) {
        self.counted = Some(*counts);
    }

    fn ended(&mut self, call: &Begun, end: &End) {
        let counted = self.counted.take();
        let of = (call.thread, call.stack);
        let open = &self.stacks.entry(of).or_default().open;
        let place = open.iter().rposition(|c| *c == call.call);
        match (place, end) {
            (Some(at), End::Exit(times)) => {
                let exit = call.entry + times.total as u64;
                let (at_ns, moved) = self.in_order(of, exit);
                self.cut_back(of, at + 1, at_ns, "left without an exit");
                let (own, corrected) = match times.own_corrected {
                    Some(own) => (own, "own_corrected_ns"),
                    None => (times.own, "own_raw_ns"),
                };
                let mut notes = vec![(corrected, Note::Float(self.ns(own)))];
                if moved > 0 {
                    notes.push(("end_moved_ns", Note::Unsigned(moved)));
                }
                if times.total < 0 {
                    notes.push(("clock_ran_backwards_tsc", Note::Signed(times.total)));
                }
                if times.tail {
                    notes.push(("left_by", Note::Text("a jump to another function")));
                }
                let names = std::mem::take(&mut self.counters);
                if let Some(counted) = counted {
                    counts::notes(&mut notes, &names, self.recording.counters, &counted);
                }
                self.slice(of, at_ns, What::End, &notes);
                self.counters = names;
                self.stacks.entry(of).or_default().open.pop();
            }
            // It was taken for left, drawn so, and then went on.
            (None, End::Exit(_)) => self.counts.closed_early += 1,
            (Some(_), End::Unknown(Fate::OpenAtEnd)) | (None, End::Unknown(_)) => {}
            (Some(at), End::Unknown(fate)) => {
                let last = self.stacks.entry(of).or_default().last_ns;
                self.cut_back(of, at, last, fate_name(*fate));
            }
        }
    }

    fn orphan(&mut self, thread: ThreadIx, function: FunctionId, at: Tsc, orphan: Orphan) {
        let at_ns = self.timeline.monotonic_ns(at);
        let name = format!("end of {}", self.names.qualified(function));
        let notes = [("begin_unknown", Note::Text(orphan_name(orphan)))];
        self.slice((thread, 0), at_ns, What::Instant(Name::Here(&name)), &notes);
    }

    fn gap(&mut self, thread: ThreadIx, after: Option<Tsc>, before: Option<Tsc>, gap: Gap) {
        let Some(at) = after.or(before) else {
            return;
        };
        let until = before.map_or(0, |before| before - at);
        let notes = [
            ("lost", Note::Unsigned(gap.lost)),
            ("torn", Note::Unsigned(gap.torn)),
            ("missing", Note::Unsigned(gap.missing)),
            ("until_next_record_ns", Note::Float(self.ns(until))),
        ];
        let at_ns = self.timeline.monotonic_ns(at);
        let name = What::Instant(Name::Here("records lost"));
        self.slice((thread, 0), at_ns, name, &notes);
    }
}
