//! One measured process as the recorder sees it: its rings and whose they are.
mod counters;
mod detach;
mod drain;
mod recycle;

pub use drain::RingCounts;
pub(super) use drain::{Drain, thread_entry};
use drain::{comm, nameless_entry};

use super::callees::{Callees, OpenCalls};
use super::children::Children;
use super::following::{Beside, Told};
use super::looking::Looking;
use super::numbers::Numbers;
use super::owner::Owner;
use super::sink::Sink;
use super::tally::{Called, Tally};
use super::trigger::{SlowCalls, Trigger};
use crate::live::LiveError;
use crate::live::install::Installed;
use crate::new_modules::Watch;
use hopscope_event::layout::Context;
use hopscope_event::ring::{Position, Ring, Visit};
use hopscope_event::{FunctionId, ProcessIx, Record, ThreadIx, TriggerEntry};
use hopscope_process::procfs;
use hopscope_trace::TraceError;
use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

pub struct Target {
    /// What it is measured by, too, since it loaded more; they go first.
    additions: Vec<Installed>,
    pub installed: Installed,
    pub process: ProcessIx,
    pub counts: RingCounts,
    pub count_calls: bool,
    /// Threads that had a ring at any time.
    pub threads: u64,
    rings: Vec<RingState>,
    claims_seen: u64,
    /// Visits of [`Target::recycle`].
    rounds: u32,
    /// When the process began, in clock ticks after boot: a number alone may be another's by now.
    started: Option<u64>,
    modules: Option<Looking>,
    /// `None`: what it forks is not measured.
    children: Option<Children>,
    /// Where functions may be left out for what they take.
    pub(super) tally: Option<Tally>,
    /// Functions that were left out, and those that never are.
    gone: HashSet<FunctionId>,
    never_left_out: HashSet<FunctionId>,
    /// Calls without a ring, and with a foreign gs, of before this recording began.
    before: [u64; 2],
    /// Calls that are to end the recording if they take too long.
    slow_calls: Option<SlowCalls>,
    /// GOT slots that were led into copies since the attach.
    bound_since: usize,
    opening: counters::Opening,
    callees: Option<Callees>,
    /// `None`: what it loads is not measured.
    following: Option<(Arc<Told>, Arc<Beside>)>,
}

#[derive(Debug, Clone, Default)]
struct RingState {
    in_use: bool,
    position: Position,
    /// Up to there the sink keeps what was read.
    kept: u64,
    /// Known from the attach, or from the first look at a ring that was claimed since.
    owner: Option<Owner>,
    /// Since its first record.
    thread: Option<ThreadIx>,
    damaged: bool,
    /// Its thread's counters were opened, or could not be.
    counted: bool,
    /// Calls through pointers of its thread.
    open_calls: OpenCalls,
    /// Of a thread that was there at the attach, empty of others.
    name_at_attach: String,
}

/// More calls than that are none that a thread makes.
const COUNTED_AT_MOST: u64 = 1 << 52;

impl Target {
    pub fn new(installed: Installed, process: ProcessIx) -> Target {
        let started = procfs::start_time(installed.pid);
        let mut rings = vec![RingState::default(); installed.table.pool_contexts as usize];
        for &(tid, context) in &installed.threads {
            let ring = &mut rings[context as usize];
            ring.in_use = true;
            ring.owner = Some(Owner::seen(installed.pid, tid));
            // It may end before its first record is read; a name that it takes later comes first.
            ring.name_at_attach = comm(installed.pid, tid);
        }
        let mut target = Target {
            additions: Vec::new(),
            installed,
            process,
            counts: RingCounts::default(),
            count_calls: false,
            threads: 0,
            rings,
            claims_seen: 0,
            rounds: 0,
            started,
            modules: None,
            children: None,
            tally: None,
            gone: HashSet::new(),
            never_left_out: HashSet::new(),
            before: [0; 2],
            slow_calls: None,
            bound_since: 0,
            opening: counters::Opening::default(),
            callees: None,
            following: None,
        };
        target.open_counters();
        target
    }

    /// `None`: what is loaded meanwhile does not matter.
    pub fn watched(self, watch: Option<Watch>) -> Target {
        let pid = self.installed.pid;
        Target {
            modules: watch.map(|watch| Looking::new(pid, watch)),
            ..self
        }
    }

