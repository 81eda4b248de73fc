//! From patterns to what will be measured: one table of functions for the whole recording, and
//! for each process the units to be moved.
mod inlined;
mod interposed;
mod item;
mod noted;

use crate::instrument::body::hazards::Hazards;
use crate::instrument::body::inlined::Crossings;
use crate::instrument::body::sensitive;
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::body::unwinding::Unwinding as MayUnwind;
use crate::instrument::body::verdict::{self, ProcessTraits};
use crate::instrument::body::{NoSlot, NoTables, Refusal as WhyNot};
use crate::instrument::capture::parse::{Selection, Wanted};
use crate::instrument::resolve::{CannotCapture, Policy, Subject, resolve};
use crate::live::asked::{self, Asked};
use crate::locate::module_names::ModuleNames;
use crate::locate::pattern::Pattern;
use crate::locate::signature::Debug;
use crate::locate::{self, Image, Lines, LocateError, MappedModule, basename};
use crate::new_modules::{Watch, mapped_code_kb};
use crate::progress::{self, Phase};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{CaptureEntry, FunctionEntry, FunctionId, Refusal};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use inlined::ByFunction;
use interposed::Slots;
pub use inlined::InlinedPlaces;
pub use interposed::Method;
use item::Frames;
pub use item::Item;

