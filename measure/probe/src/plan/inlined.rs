//! Functions that were inlined into others, and are timed there: `inlined:PATTERN`.
use super::calls::{self, Calls, ChosenCallees};
use super::{Opened, Plan, PlanError};
use crate::instrument::body::inlined::{self, Asked, Counts, Crossings};
use crate::instrument::body::never;
use crate::instrument::body::unit::{Op, Piece, Unit};
use crate::instrument::capture::parse::Selection;
use crate::locate::pattern::Pattern;
use crate::locate::{self, FrameRules, Function, Image, Inlined, LineRows, basename};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, callee};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What became of the places where chosen functions were inlined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InlinedPlaces {
    pub timed: usize,
    /// Alone, or with the function that they are in.
    pub refused: usize,
    /// With the function that they are in, which `-x` excludes.
    pub left_out: usize,
    /// Instructions of those that are timed.
    pub counts: Counts,
    /// Functions of places most instructions of which lie apart: not all of their calls may be seen.
    pub mostly_apart: BTreeSet<String>,
    /// Functions one call of which may count as several.
    pub splits: BTreeSet<String>,
    /// Functions several calls of which may count as one.
    pub joins: BTreeSet<String>,
    /// Chosen, in code that belongs to no function.
    pub homeless: usize,
    /// A file had more than are looked at.
    pub more: bool,
}

/// What is timed within one function.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// What was inlined into it, the surrounding one before those within it.
    pub(super) places: &'a [Inlined],
    /// What it calls, if that is asked for.
    pub(super) calls: Option<&'a Calls>,
    rules: &'a FrameRules,
    lines: &'a LineRows,
}

/// Of one module, by the address of the function that they are in.
#[derive(Default)]
pub(super) struct ByFunction {
    places: BTreeMap<u64, Vec<Inlined>>,
    calls: BTreeMap<u64, Calls>,
    rules: FrameRules,
    lines: LineRows,
}

impl ByFunction {
    /// What functions call, where that is asked for; `by_name`: of those whose calls are timed instead of them.
    pub(super) fn add_calls(
        &mut self,
        image: &Image,
        path: &str,
        selections: &[Selection],
        by_name: BTreeMap<u64, Calls>,
    ) {
        self.calls = calls::of_functions(image, path, selections);
        for (
            caller,
            Calls {
                functions, imports, ..
            },
        ) in by_name
        {
            let calls = self.calls.entry(caller).or_default();
            calls.functions.extend(functions);
            calls.imports.extend(imports);
        }
        if self.calls.is_empty() {
            return;
        }
        let timed = |function: &u64| {
            self.calls.contains_key(function) || self.places.contains_key(function)
        };
        let homes = homes(image.functions()).into_iter();
        let ranges = homes.filter(|(_, function)| timed(function));
        let ranges: Vec<Range<u64>> = ranges.map(|(range, _)| range).collect();
        self.rules = image.frame_rules(&ranges);
    }

    pub(super) fn of(&self, function: &Function) -> Option<Around<'_>> {
        let places = self.places.get(&function.svma);
        let calls = self.calls.get(&function.svma);
        (places.is_some() || calls.is_some()).then(|| Around {
            places: places.map_or(&[], Vec::as_slice),
            calls,
            rules: &self.rules,
            lines: &self.lines,
        })
    }
}

