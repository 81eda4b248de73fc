//! One target that is followed.
use super::added::Rows;
use super::notes::Notes;
use super::sentinels::Sentinels;
use super::{Beside, Told, lock};
use crate::instrument::capture::parse::Selection;
use crate::instrument::resolve::Policy;
use crate::live::LiveError;
use crate::live::install::{InstallOptions, Installed, SharedRings, install_beside};
use crate::live::table::PatchTable;
use crate::locate::{MappedModule, basename};
use crate::new_modules::mapped_code_kb;
use crate::plan::{Item, Later, Plan};
use hopscope_event::{FunctionId, ProcessEntry, RecordingMeta};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{maps, stop_times};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// Arenas of one target at a time: each has mappings, and the kernel allows 65,530 of all kinds.
const ADDITIONS_MAX: usize = 256;
/// Each costs the target as much as a load.
const AGAIN_MAX: u32 = 1000;
/// Modules of the same size may have taken each other's place.
const BETWEEN_MAPS: Duration = Duration::from_secs(1);

/// A target, and what it was judged by at the attach.
pub struct Followed {
    process: ProcessEntry,
    shadow_stack: bool,
    policy: Policy,
    rings: SharedRings,
    /// Somewhere in what goes with the program that was attached to.
    alive_at: u64,
    code_kb: Option<u64>,
    files: Files,
    sentinels: Sentinels,
    /// Modules of each addition, in their order.
    modules: Vec<Vec<MappedModule>>,
    /// Modules that were gone when they were to be added, and are looked for again: not for ever.
    again: u32,
}

/// What is added to whichever target.
pub(super) struct Adding<'a> {
    pub(super) selections: &'a [Selection],
    pub(super) options: &'a InstallOptions,
    pub(super) meta: &'a RecordingMeta,
    pub(super) told: &'a Told,
}

/// Files that are mapped executable, by where they lie.
struct Files {
    seen: BTreeMap<u64, u64>,
    looked: Instant,
}

impl Files {
    fn of(pid: i32) -> BTreeMap<u64, u64> {
        let mappings = maps::read(pid).unwrap_or_default().into_iter();
        let code = mappings.filter(|m| m.executable && m.inode != 0 && !m.is_memfd());
        code.map(|m| (m.range.start, m.inode)).collect()
    }

    /// Looked at once a second.
    fn changed(&mut self, pid: i32) -> bool {
        if self.looked.elapsed() < BETWEEN_MAPS {
            return false;
        }
        self.looked = Instant::now();
        let now = Files::of(pid);
        let before = std::mem::replace(&mut self.seen, now);
        before != self.seen
    }
}

