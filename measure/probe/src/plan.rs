//! From patterns to what will be measured: one table of functions for the whole recording, and
//! for each process the units to be moved.
use crate::instrument::body::hazards::Hazards;
use crate::instrument::body::sensitive;
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::body::unwinding::Unwinding as MayUnwind;
use crate::instrument::body::verdict::{self, ProcessTraits};
use crate::instrument::body::{NoTables, Refusal as WhyNot};
use crate::instrument::capture::Capture;
use crate::instrument::capture::parse::{Selection, Wanted};
use crate::instrument::resolve::{CannotCapture, Policy, Subject, resolve};
use crate::live::asked::{self, Asked};
use crate::live::build::{Selected, Unwind};
use crate::locate::module_names::ModuleNames;
use crate::locate::pattern::Pattern;
use crate::locate::signature::Debug;
use crate::locate::{self, Image, Lines, LocateError, MappedModule, basename};
use crate::new_modules::{Watch, mapped_code_kb};
use crate::progress::{self, Phase};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{CaptureEntry, FunctionEntry, FunctionId, Refusal};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The recording's tables, filled process by process.
#[derive(Default)]
pub struct Plan {
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    pub captures: Vec<CaptureEntry>,
    /// Captures that were requested of functions measured without them.
    pub not_captured: Vec<(FunctionId, CannotCapture)>,
    /// `--assume-no-exceptions`: no exception and no thread exit unwinds measured functions.
    pub assume_no_exceptions: bool,
    /// Copies have unwind tables also where nothing in the process asks for them.
    pub all_frames: bool,
    watches: HashMap<i32, Watch>,
    switchers: HashSet<i32>,
    images: HashMap<PathBuf, (Arc<Image>, ModuleIx)>,
    ids: HashMap<(ModuleIx, u64), FunctionId>,
    lines: HashMap<ModuleIx, Option<Lines>>,
    debug: HashMap<ModuleIx, Option<Debug>>,
    refused: HashSet<(String, u64)>,
    excluded: Vec<Pattern>,
    left_out: HashSet<(ModuleIx, u64)>,
}

/// One accepted function of one process.
pub struct Item {
    pub id: FunctionId,
    image: Arc<Image>,
    /// Of its pieces in the file; the first one begins with its entry.
    ranges: Box<[Range<u64>]>,
    red_zone_at_entry: bool,
    bias: u64,
    module: Range<u64>,
    captures: Vec<Capture>,
    frames: Option<Frames>,
}

/// Its copy has unwind tables.
struct Frames {
    /// Where the unwinders of its process ask for tables.
    asked: Arc<[Asked]>,
    must: bool,
    walked: bool,
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
    #[error("process {pid}: -x excludes all of the {functions} functions that match")]
    AllExcluded { pid: i32, functions: usize },
    #[error("process {pid}: {function}: cannot capture {why}")]
    NothingCaptured {
        pid: i32,
        function: String,
        why: CannotCapture,
    },
}

impl Item {
    /// Exceptions may pass through its frame.
    pub fn may_be_unwound(&self) -> bool {
        self.frames.as_ref().is_some_and(|f| f.must)
    }