impl Plan {
    pub(super) fn inlined_in(
        &mut self,
        image: &Image,
        ix: ModuleIx,
        path: &str,
        selections: &[Selection],
        excluded: &[Pattern],
    ) -> ByFunction {
        let mut by_function = ByFunction::default();
        let patterns = selections.iter().filter(|s| s.inlined).map(|s| &s.pattern);
        let patterns: Vec<&Pattern> = patterns.filter(|p| p.matches_module(path)).collect();
        if patterns.is_empty() {
            return by_function;
        }
        let debug = self.debug(image, ix);
        let found = debug
            .as_ref()
            .map(|debug| debug.inlined(path, &patterns))
            .unwrap_or_default();
        self.inlined.more |= found.more;
        let all = found.places.into_iter();
        let (all, left_out): (Vec<Inlined>, Vec<Inlined>) = all.partition(|one| {
            !excluded
                .iter()
                .any(|p| p.matches_name(path, &one.name, &one.name))
        });
        self.inlined.left_out += left_out.len();
        let mut ranges: Vec<Range<u64>> = all.iter().flat_map(|i| i.ranges.clone()).collect();
        ranges.sort_by_key(|r| r.start);
        by_function.rules = image.frame_rules(&ranges);
        let homes = homes(image.functions());
        for one in all {
            let after = homes.partition_point(|(range, _)| range.start <= one.entry);
            let home = after.checked_sub(1).map(|n| &homes[n]);
            match home.filter(|(range, _)| range.contains(&one.entry)) {
                Some((_, function)) => by_function.places.entry(*function).or_default().push(one),
                None => self.inlined.homeless += 1,
            }
        }
        let of_any = |(_, function): &&(Range<u64>, u64)| by_function.places.contains_key(function);
        let ranges = homes.iter().filter(of_any).map(|(range, _)| range.clone());
        let ranges: Vec<Range<u64>> = ranges.collect();
        by_function.lines = debug
            .as_ref()
            .map(|debug| debug.line_rows(&found.units, &ranges))
            .unwrap_or_default();
        self.debug.insert(ix, debug);
        by_function
    }

    /// Notes them as functions of their own, and those that cannot be timed as refused.
    pub(super) fn timed_in_place(
        &mut self,
        (id, function): (FunctionId, &Function),
        module: &str,
        (unit, pieces): (&Unit, &[Piece]),
        around: Around<'_>,
        (image, tables): (&Image, Option<&hopscope_unwind::Module>),
    ) -> Crossings {
        let Around {
            places,
            calls,
            rules,
            lines,
        } = around;
        let ranges: Vec<Range<u64>> = unit.pieces.iter().map(|p| p.range.clone()).collect();
        // Without tables its copy has none, and no exception passes it.
        let landings = tables.and_then(|tables| tables.landings(&ranges).ok());
        let landings = landings.unwrap_or_default();
        let callees = RefCell::new(ChosenCallees::default());
        let choose =
            |called| calls.and_then(|calls| callees.borrow_mut().choose(calls, image, called));
        let asked = Asked {
            inlined: places,
            calls: calls.is_some().then_some(&choose),
        };
        let found = inlined::find(unit, pieces, asked, rules, lines, &landings);
        let callees = callees.into_inner();
        let is_new = self.inlined_seen.insert(id);
        if is_new {
            self.inlined.refused += found.refused.len();
            self.inlined.timed += found.timed.len();
            for (n, counts) in &found.timed {
                self.inlined.counts.add(*counts);
                if counts.apart > counts.own {
                    let name = name_of(&places[*n], function);
                    self.inlined.mostly_apart.insert(name);
                }
            }
        }
        for (n, doubt) in &found.doubts {
            let name = || name_of(&places[*n], function);
            if doubt.splits {
                self.inlined.splits.insert(name());
            }
            if doubt.joins {
                self.inlined.joins.insert(name());
            }
        }
        for (n, why) in &found.refused {
            let place = &places[*n];
            let name = name_of(place, function);
            self.refuse(module, &name, place.entry, why.to_string());
        }
        let timed = found.crossings.brackets().len();
        let refused = found.calls_refused.len() + callees.refused.len();
        self.count_calls(is_new, timed, refused);
        for one in &found.calls_refused {
            let name = callees.shown(one.n);
            let caller = self.caller(id, function, name.to_owned());
            self.named_calls.refused.insert(caller);
            let name = callee::name(name, &function.name);
            self.refuse(module, &name, one.call, one.why.to_string());
        }
        for (name, why) in &callees.refused {
            let name = callee::name(name, &function.name);
            self.refuse(module, &name, function.svma, (*why).to_owned());
        }
        let mut ids = vec![None; places.len()];
        for (n, _) in found.timed {
            ids[n] = Some(self.inlined_id(id, function, &places[n]));
        }
        let brackets = found.crossings.brackets();
        for (n, callee) in callees.names.iter().enumerate() {
            let is_timed = brackets.iter().any(|b| b.function == places.len() + n);
            if let (true, Some(name)) = (is_timed, callee) {
                let caller = self.caller(id, function, name.clone());
                self.named_calls.timed.insert(caller);
            }
            let calls = || self.calls_id(id, function, callee.as_deref());
            ids.push(is_timed.then(calls));
        }
        let mut crossings = found.crossings.numbered(|n| ids[n]);
        crossings.stays = returns_twice(image, unit);
        crossings
    }