/// The recording's tables, filled process by process.
#[derive(Default)]
pub struct Plan {
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    pub captures: Vec<CaptureEntry>,
    /// Captures that were requested of functions measured without them.
    pub not_captured: Vec<(FunctionId, CannotCapture)>,
    /// Places where functions were inlined that are timed.
    pub inlined: InlinedPlaces,
    /// `--assume-no-exceptions`: no exception and no thread exit unwinds measured functions.
    pub assume_no_exceptions: bool,
    /// How calls are led into copies.
    pub method: Method,
    /// Copies have unwind tables also where nothing in the process asks for them.
    pub all_frames: bool,
    watches: HashMap<i32, Watch>,
    switchers: HashSet<i32>,
    images: HashMap<PathBuf, (Arc<Image>, ModuleIx)>,
    /// Also by name: of one and the same function other calls may be measured in another process.
    ids: HashMap<(ModuleIx, u64, String), FunctionId>,
    inlined_ids: HashMap<(FunctionId, String), FunctionId>,
    inlined_seen: HashSet<FunctionId>,
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
    #[error("process {pid}: -x excludes all of the {functions} functions that match")]
    AllExcluded { pid: i32, functions: usize },
    #[error(
        "process {pid}: none of the {functions} functions that match is called from there through a GOT slot (calls within a module, and through pointers, are not)"
    )]
    NoneCalled { pid: i32, functions: usize },
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
        let code_kb = mapped_code_kb(pid);
        let modules = locate::mapped_modules(pid)?;
        let (mut opened, mut unread) = (Vec::new(), Vec::new());
        progress::begin(Phase::Files, modules.len());
        for module in &modules {
            progress::step(1);
            match self.image(pid, module) {
                Ok((image, ix)) => opened.push((module, image, ix)),
                Err(e) => {
                    self.refuse_module(module, &e);
                    unread.push(basename(&module.path));
                }
            }
        }
        sensitive::close(opened.iter().map(|(_, image, _)| &**image));
        let images: Vec<&Image> = opened.iter().map(|(_, image, _)| &**image).collect();
        if !unread.is_empty() || images.iter().any(|i| i.switches_stacks()) {
            self.switchers.insert(pid);
        }
        let mut asked = Err(NoTables::default());
        let mut walked = images.iter().any(|i| walks(i) || i.is_unwinder());
        let unwinding = match self.assume_no_exceptions {
            true => None,
            false => {
                let mut hazards = Hazards::of(images.iter().copied());
                unread.iter().for_each(|name| hazards.add_unread(name));
                let unwinding = MayUnwind::of(&images, &hazards);
                asked = match unread.first() {
                    Some(name) => Err(format!("{name} cannot be read")),
                    None => self.asked(&opened),
                }
                .map_err(|why| NoTables::because(&why));
                walked |= hazards.unwinds();
                let hazards_unwind = hazards.unwinds();
                let names = unread.iter().map(|name| (*name).to_owned()).collect();
                let kept = opened.iter().map(|(_, image, _)| image.clone()).collect();
                self.watches.insert(
                    pid,
                    Watch::new(pid, &modules, kept, names, hazards, code_kb)
                        .answered(hazards_unwind && asked.is_ok()),
                );
                Some(unwinding)
            }
        };
        let names = ModuleNames::of_process(pid, &modules);
        let resolved: Result<Vec<_>, _> = selections.iter().map(|s| s.resolved(&names)).collect();
        let (selections, left_out) = (&resolved?[..], names.resolve_all(&self.excluded)?);
        if selections.iter().any(|s| s.inlined) {
            progress::begin(Phase::Inlined, opened.len());
        }
        let within: Vec<ByFunction> = opened
            .iter()
            .map(|(module, image, ix)| {
                let path = module.path.to_string_lossy();
                let found = self.inlined_in(image, *ix, &path, selections, &left_out);
                progress::step(1);
                found
            })
            .collect();
        let slots = OnceCell::new();
        let slots = || slots.get_or_init(|| Slots::of(pid, &opened));
        let mut items = Vec::new();
        let functions = images.iter().map(|image| image.functions().len());
        progress::begin(Phase::Functions, functions.sum());
        let (mut matched, mut excluded, mut not_called) = (0usize, 0usize, 0usize);
        // What is asked for by a slot is known by the slot's name, too: what an IFUNC was resolved to has no other.
        let by_slots = self.method == Method::Got || selections.iter().any(|s| s.callers.is_some());
        for (n, (module, image, ix)) in opened.iter().enumerate() {
            let (base, path) = (basename(&module.path), module.path.to_string_lossy());
            let tables = asked.as_ref().map_err(NoTables::clone).and_then(|_| {
                let tables = image.unwind_tables(module.bias);
                tables.map_err(|why| NoTables::because(&why.to_string()))
            });
            let process = ProcessTraits {
                unwinding: unwinding.as_ref().map(|u| u.module(n)),
                tables: tables.as_ref().ok(),
                no_tables: tables.as_ref().err(),
                assume_no_exceptions: self.assume_no_exceptions,
                shadow_stack,
                entry_stays: false,
            };
            let within = &within[n];
            for function in image.functions() {
                progress::step(1);
                let address = function.svma.wrapping_add(module.bias);
                let named = match by_slots.then(&slots) {
                    Some(Ok(slots)) => slots.named(address, function),
                    _ => None,
                };
                let function = named.as_ref().unwrap_or(function);
                let wanted = wanted(selections, &path, function);
                let around = within.of(function);
                // Who has chosen functions in it is measured, too.
                let Some(wanted) = wanted.or_else(|| around.map(|_| Vec::new())) else {
                    continue;
                };
                if left_out.iter().any(|p| p.matches(&path, function)) {
                    if self.left_out.insert((*ix, function.svma)) {
                        self.inlined.left_out += around.map_or(0, |a| a.places.len());
                    }
                    excluded += 1;
                    continue;
                }
                matched += 1;
                let callers = match around {
                    None => callers(selections, &path, function),
                    Some(_) => Vec::new(),
                };
                let judge = |entry_stays| {
                    let process = ProcessTraits {
                        entry_stays,
                        ..process
                    };
                    accept(module, image, function, process)
                };
                let led = || match slots() {
                    Ok(slots) => slots.to(address, &callers),
                    Err(why) => Err(NoSlot::Unknown(why.to_string().into())),
                };
                let method = (self.method, !callers.is_empty());
                match interposed::choose(method, || judge(false), || judge(true), led) {
                    Ok(((unit, pieces), led)) => {
                        let name = match &led {
                            Some(led) => {
                                self.refuse_callers(led, base, function);
                                led.name(&function.name)
                            }
                            None => function.name.clone(),
                        };
                        let id = self.id(image, *ix, function, name);
                        let captures = match wanted.is_empty() {
                            true => Vec::new(),
                            false => {
                                let debug = self.debug(image, *ix);
                                let (unit, pieces) = (&unit, &pieces[..]);
                                let subject = Subject {
                                    unit,
                                    pieces,
                                    debug: debug.as_ref(),
                                };
                                let resolved = resolve(subject, &wanted, policy);
                                self.debug.insert(*ix, debug);
                                self.captured(id, resolved)
                            }
                        };
                        let inlined = match around {
                            Some(around) => {
                                let tables = (&**image, tables.as_ref().ok());
                                let body = (&unit, &pieces[..]);
                                self.timed_in_place((id, function), base, body, around, tables)
                            }
                            None => Crossings::default(),
                        };
                        items.push(Item {
                            captures,
                            inlined,
                            id,
                            slots: led.map(|led| led.slots),
                            image: image.clone(),
                            ranges: unit.pieces.iter().map(|p| p.range.clone()).collect(),
                            red_zone_at_entry: unit.red_zone_at_entry,
                            bias: module.bias,
                            module: module.avma_range.clone(),
                            frames: self.frames(
                                tables.as_ref().ok().and(asked.as_ref().ok()),
                                verdict::may_be_unwound(function, process),
                                walked,
                            ),
                        });
                    }
                    Err(WhyNot::NoSlot(NoSlot::Nobody)) if !callers.is_empty() => {
                        matched -= 1;
                        not_called += 1;
                    }
                    Err(why) => {
                        let (name, svma) = (&function.name, function.svma);
                        if self.refuse(base, name, svma, why.to_string()) {
                            self.inlined.refused += around.map_or(0, |a| a.places.len());
                        }
                    }
                }
            }
        }
        self.check_inlined(pid, selections, &opened)?;
        if matched == 0 && excluded > 0 {
            return Err(PlanError::AllExcluded {
                pid,
                functions: excluded,
            });
        }
        if matched == 0 && not_called > 0 {
            return Err(PlanError::NoneCalled {
                pid,
                functions: not_called,
            });
        }
        if matched == 0 {
            return Err(self.nothing(pid, selections, &opened));
        }
        self.check_captured(pid, selections)?;
        Ok(items)
    }

    /// Of a function; `asked`: where its module has tables and unwinders can be given those of copies.
    fn frames(&self, asked: Option<&Arc<[Asked]>>, must: bool, walked: bool) -> Option<Frames> {
        match asked {
            Some(asked) if must || walked || self.all_frames => Some(Frames {
                asked: asked.clone(),
                must,
                walked,
            }),
            None if self.all_frames => Some(Frames {
                asked: Arc::new([]),
                must: false,
                walked: false,
            }),
            _ => None,
        }
    }

    /// Where the unwinders of a process ask for tables, if all of them do.
    fn asked(&self, opened: &[Opened]) -> Result<Arc<[Asked]>, String> {
        let images: Vec<&Image> = opened.iter().map(|(_, image, _)| &**image).collect();
        let asked = asked::sites(&images)?.into_iter().map(|(m, range)| {
            let (module, image, _) = &opened[m];
            Asked::new(image.clone(), range, module.bias, module.avma_range.clone())
        });
        Ok(asked.collect())
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

/// What is to be captured of a function that some selection matches, each once.
fn wanted(
    selections: &[Selection],
    module: &str,
    function: &locate::Function,
) -> Option<Vec<Wanted>> {
    let matching = || selections.iter().filter_map(|s| s.of(module, function));
    matching().next()?;
    let mut wanted: Vec<Wanted> = Vec::new();
    for one in matching().flatten() {
        if !wanted.iter().any(|w| w.what == one.what) {
            wanted.push(one.clone());
        }
    }
    Some(wanted)
}

/// The modules whose calls of a function are measured; none where all are.
fn callers<'s>(
    selections: &'s [Selection],
    module: &str,
    function: &locate::Function,
) -> Vec<&'s Pattern> {
    let matching = selections.iter().filter(|s| s.of(module, function).is_some());
    let callers: Option<Vec<_>> = matching.map(|s| s.callers.as_ref()).collect();
    callers.unwrap_or_default()
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

/// Whether a program looks at its own stack (`backtrace`, and what `std::stacktrace` and Rust's panic messages use).
fn walks(image: &Image) -> bool {
    const WALKERS: [&str; 2] = ["_Unwind_Backtrace", "backtrace"];
    let mut imports = image.imports();
    image.unwinds().is_program() && imports.any(|name| WALKERS.contains(&locate::bare(name)))
}

type Opened<'a> = (&'a MappedModule, Arc<Image>, ModuleIx);