    /// Calls through pointers are to have the functions that they call.
    pub fn naming(self, callees: Option<Callees>) -> Target {
        Target { callees, ..self }
    }

    /// What it loads is measured, too.
    pub fn follow(&mut self, told: Arc<Told>, beside: Arc<Beside>) {
        self.following = Some((told, beside));
    }

    /// What it forks from now on is measured, too; its probes were made for that.
    pub fn with_children(self) -> Target {
        let installed = &self.installed;
        Target {
            children: Some(Children::of(&installed.table, installed.arena_inode)),
            ..self
        }
    }

    /// Who may unwind measured functions since the last look.
    pub fn may_unwind(&mut self) -> Option<String> {
        if !self.is_alive() {
            return None;
        }
        self.modules.as_mut()?.poll()
    }

    /// Notes on modules that [`Target::may_unwind`] could not examine.
    pub fn not_looked_at(&mut self) -> Vec<String> {
        let modules = self.modules.as_mut();
        modules.map_or(Vec::new(), Looking::not_looked_at)
    }

    /// What is called is counted from now on: some of it may be left out, but not these.
    pub fn counts_calls(&mut self, never_left_out: &[FunctionId]) {
        self.never_left_out = never_left_out.iter().copied().collect();
        self.tally = Some(Tally::of(self.installed.table.functions.len()));
    }

    /// Of those that have probes, since the tally was cleared: records that come late are of probes that are gone.
    pub(super) fn called(&self) -> Vec<(FunctionId, Called)> {
        let all = self.tally.iter().flat_map(Tally::functions);
        all.filter(|(id, _)| !self.gone.contains(id)).collect()
    }

    pub(super) fn never_left_out(&self) -> &HashSet<FunctionId> {
        &self.never_left_out
    }

    /// Takes the probes of these functions away; calls of theirs that are under way end with a record.
    ///
    /// # Errors
    /// The process could not be stopped, or its code not be written to.
    pub(super) fn leave_out(&mut self, functions: &HashSet<FunctionId>) -> Result<(), LiveError> {
        match self.installed.leave_out(functions) {
            Err(_) if !self.is_alive() => return Ok(()),
            done => done?,
        };
        self.gone.extend(functions);
        Ok(())
    }

    /// What was drained until now is of no recording.
    pub(super) fn begin_anew(&mut self) {
        (self.counts, self.threads) = (RingCounts::default(), 0);
        let pool = self.installed.pool();
        self.before = [pool.calls_unmeasured(), pool.calls_foreign()];
        self.tally = self
            .tally
            .take()
            .map(|_| Tally::of(self.installed.table.functions.len()));
        for ring in &mut self.rings {
            ring.thread = None;
        }
    }

