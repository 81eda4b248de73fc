//! From patterns to what will be measured: one table of functions for the whole recording, and
//! for each process the units to be moved.
mod calls;
mod choosing;
mod in_callers;
mod inlined;
mod interposed;
mod item;
mod judging;
mod later;
mod named_calls;
mod noted;
mod process;

use crate::instrument::body::Refusal as WhyNot;
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::body::verdict::{self, ProcessTraits};
use crate::instrument::capture::parse::Selection;
use crate::instrument::resolve::{CannotCapture, Policy};
use crate::locate::module_names::ModuleNames;
use crate::locate::pattern::Pattern;
use crate::locate::signature::Debug;
use crate::locate::{self, Image, Lines, LocateError, MappedModule, basename};
use crate::new_modules::Watch;
use crate::progress::{self, Phase};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{CaptureEntry, CounterEntry, FunctionEntry, FunctionId, Refusal};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

pub use calls::PlacesOfCalls;
use choosing::{Choice, Chosen};
pub use in_callers::InCallers;
use in_callers::Process;
use inlined::ByFunction;
pub use inlined::InlinedPlaces;
use interposed::Slots;
pub use interposed::{CALLED_FROM, Method};
pub use item::Item;
use judging::Home;
pub use later::Later;
use named_calls::NamedCalls;
use process::Opened;

/// The recording's tables, filled process by process.
#[derive(Default)]
pub struct Plan {
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    pub captures: Vec<CaptureEntry>,
    /// That functions may be measured with; what selections ask for and is not here is left out.
    pub counters: Vec<CounterEntry>,
    /// Captures that were requested of functions measured without them.
    pub not_captured: Vec<(FunctionId, CannotCapture)>,
    /// Places where functions were inlined that are timed.
    pub inlined: InlinedPlaces,
    /// Calls that are timed where they are made.
    pub calls: PlacesOfCalls,
    /// Functions of which others' calls are timed, and not they themselves.
    pub in_callers: Vec<InCallers>,
    named_calls: NamedCalls,
    /// Whether there may be any.
    pub times_in_callers: bool,
    /// `--assume-no-exceptions`: no exception and no thread exit unwinds measured functions.
    pub assume_no_exceptions: bool,
    /// How calls are led into copies.
    pub method: Method,
    /// Copies have unwind tables also where nothing in the process asks for them.
    pub all_frames: bool,
    /// What matches may be loaded later, and may raise exceptions.
    pub follows_loads: bool,
    watches: HashMap<i32, Watch>,
    /// What each process had mapped when it was looked into.
    loads: HashMap<i32, Vec<MappedModule>>,
    /// Selections, by number, that something matched.
    matched: HashSet<usize>,
    switchers: HashSet<i32>,
    images: HashMap<PathBuf, (Arc<Image>, ModuleIx)>,
    /// Also by name: of one and the same function other calls may be measured in another process.
    ids: HashMap<(ModuleIx, u64, String), FunctionId>,
    inlined_ids: HashMap<(FunctionId, String), FunctionId>,
    inlined_seen: HashSet<FunctionId>,
    calls_ids: HashMap<(FunctionId, Option<String>), FunctionId>,
    lines: HashMap<ModuleIx, Option<Lines>>,
    debug: HashMap<ModuleIx, Option<Debug>>,
    refused: HashSet<(String, u64, String)>,
    excluded: Vec<Pattern>,
    left_out: HashSet<(ModuleIx, u64)>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Locate(#[from] LocateError),
    #[error("process {pid}: nothing matches {patterns}{nearest}")]
    NothingMatches {
        pid: i32,
        patterns: String,
        nearest: String,
    },
    #[error("process {pid}: nothing that {pattern} matches was inlined: {why}")]
    NothingInlined {
        pid: i32,
        pattern: String,
        why: String,
    },
    #[error(
        "process {pid}: nothing that {asked} asks for is called there (calls: is of calls through pointers, calls:CALLER->CALLEE of those by name; a jump is none)"
    )]
    NoCalls { pid: i32, asked: String },
    #[error("process {pid}: -x excludes all of the {functions} functions that match")]
    AllExcluded { pid: i32, functions: usize },
    #[error(
        "process {pid}: none of the {functions} functions that match is called from there through a GOT slot (calls within a module, through pointers, and of files without section headers are not)"
    )]
    NoneCalled { pid: i32, functions: usize },
    #[error("process {pid}: no module is called {module}, whose calls were asked for")]
    NoCaller { pid: i32, module: String },
    #[error("process {pid}: {function}: cannot capture {why}")]
    NothingCaptured {
        pid: i32,
        function: String,
        why: CannotCapture,
    },
}

impl Plan {
    /// A plan that leaves out what any of `excluded` matches. With `assume_no_exceptions` nothing is refused because
    /// its frame may be unwound.
    pub fn new(excluded: Vec<Pattern>, assume_no_exceptions: bool) -> Plan {
        Plan {
            excluded,
            assume_no_exceptions,
            ..Plan::default()
        }
    }

    /// How many functions that were selected are left out because they are excluded.
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Selects what `patterns` match in `pid`, with no captures.
    pub fn add_process(
        &mut self,
        pid: i32,
        patterns: &[Pattern],
        shadow_stack: bool,
    ) -> Result<Vec<Item>, PlanError> {
        let bare = |p: &Pattern| Selection::of_pattern(p.clone());
        let selections: Vec<_> = patterns.iter().map(bare).collect();
        self.add_selected(pid, &selections, shadow_stack, &Policy::default())
    }