    /// One for all places of it in one function.
    fn inlined_id(
        &mut self,
        around: FunctionId,
        function: &Function,
        place: &Inlined,
    ) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let key = (around, place.name.clone());
        let id = *self.inlined_ids.entry(key).or_insert(next);
        if id == next {
            let module = self.functions[around.0 as usize].module;
            let bytes = place.ranges.iter().map(|r| r.end - r.start);
            self.functions.push(FunctionEntry {
                id,
                module,
                name: name_of(place, function),
                svma: place.entry,
                size: bytes.sum(),
                file: None,
                line: None,
            });
        }
        id
    }

    /// The function that they are in is refused in the end.
    pub fn refuse_within(&mut self, around: FunctionId, module: &str) {
        let theirs = self.inlined_ids.iter().filter(|(key, _)| key.0 == around);
        let theirs: Vec<FunctionId> = theirs.map(|(_, id)| *id).collect();
        for id in theirs {
            let entry = &self.functions[id.0 as usize];
            let (name, svma) = (entry.name.clone(), entry.svma);
            let why = "the function that it is inlined in is refused".to_owned();
            self.refuse(module, &name, svma, why);
        }
        self.refuse_calls(around, module);
    }

    pub(super) fn check_inlined(
        &self,
        pid: i32,
        selections: &[Selection],
        opened: &[Opened],
    ) -> Result<(), PlanError> {
        let Some(asked) = selections.iter().find(|s| s.inlined) else {
            return Ok(());
        };
        let places = &self.inlined;
        if places.timed + places.refused + places.left_out > 0 {
            return Ok(());
        }
        let mut modules = opened
            .iter()
            .filter(|(module, ..)| asked.pattern.matches_module(&module.path.to_string_lossy()));
        let known = modules.find(|(_, _, ix)| self.debug.get(ix).is_some_and(Option::is_some));
        let why = match known {
            Some((module, ..)) => format!(
                "{} has debugging information, in which no such function is inlined (captures cannot be taken of inlined functions, split files (.dwo) are not read)",
                basename(&module.path)
            ),
            None => "no module has debugging information (compile with -g, or install its debug package)".to_owned(),
        };
        Err(PlanError::NothingInlined {
            pid,
            pattern: asked.to_string(),
            why,
        })
    }
}

/// As it is shown: its time is a part of the function's that it is in.
fn name_of(place: &Inlined, function: &Function) -> String {
    format!("{} [inlined in {}]", place.name, function.name)
}

/// Where the code of functions lies, ascending, and whose it is.
fn homes(functions: &[locate::Function]) -> Vec<(Range<u64>, u64)> {
    let all = functions.iter();
    let mut homes: Vec<_> = all
        .flat_map(|f| f.ranges().into_iter().map(|range| (range, f.svma)))
        .collect();
    homes.sort_by_key(|(range, _)| range.start);
    homes
}

/// Whether it calls what notes where it runs.
fn returns_twice(image: &Image, unit: &Unit) -> bool {
    let notes = |name: &str| never::reason(name) == Some(never::TWICE);
    unit.insns().any(|insn| match insn.op {
        Op::Call { target } | Op::Jump { target } | Op::JumpIf { target, .. } => {
            let named = [image.callee_name(target), image.stub_symbol(target)];
            named.into_iter().flatten().any(notes)
        }
        Op::RipRelative { target, .. } | Op::IndirectTail { target, .. } => {
            image.slot_symbol(target).is_some_and(notes)
        }
        _ => false,
    })
}
