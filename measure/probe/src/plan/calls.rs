//! Functions whose calls are timed where they are made: `calls:PATTERN`.
use super::named_calls::Caller;
use super::{Plan, PlanError};
use crate::instrument::body::inlined::{self, Called};
use crate::instrument::body::never;
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::capture::parse::{CallsOf, Selection};
use crate::locate::names::demangle;
use crate::locate::pattern::Pattern;
use crate::locate::{Function, Image};
use hopscope_event::{FunctionEntry, FunctionId, callee};
use std::collections::{BTreeMap, BTreeSet};

/// What became of calls that were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlacesOfCalls {
    pub timed: usize,
    pub refused: usize,
}

/// Which calls of one function are timed.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    pointers: bool,
    named: Vec<Pattern>,
    /// Those that lie there in the same module.
    pub(super) functions: BTreeSet<u64>,
    /// Of other modules, or by a slot of this one's.
    pub(super) imports: BTreeSet<String>,
}

/// By the functions that call, of those in one module.
pub(super) fn of_functions(
    image: &Image,
    path: &str,
    selections: &[Selection],
) -> BTreeMap<u64, Calls> {
    let mut all: BTreeMap<u64, Calls> = BTreeMap::new();
    for selection in selections.iter().filter(|s| s.pattern.matches_module(path)) {
        let Some(of) = &selection.calls else { continue };
        let functions = image.functions().iter();
        for function in functions.filter(|f| selection.pattern.matches(path, f)) {
            let calls = all.entry(function.svma).or_default();
            match of {
                CallsOf::Pointers => calls.pointers = true,
                CallsOf::Named(callee) => calls.named.push(callee.clone()),
            }
        }
    }
    all
}

/// Of one function's calls, each callee once; `None`: those that are not known.
#[derive(Default)]
pub(super) struct ChosenCallees {
    pub(super) names: Vec<Option<String>>,
    pub(super) refused: BTreeMap<String, &'static str>,
}

impl ChosenCallees {
    /// The number of its name, and whether the call is through a pointer.
    pub(super) fn choose(
        &mut self,
        calls: &Calls,
        image: &Image,
        called: Called,
    ) -> Option<(usize, bool)> {
        let name = match called {
            Called::Function(svma) => Some(shown(image.callee_name(svma)?)),
            Called::Word(svma) => image.slot_symbol(svma).map(shown),
            Called::Pointer => None,
        };
        let Some((name, raw)) = name else {
            return calls.pointers.then(|| (self.number(None), true));
        };
        let is_wanted = match called {
            Called::Function(svma) if image.stub_symbol(svma).is_none() => {
                calls.functions.contains(&svma)
            }
            _ => calls.imports.contains(&raw),
        };
        let matches = |p: &Pattern| p.matches_name(&image.path().to_string_lossy(), &name, &raw);
        if !is_wanted && !calls.named.iter().any(matches) {
            return None;
        }
        if let Some(why) = never::reason(&raw) {
            self.refused.insert(name, why);
            return None;
        }
        Some((self.number(Some(name)), false))
    }

    /// Of a number that was given.
    pub(super) fn shown(&self, n: usize) -> &str {
        self.names[n].as_deref().unwrap_or(callee::UNKNOWN)
    }

    /// Whether any of a function's calls would be timed, or refused.
    pub(super) fn are_made(calls: &Calls, image: &Image, unit: &Unit, pieces: &[Piece]) -> bool {
        let mut chosen = ChosenCallees::default();
        inlined::called(unit, pieces).any(|called| chosen.choose(calls, image, called).is_some())
            || !chosen.refused.is_empty()
    }

    fn number(&mut self, name: Option<String>) -> usize {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

impl Plan {
    pub(super) fn count_calls(&mut self, is_new: bool, timed: usize, refused: usize) {
        if is_new {
            self.calls.timed += timed;
            self.calls.refused += refused;
        }
    }

    /// Of all calls of one callee in one function; `None`: until their callees are known.
    pub(super) fn calls_id(
        &mut self,
        caller: FunctionId,
        function: &Function,
        callee: Option<&str>,
    ) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let key = (caller, callee.map(str::to_owned));
        let id = *self.calls_ids.entry(key).or_insert(next);
        if id == next {
            let caller = &self.functions[caller.0 as usize];
            self.functions.push(FunctionEntry {
                id,
                module: caller.module,
                name: callee::name(callee.unwrap_or(callee::UNKNOWN), &caller.name),
                svma: function.svma,
                size: 0,
                file: None,
                line: None,
            });
            if callee.is_none() {
                self.captures.push(callee::row(id));
            }
        }
        id
    }

    pub(super) fn caller(&self, id: FunctionId, function: &Function, name: String) -> Caller {
        (self.functions[id.0 as usize].module, function.svma, name)
    }

    /// The function that calls is refused in the end.
    pub(super) fn refuse_calls(&mut self, caller: FunctionId, module: &str) {
        let theirs = self.calls_ids.iter().filter(|(key, _)| key.0 == caller);
        let theirs: Vec<FunctionId> = theirs.map(|(_, id)| *id).collect();
        for id in theirs {
            let entry = &self.functions[id.0 as usize];
            let (name, svma) = (entry.name.clone(), entry.svma);
            let why = "the function that calls is refused".to_owned();
            self.refuse(module, &name, svma, why);
        }
    }

    /// Of functions that match, and call nothing of what was asked for.
    pub(super) fn nothing_called(pid: i32, selections: &[Selection]) -> PlanError {
        let asked = selections.iter().filter(|s| s.calls.is_some());
        let asked: Vec<String> = asked.map(ToString::to_string).collect();
        PlanError::NoCalls {
            pid,
            asked: asked.join(", "),
        }
    }
}

/// Demangled, and as it is in the symbol table.
fn shown(raw: &str) -> (String, String) {
    (demangle(raw), raw.to_owned())
}