    /// Selects functions in `pid`, and what is taken along from them.
    ///
    /// # Errors
    /// Also when a capture can be taken from none of the functions that it was asked of.
    pub fn add_selected(
        &mut self,
        pid: i32,
        selections: &[Selection],
        shadow_stack: bool,
        policy: &Policy,
    ) -> Result<Vec<Item>, PlanError> {
        let seen = self.look_into(pid)?;
        self.loads.insert(pid, seen.modules.clone());
        let names = ModuleNames::of_process(pid, &seen.modules);
        let resolved: Result<Vec<_>, _> = selections.iter().map(|s| s.resolved(&names)).collect();
        let (selections, left_out) = (&resolved?[..], names.resolve_all(&self.excluded)?);
        let opened = seen.opened();
        if selections.iter().any(|s| s.inlined) {
            progress::begin(Phase::Inlined, opened.len());
        }
        let known_slots = OnceCell::new();
        let slots = || known_slots.get_or_init(|| Slots::of(pid, &opened));
        let process = Process {
            seen: &seen,
            opened: &opened,
            shadow_stack,
        };
        let mut by_name = self.timed_by_name(&process, selections, &left_out, &slots);
        let within: Vec<ByFunction> = opened
            .iter()
            .enumerate()
            .map(|(n, module)| {
                let calls = by_name.of_module(n);
                let found = self.within(module, selections, &left_out, calls);
                progress::step(1);
                found
            })
            .collect();
        let functions = opened.iter().map(|(_, image, _)| image.functions().len());
        progress::begin(Phase::Functions, functions.sum());
        for callers in selections.iter().filter_map(|s| s.callers.as_ref()) {
            let paths = opened
                .iter()
                .map(|(module, ..)| module.path.to_string_lossy());
            let is_there = paths.into_iter().any(|path| callers.matches_module(&path));
            if !is_there && !self.follows_loads {
                let module = callers.to_string();
                let module = module.trim_end_matches("!*").to_owned();
                return Err(PlanError::NoCaller { pid, module });
            }
        }
        let choice = Choice::new(selections, &left_out, policy, self.method);
        let mut chosen = Chosen::default();
        for (n, within) in within.iter().enumerate() {
            let tables = seen.tables(&opened, n);
            let process = seen.traits(n, tables.as_ref(), shadow_stack);
            let home = Home::of(&seen, &opened[n], within, process);
            for function in home.image.functions() {
                progress::step(1);
                self.choose(&choice, &slots, (&home, &by_name), function, &mut chosen);
            }
        }
        self.say_who_calls(by_name);
        if let Some(Ok(slots)) = known_slots.get() {
            for module in &slots.unknown {
                let why =
                    "what it calls through its GOT is not known: the file has no section headers";
                self.refuse(module, "*", 0, why.to_owned());
            }
        }
        if !self.follows_loads {
            self.check_inlined(pid, selections, &opened)?;
        }
        match chosen {
            Chosen { matched: 1.., .. } => {}
            _ if self.follows_loads => return Ok(Vec::new()),
            Chosen {
                excluded: functions @ 1..,
                ..
            } => return Err(PlanError::AllExcluded { pid, functions }),
            Chosen {
                not_called: functions @ 1..,
                ..
            } => return Err(PlanError::NoneCalled { pid, functions }),
            Chosen {
                call_nothing: 1.., ..
            } => return Err(Plan::nothing_called(pid, selections)),
            _ => return Err(self.nothing(pid, selections, &opened)),
        }
        self.check_captured(pid, selections)?;
        Ok(chosen.items)
    }

    /// Files that were read, by their paths.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &Arc<Image>, ModuleIx)> {
        let files = self.images.iter();
        files.map(|(path, (image, ix))| (path, image, *ix))
    }

    /// For the recorder: whether what `pid` loads later changes what was judged here.
    pub fn watch(&self, pid: i32) -> Option<Watch> {
        self.watches.get(&pid).cloned()
    }

    /// Whether threads of `pid` may have suspended stacks anywhere.
    pub fn switches_stacks(&self, pid: i32) -> bool {
        self.switchers.contains(&pid)
    }

    fn nothing(&self, pid: i32, selections: &[Selection], opened: &[Opened]) -> PlanError {
        let asked: Vec<String> = selections.iter().map(ToString::to_string).collect();
        let patterns: Vec<Pattern> = selections.iter().map(|s| s.pattern.clone()).collect();
        let modules = opened
            .iter()
            .map(|(module, image, _)| (basename(&module.path), image.functions()));
        PlanError::NothingMatches {
            pid,
            patterns: asked.join(", "),
            nearest: locate::pattern::hint(&patterns, modules),
        }
    }
}

/// The verdict on a function of a mapped file, for a recording and for a listing alike.
pub fn accept<'a>(
    module: &MappedModule,
    image: &'a Image,
    function: &locate::Function,
    process: ProcessTraits<'_>,
) -> Result<(Unit, Vec<Piece<'a>>), WhyNot> {
    if module.text.iter().any(|t| t.shared) {
        return Err(WhyNot::NeverTouch(
            "its code is a shared mapping: a change would be seen by others",
        ));
    }
    verdict::accept(image, function, process)
}
