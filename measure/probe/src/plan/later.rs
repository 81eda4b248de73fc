//! What a process loads while it is recorded: the same selections, of modules that were not there when it was looked into.
use super::calls::Calls;
use super::choosing::{Choice, Chosen};
use super::in_callers::ByName;
use super::inlined::ByFunction;
use super::interposed::Slots;
use super::judging::{FoundSlots, Home};
use super::named_calls::NamedCalls;
use super::process::Opened;
use super::{Item, Plan, PlanError};
use crate::instrument::capture::parse::Selection;
use crate::instrument::resolve::Policy;
use crate::live::install::GONE;
use crate::locate::module_names::ModuleNames;
use crate::locate::{self, MappedModule, basename};
use hopscope_event::FunctionId;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// What came of looking into a process again.
#[derive(Default)]
pub struct Later {
    /// That were not there the last time.
    pub modules: Vec<MappedModule>,
    /// In them, or called by them alone ([called from …]).
    pub items: Vec<Item>,
}

impl Plan {
    /// Another plan that goes on from the tables of this one, made where it is needed: what a plan has read of files
    /// stays in its thread.
    pub fn going_on(&self) -> impl FnOnce() -> Plan + Send + 'static {
        let (modules, functions) = (self.modules.clone(), self.functions.clone());
        let (refusals, captures) = (self.refusals.clone(), self.captures.clone());
        let (counters, not_captured) = (self.counters.clone(), self.not_captured.clone());
        let (inlined, calls, method) = (self.inlined.clone(), self.calls, self.method);
        let (assume_no_exceptions, all_frames) = (self.assume_no_exceptions, self.all_frames);
        let (loads, switchers) = (self.loads.clone(), self.switchers.clone());
        let (images, ids) = (self.images.clone(), self.ids.clone());
        let inlined_ids = self.inlined_ids.clone();
        let inlined_seen = self.inlined_seen.clone();
        let calls_ids = self.calls_ids.clone();
        let refused = self.refused.clone();
        let (excluded, left_out) = (self.excluded.clone(), self.left_out.clone());
        let (follows_loads, matched) = (self.follows_loads, self.matched.clone());
        let (times_in_callers, in_callers) = (self.times_in_callers, self.in_callers.clone());
        move || Plan {
            modules,
            functions,
            refusals,
            captures,
            counters,
            not_captured,
            inlined,
            calls,
            method,
            assume_no_exceptions,
            all_frames,
            loads,
            switchers,
            images,
            ids,
            inlined_ids,
            inlined_seen,
            calls_ids,
            refused,
            excluded,
            left_out,
            follows_loads,
            matched,
            times_in_callers,
            in_callers,
            named_calls: NamedCalls::default(),
            // Read anew, and only once they are needed; watches are the recorder's.
            watches: HashMap::new(),
            lines: HashMap::new(),
            debug: HashMap::new(),
        }
    }

    /// File names of what `pid` has loaded since it was looked into; none where it is gone.
    pub fn names_of_new(&self, pid: i32) -> Vec<String> {
        let there = locate::mapped_modules(pid).unwrap_or_default();
        let known = self.loads(pid);
        let is_new = |m: &&MappedModule| !known.iter().any(|before| before.is_same_load(m));
        let new = there.iter().filter(is_new);
        new.map(|m| basename(&m.path).to_owned()).collect()
    }

    /// Those of `selections` that no function of any module matched so far, where loads are followed. Of inlined functions it is
    /// not known.
    pub fn unmatched<'s>(&self, selections: &'s [Selection]) -> Vec<&'s Selection> {
        let all = selections.iter().enumerate();
        let unmatched = all.filter(|(n, s)| !s.inlined && !self.matched.contains(n));
        unmatched.map(|(_, s)| s).collect()
    }

    /// What a process had mapped when it was looked into.
    pub fn loads(&self, pid: i32) -> &[MappedModule] {
        self.loads.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Functions that turned out to be refused while their process was attached to. Files of modules that were gone: what
    /// lies there now may be looked at ([`Plan::forget`]).
    pub fn refuse_late(&mut self, refused: &[(FunctionId, String)]) -> HashSet<PathBuf> {
        let mut gone = HashSet::new();
        for (id, why) in refused {
            let f = self.functions[id.0 as usize].clone();
            let module = self.modules[f.module.0 as usize].path.clone();
            if why == GONE {
                gone.insert(PathBuf::from(&module));
            }
            self.refuse(basename(module.as_ref()), &f.name, f.svma, why.clone());
            self.refuse_within(*id, basename(module.as_ref()));
        }
        gone
    }

    /// None of a process's modules is known.
    pub fn forget_all(&mut self, pid: i32) {
        self.forget(pid, |_| true);
    }

    /// Modules of a process are taken for new ones the next time, though they lie where they did.
    pub fn forget(&mut self, pid: i32, is_gone: impl Fn(&MappedModule) -> bool) {
        if let Some(known) = self.loads.get_mut(&pid) {
            known.retain(|module| !is_gone(module));
        }
    }

    /// What `selections` match in modules that `pid` has loaded since it was looked into the last time, and what these
    /// alone call (functions that are measured where modules call them).
    ///
    /// # Errors
    /// The process is gone, or a name may mean several modules.
    pub fn add_later(
        &mut self,
        pid: i32,
        selections: &[Selection],
        shadow_stack: bool,
        policy: &Policy,
    ) -> Result<Later, PlanError> {
        let there = locate::mapped_modules(pid)?;
        let known = self.loads(pid).to_vec();
        let is_new = |m: &MappedModule| !known.iter().any(|before| before.is_same_load(m));
        if !there.iter().any(is_new) {
            self.loads.insert(pid, there);
            return Ok(Later::default());
        }
        let seen = self.look_into(pid)?;
        let new: Vec<MappedModule> = seen.modules.iter().filter(|m| is_new(m)).cloned().collect();
        self.loads.insert(pid, seen.modules.clone());
        let names = ModuleNames::of_process(pid, &seen.modules);
        let resolved: Result<Vec<_>, _> = selections.iter().map(|s| s.resolved(&names)).collect();
        let (selections, left_out) = (&resolved?[..], names.resolve_all(&self.excluded)?);
        let opened = seen.opened();
        let is_of_new = |n: usize| is_new(opened[n].0);
        let known_slots = OnceCell::new();
        let slots = || known_slots.get_or_init(|| Slots::of(pid, &opened));
        let slots_of_new: FoundSlots = Slots::of(pid, &opened).map(|s| s.only_of(is_of_new));
        let choice = Choice::new(selections, &left_out, policy, self.method);
        let by_name = ByName::default();
        let (mut chosen, nothing) = (Chosen::default(), ByFunction::default());
        for n in 0..opened.len() {
            let within = match is_of_new(n) {
                true => self.within(&opened[n], selections, &left_out, BTreeMap::new()),
                false => ByFunction::default(),
            };
            let tables = seen.tables(&opened, n);
            let process = seen.traits(n, tables.as_ref(), shadow_stack);
            if is_of_new(n) {
                let home = Home::of(&seen, &opened[n], &within, process);
                for function in home.image.functions() {
                    self.choose(&choice, &slots, (&home, &by_name), function, &mut chosen);
                }
                continue;
            }
            let Ok(of_new) = &slots_of_new else { continue };
            let home = Home::of(&seen, &opened[n], &nothing, process);
            let functions = home.image.functions().iter();
            let bias = home.module.bias;
            for function in functions.filter(|f| of_new.lead_to(f.svma.wrapping_add(bias))) {
                let mut called = Chosen::default();
                let home = (&home, &by_name);
                self.choose(&choice, &|| &slots_of_new, home, function, &mut called);
                // What has a jump at its entry is measured already, whoever calls it.
                called.items.retain(|item| item.slots.is_some());
                chosen.items.append(&mut called.items);
            }
        }
        Ok(Later {
            modules: new,
            items: chosen.items,
        })
    }

    /// What is timed within functions of a module.
    pub(super) fn within(
        &mut self,
        (module, image, ix): &Opened,
        selections: &[Selection],
        left_out: &[locate::pattern::Pattern],
        by_name: BTreeMap<u64, Calls>,
    ) -> ByFunction {
        let path = module.path.to_string_lossy();
        let mut found = self.inlined_in(image, *ix, &path, selections, left_out);
        found.add_calls(image, &path, selections, by_name);
        found
    }
}