    /// Visits every ring; returns what the busiest one gained.
    pub fn drain<S: Sink>(
        &mut self,
        visit: Visit,
        numbers: &mut Numbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<u64, TraceError> {
        self.learn_claims();
        self.installed.keep_rings_ahead();
        let mut most = 0;
        for context in 0..self.rings.len() {
            if self.rings[context].in_use {
                most = most.max(self.drain_ring(context, visit, numbers, buffer, writer)?);
            }
        }
        Ok(most)
    }

    /// The sink keeps what was read: a salvage begins behind it.
    pub fn kept(&mut self) {
        let pool = self.installed.pool();
        for (context, state) in self.rings.iter_mut().enumerate() {
            let next = state.position.next;
            if state.kept != next
                && let Some(ring) = pool.ring(context)
            {
                ring.set_consumed(next);
                state.kept = next;
            }
        }
    }

    fn learn_claims(&mut self) {
        let pool = self.installed.pool();
        let taken = pool.taken();
        // A scribbled counter must not keep us here: more than the queue holds is nonsense.
        let from = self
            .claims_seen
            .max(taken.saturating_sub(self.rings.len() as u64));
        for n in from..taken {
            if let Some(ring) = self.rings.get_mut(pool.free_entry(n) as usize) {
                ring.in_use = true;
            }
        }
        self.claims_seen = taken;
        self.children.iter_mut().for_each(Children::look_again);
    }

    fn drain_ring<S: Sink>(
        &mut self,
        context: usize,
        visit: Visit,
        numbers: &mut Numbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<u64, TraceError> {
        let context_at = self.context_at(context);
        let state = &mut self.rings[context];
        let pool = self.installed.pool();
        let Some(ring) = pool.ring(context) else {
            return Ok(0);
        };
        if state.damaged {
            return Ok(0);
        }
        let damaged_before = self.counts.damaged;
        let (process, parent) = (self.process, self.installed.pid);
        // A child may have loaded what its parent has not.
        if self.callees.is_some()
            && self.children.is_some()
            && state.owner.is_none()
            && ring.reserved() > state.position.next
        {
            state.owner = owner_of(&ring, parent, context_at, self.children.as_mut());
        }
        let caller = state.owner.and_then(Owner::pid).unwrap_or(parent);
        let threads = &mut self.threads;
        let name_at_attach = &state.name_at_attach;
        let owner = &mut state.owner;
        let children = &mut self.children;
        let mut name = |writer: &mut S| {
            let ix = numbers.thread();
            *threads += 1;
            let tid = ring.tid();
            if owner.is_none() {
                *owner = owner_of(&ring, parent, context_at, children.as_mut());
            }
            let process = match (*owner, &mut *children) {
                (Some(Owner::Thread { pid, .. }), Some(children)) if pid != parent => {
                    children.process(Some(pid), ring.forked(), numbers, writer)?
                }
                (Some(Owner::GoneChild { pid, .. }), Some(children)) => {
                    children.process(None, pid, numbers, writer)?
                }
                _ => process,
            };
            let entry = match *owner {
                Some(Owner::Thread { pid, tid, .. }) => {
                    let mut entry = thread_entry(ix, process, pid, tid);
                    if entry.comm.is_empty() {
                        entry.comm.clone_from(name_at_attach);
                    }
                    entry
                }
                // Gone before its first record was read: in a nested pid namespace its number
                // outside is not known any more.
                Some(Owner::Gone | Owner::GoneChild { .. } | Owner::Unknown) | None => {
                    nameless_entry(ix, process, tid)
                }
            };
            writer.thread(&entry)?;
            Ok(ix)
        };
        let following = self.following.as_ref();
        let mut drain = Drain {
            told: following.map(|(told, _)| &**told),
            writer,
            buffer,
            counts: &mut self.counts,
            count_calls: self.count_calls,
            tally: self.tally.as_mut(),
            slow_calls: self.slow_calls.as_mut(),
            callees: self
                .callees
                .as_mut()
                .map(|callees| (callees, &mut state.open_calls, caller)),
        };
        let gained = drain.ring(
            &ring,
            &mut state.position,
            visit,
            &mut state.thread,
            &mut name,
        )?;
        state.damaged = self.counts.damaged != damaged_before;
        Ok(gained)
    }

    /// What leads into copies may be changed by others: debuggers, and the dynamic linker.
    pub fn keep_entries(&mut self) {
        let following = self.following.clone();
        // At the next look, where another thread is about to stop its threads.
        let held = match &following {
            Some((_, beside)) => match beside.hold() {
                Some(held) => Some(held),
                None => return,
            },
            None => None,
        };
        let Target {
            installed,
            bound_since,
            ..
        } = self;
        let mut held = held;
        let added = held.iter_mut().flat_map(|held| held.iter_mut());
        for installed in std::iter::once(installed).chain(added) {
            installed.give_back_breakpoints();
            match installed.lead_slots() {
                Ok(led) => *bound_since += led,
                // Tried again at the next look; a target that is gone is found out elsewhere.
                Err(e) => log::debug!("process {}: {e}", installed.pid),
            }
        }
        drop(held);
        self.open_counters();
    }

    pub(super) fn watch_calls(&mut self, slow: &[Trigger]) {
        self.slow_calls = (!slow.is_empty()).then(|| SlowCalls::new(slow));
    }

    /// The first call that took too long.
    pub(super) fn slow_call(&mut self) -> Option<TriggerEntry> {
        self.slow_calls.as_mut()?.first.take()
    }

    /// What the user should know of callees.
    pub(super) fn note_callees(&self) -> Option<String> {
        self.callees.as_ref()?.note(self.installed.pid)
    }

    /// What the user should know of slots.
    pub(super) fn note_slots(&self) -> Option<String> {
        (self.bound_since > 0).then(|| {
            format!(
                "process {}: {} GOT slots were bound during the recording; calls through each before the next look (every 50 ms) were not measured",
                self.installed.pid, self.bound_since
            )
        })
    }

    /// Contexts of threads that have a ring, with their thread ids.
    pub(super) fn contexts(&self) -> impl Iterator<Item = (usize, i32)> {
        let rings = self
            .rings
            .iter()
            .enumerate()
            .filter(|(_, ring)| ring.in_use);
        rings.filter_map(|(n, ring)| match ring.owner? {
            Owner::Thread { pid, tid, .. } if pid == self.installed.pid => Some((n, tid)),
            Owner::Thread { .. } => None,
            Owner::Gone | Owner::GoneChild { .. } | Owner::Unknown => None,
        })
    }

    /// Calls that never return may run in its copies.
    pub(super) fn has_loops(&self) -> bool {
        self.all()
            .any(|installed| !installed.table.loops.is_empty())
    }

    pub(super) fn context_at(&self, context: usize) -> u64 {
        self.installed.table.contexts.at + (context * size_of::<Context>()) as u64
    }

    /// Whether the measured program still runs (not exited, not replaced by exec).
    pub fn is_alive(&self) -> bool {
        self.installed.is_alive()
    }

    /// It, or what it forked and is measured with it.
    pub fn is_measured(&mut self) -> bool {
        self.is_alive() || self.children.as_mut().is_some_and(Children::any_is_alive)
    }

    /// Whether what it forks is measured, too.
    pub(super) fn follows_forks(&self) -> bool {
        self.children.is_some()
    }

    pub(super) fn note_children(&self) -> Option<String> {
        self.children.as_ref()?.note()
    }

    /// The process is there, but not what was measured in it: exec.
    pub fn runs_another_program(&self) -> bool {
        let pid = self.installed.pid;
        // One that is exiting has no memory at all any more, and no file that it runs.
        !self.is_alive()
            && self.started.is_some()
            && procfs::start_time(pid) == self.started
            && fs::read_link(format!("/proc/{}/exe", procfs::memory_holder(pid))).is_ok()
    }

    /// What the target has overwritten is not counted: see [`Target::without_ring`].
    pub fn calls_unmeasured(&self) -> u64 {
        self.counters().map_or(0, |counters| counters.iter().sum())
    }

    /// Calls without a ring and with a foreign gs, since this recording began; `None`: these are none that come of counting.
    fn counters(&self) -> Option<[u64; 2]> {
        let pool = self.installed.pool();
        let now = [pool.calls_unmeasured(), pool.calls_foreign()];
        let [unmeasured, foreign] = self.before;
        (now[0] < COUNTED_AT_MOST && now[1] < COUNTED_AT_MOST).then(|| {
            [
                now[0].saturating_sub(unmeasured),
                now[1].saturating_sub(foreign),
            ]
        })
    }

    /// Calls of threads that found no free ring, and what helps.
    pub(super) fn without_ring(&self) -> Option<String> {
        let pid = self.installed.pid;
        let Some([calls, _]) = self.counters() else {
            return Some(format!(
                "process {pid} has overwritten the count of calls that were not measured: it is not known"
            ));
        };
        (calls > 0).then(|| {
            format!(
                "process {}: {calls} calls were not measured: their threads found none of the {} rings free; rings of \
                 threads that ended are free again within 50 ms; record with a larger --threads (at most 1024)",
                self.installed.pid,
                self.rings.len()
            )
        })
    }

    /// Threads that have records, with their processes.
    pub fn tids(&self) -> impl Iterator<Item = (i32, i32)> {
        let with_records = self.rings.iter().filter(|ring| ring.thread.is_some());
        with_records.filter_map(|ring| match ring.owner? {
            Owner::Thread { pid, tid, .. } => Some((pid, tid)),
            Owner::Gone | Owner::GoneChild { .. } | Owner::Unknown => None,
        })
    }

    /// Threads that have records, with their numbers.
    pub fn named(&self) -> impl Iterator<Item = (i32, ThreadIx)> {
        self.rings.iter().filter_map(|ring| match ring.owner? {
            Owner::Thread { tid, .. } => Some((tid, ring.thread?)),
            Owner::Gone | Owner::GoneChild { .. } | Owner::Unknown => None,
        })
    }
}

fn owner_of(
    ring: &Ring,
    pid: i32,
    context_at: u64,
    children: Option<&mut Children>,
) -> Option<Owner> {
    match children {
        Some(children) => children.owner(ring, context_at),
        None => Some(Owner::claimed(pid, ring.tid())),
    }
}