    pub fn selected(&self) -> Selected<'_> {
        let pieces = self.ranges.iter().map(|range| {
            let bytes = self
                .image
                .bytes(range.clone())
                .expect("was decoded from there");
            Piece {
                svma: range.start,
                bytes,
            }
        });
        Selected {
            id: self.id,
            red_zone_at_entry: self.red_zone_at_entry,
            pieces: pieces.collect(),
            bias: self.bias,
            module: self.module.clone(),
            captures: &self.captures,
            unwind: self.frames.as_ref().map(|frames| Unwind {
                image: &self.image,
                asked: &frames.asked,
                must: frames.must,
                walked: frames.walked,
            }),
        }
    }
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
        let mut walked = images.iter().any(|image| walks(image));
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
        let mut items = Vec::new();
        let functions = images.iter().map(|image| image.functions().len());
        progress::begin(Phase::Functions, functions.sum());
        let (mut matched, mut excluded) = (0usize, 0usize);
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
            };
            for function in image.functions() {
                progress::step(1);
                let Some(wanted) = wanted(selections, &path, function) else {
                    continue;
                };
                if left_out.iter().any(|p| p.matches(&path, function)) {
                    self.left_out.insert((*ix, function.svma));
                    excluded += 1;
                    continue;
                }
                matched += 1;
                match accept(module, image, function, process) {
                    Ok((unit, pieces)) => {
                        let id = self.id(image, *ix, function);
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
                        items.push(Item {
                            captures,
                            id,
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
                    Err(why) => self.refuse(base, &function.name, function.svma, why.to_string()),
                }
            }
        }
        if matched == 0 && excluded > 0 {
            return Err(PlanError::AllExcluded {
                pid,
                functions: excluded,
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

    /// Taken out, to be put back: reading it borrows nothing of the plan.
    fn debug(&mut self, image: &Image, module: ModuleIx) -> Option<Debug> {
        match self.debug.remove(&module) {
            Some(known) => known,
            None => image.debug(),
        }
    }

    /// Notes the captures of a function once, however many processes share it: where another process
    /// can only be captured from in another way, it is not.
    fn captured(
        &mut self,
        id: FunctionId,
        (captures, refused): (Vec<Capture>, Vec<CannotCapture>),
    ) -> Vec<Capture> {
        let known = self.captures.iter().any(|row| row.function == id);
        let mut taken = Vec::new();
        let mut refused: Vec<_> = refused;
        for capture in captures.into_iter().map(|c| c.of(id)) {
            match known && !self.captures.contains(&capture.entry) {
                true => refused.push(CannotCapture {
                    capture: capture.entry.name,
                    why: "in another process it is captured in another way".into(),
                }),
                false => taken.push(capture),
            }
        }
        if !known {
            self.captures.extend(taken.iter().map(|c| c.entry.clone()));
        }
        for why in refused {
            if !self.not_captured.contains(&(id, why.clone())) {
                self.not_captured.push((id, why));
            }
        }
        taken
    }

    fn check_captured(&self, pid: i32, selections: &[Selection]) -> Result<(), PlanError> {
        for wanted in selections.iter().flat_map(|s| &s.captures) {
            let name = wanted.name();
            if self.captures.iter().any(|row| row.name == name) {
                continue;
            }
            let refused = self
                .not_captured
                .iter()
                .find(|(_, w)| w.capture == wanted.text);
            if let Some((function, why)) = refused {
                return Err(PlanError::NothingCaptured {
                    pid,
                    function: self.functions[function.0 as usize].name.clone(),
                    why: why.clone(),
                });
            }
        }
        Ok(())
    }

    fn image(
        &mut self,
        pid: i32,
        module: &MappedModule,
    ) -> Result<(Arc<Image>, ModuleIx), LocateError> {
        if let Some((image, ix)) = self.images.get(&module.path)
            && image.is_mapped_by(pid, module)
        {
            return Ok((image.clone(), *ix));
        }
        let image = Arc::new(Image::open_mapped(pid, module)?);
        let ix = ModuleIx(self.modules.len() as u32);
        self.modules.push(ModuleEntry {
            ix,
            path: module.path.display().to_string(),
            build_id: image.build_id().to_owned(),
        });
        self.images.insert(module.path.clone(), (image.clone(), ix));
        Ok((image, ix))
    }

    fn id(&mut self, image: &Image, module: ModuleIx, function: &locate::Function) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let id = *self.ids.entry((module, function.svma)).or_insert(next);
        if id == next {
            let lines = self.lines.entry(module).or_insert_with(|| image.lines());
            let (file, line) = lines
                .as_ref()
                .and_then(|l| l.find(function.svma, function.size))
                .unzip();
            self.functions.push(FunctionEntry {
                id,
                module,
                name: function.name.clone(),
                svma: function.svma,
                size: function.size,
                file,
                line,
            });
        }
        id
    }

    fn refuse_module(&mut self, module: &MappedModule, why: &LocateError) {
        self.refuse(basename(&module.path), "*", 0, why.to_string());
    }

    /// Notes a refusal once, however many processes share it.
    pub fn refuse(&mut self, module: &str, name: &str, svma: u64, reason: String) {
        if self.refused.insert((module.to_owned(), svma)) {
            let (module, name) = (module.to_owned(), name.to_owned());
            self.refusals.push(Refusal {
                module,
                name,
                svma,
                reason,
            });
        }
    }

    fn nothing(&self, pid: i32, selections: &[Selection], opened: &[Opened]) -> PlanError {
        let patterns: Vec<Pattern> = selections.iter().map(|s| s.pattern.clone()).collect();
        let modules = opened
            .iter()
            .map(|(module, image, _)| (basename(&module.path), image.functions()));
        PlanError::NothingMatches {
            pid,
            patterns: patterns
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
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