impl Followed {
    /// `plan` has looked into it.
    pub fn new(
        installed: &Installed,
        process: ProcessEntry,
        shadow_stack: bool,
        policy: Policy,
        plan: &Plan,
    ) -> Followed {
        let mut sentinels = Sentinels::default();
        sentinels.add(plan.loads(process.pid), &installed.table.patches);
        Followed {
            rings: installed.shared_rings(),
            alive_at: installed.table.contexts.at,
            // What was loaded since it was looked into is found at the first look.
            code_kb: None,
            files: Files {
                seen: BTreeMap::new(),
                looked: Instant::now(),
            },
            sentinels,
            modules: Vec::new(),
            again: 0,
            process,
            shadow_stack,
            policy,
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Adds what was loaded since the last time, and takes away what was added for modules that are gone. Whether the tables
    /// have grown.
    pub(super) fn look(&mut self, adding: &Adding, rows: &mut Rows, side: &Beside) -> bool {
        let pid = self.process.pid;
        // Ended, or another program by now.
        let memory = TargetMemory::open(pid).ok();
        let memory = memory.filter(|m| m.read(self.alive_at, &mut [0]).is_ok());
        let Some(memory) = memory else { return false };
        let lost = self.sentinels.take_lost(&memory);
        let code_kb = mapped_code_kb(pid);
        let is_due = code_kb != self.code_kb || !lost.is_empty();
        if !self.files.changed(pid) && !is_due {
            return false;
        }
        self.code_kb = code_kb;
        let seen = Instant::now();
        rows.plan
            .forget(pid, |m| lost.iter().any(|gone| gone.is_same_load(m)));
        let names = rows.plan.names_of_new(pid);
        lock(&side.notes).reads(names.clone());
        let (selections, policy) = (adding.selections, &self.policy);
        let later = rows
            .plan
            .add_later(pid, selections, self.shadow_stack, policy);
        let mut additions = lock(&side.additions);
        // Looked at while nobody else can end it.
        if adding.told.is_over() {
            return false;
        }
        let mut notes = lock(&side.notes);
        notes.reads(Vec::new());
        // What could not be read of a process that has ended is no loss.
        if memory.read(self.alive_at, &mut [0]).is_err() {
            return false;
        }
        let later = match later {
            Ok(later) => later,
            Err(e) => {
                notes.failed(&names, e.to_string());
                return false;
            }
        };
        let there = rows.plan.loads(pid);
        let is_gone = |m: &MappedModule| {
            let is_it = |other: &MappedModule| other.is_same_load(m);
            lost.iter().any(is_it) || !there.iter().any(is_it)
        };
        self.take_unloaded_away(&mut additions, &mut notes, is_gone);
        adding.told.add_rows(&rows.take_new());
        if later.items.is_empty() {
            return true;
        }
        if additions.len() >= ADDITIONS_MAX {
            let why = format!("{ADDITIONS_MAX} loads are followed at a time at most");
            notes.failed(&names, why);
            return true;
        }
        match self.add(adding, &rows.plan, &later) {
            Ok(done) => {
                let gone = rows.plan.refuse_late(&done.refused);
                self.look_again(&mut rows.plan, |m| gone.contains(&m.path));
                note(&mut notes, &later, &done, seen.elapsed());
                notes.stopped(&done.stops);
                self.sentinels.add(&later.modules, &done.table.patches);
                // It goes at the next look where nothing of it leads anywhere.
                let is_led = !done.table.patches.is_empty() || !done.table.slots.is_empty();
                additions.push(done);
                let modules = if is_led { later.modules } else { Vec::new() };
                self.modules.push(modules);
            }
            Err(why) => {
                let is_one = |m: &MappedModule| later.modules.iter().any(|l| l.is_same_load(m));
                if matches!(why, LiveError::Gone { .. }) {
                    self.look_again(&mut rows.plan, is_one);
                }
                let why = match why {
                    LiveError::Gone { .. } | LiveError::CodeDiffers { .. } => GONE.to_owned(),
                    why => why.to_string(),
                };
                notes.failed(&names, why);
            }
        }
        adding.told.add_rows(&rows.take_new());
        true
    }

    /// What lies where these were may be a load of the same file, that nothing was added to.
    fn look_again(&mut self, plan: &mut Plan, is_gone: impl Fn(&MappedModule) -> bool) {
        if self.again < AGAIN_MAX && plan.loads(self.process.pid).iter().any(&is_gone) {
            plan.forget(self.process.pid, is_gone);
            self.again += 1;
            self.code_kb = None;
        }
    }

    fn add(&self, adding: &Adding, plan: &Plan, later: &Later) -> Result<Installed, LiveError> {
        let ids: HashSet<FunctionId> = later.items.iter().map(|item| item.id).collect();
        let functions = plan.functions.iter().filter(|f| ids.contains(&f.id));
        let mut table = PatchTable::new(
            adding.meta.clone(),
            self.process.clone(),
            plan.modules.clone(),
            functions.cloned().collect(),
        );
        let captures = plan.captures.iter().filter(|c| ids.contains(&c.function));
        table.captures = captures.cloned().collect();
        table.counters = plan.counters.clone();
        table.switches_stacks = plan.switches_stacks(self.process.pid);
        let selected = later.items.iter().map(Item::selected).collect();
        let pid = self.process.pid;
        install_beside(pid, selected, adding.options, table, &self.rings)
    }

    /// Nothing enters their copies any more.
    fn take_unloaded_away(
        &mut self,
        additions: &mut Vec<Installed>,
        notes: &mut Notes,
        is_gone: impl Fn(&MappedModule) -> bool,
    ) {
        for n in (0..additions.len()).rev() {
            if !self.modules[n].iter().all(&is_gone) {
                continue;
            }
            let gone = &mut additions[n];
            let done = gone.detach();
            notes.stopped(&stop_times::take(gone.pid));
            match done {
                Ok(_) if gone.is_taken_away() => {
                    notes.goes(std::mem::take(&mut gone.notes));
                    drop(additions.remove(n));
                    self.modules.remove(n);
                }
                // Once more when the next one goes, and at the end.
                Ok(done) => log::info!("{}", done.notes.join("; ")),
                Err(e) => log::info!("process {}: an unloaded module: {e}", gone.pid),
            }
        }
    }
}

fn note(notes: &mut Notes, later: &Later, done: &Installed, after: Duration) {
    let refused: HashSet<FunctionId> = done.refused.iter().map(|(id, _)| *id).collect();
    for module in &later.modules {
        let range = &module.avma_range;
        let is_of_it = |(at, id): &&(u64, FunctionId)| range.contains(at) && !refused.contains(id);
        let functions = done.sites.iter().filter(is_of_it).count();
        let name = basename(&module.path);
        if functions > 0 {
            notes.measured(name, functions, after);
        } else if done.sites.iter().any(|(at, _)| range.contains(at)) {
            notes.failed(&[name.to_owned()], GONE.to_owned());
        }
    }
}

/// Why nothing of a module is measured.
const GONE: &str = "they were unloaded, or replaced by others, meanwhile";
