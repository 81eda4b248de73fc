//! Functions that are timed where others call them by their names: those that are asked for so (`--method calls`), and those that
//! were named and can have no copy of their own.
use super::Plan;
use super::calls::Calls;
use super::inlined::ByFunction;
use super::interposed::{Method, Slots};
use super::judging::{FoundSlots, Home, judged};
use super::named_calls::Caller;
use super::process::{Opened, Seen};
use crate::instrument::body::Refusal;
use crate::instrument::capture::parse::Selection;
use crate::locate::names::demangle;
use crate::locate::pattern::Pattern;
use crate::locate::{CallGraph, Function, To, basename};
use hopscope_event::table::ModuleIx;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A function that others' calls of are timed, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCallers {
    pub module: String,
    pub name: String,
    pub svma: u64,
    /// Why it is not measured itself; `None`: calls were asked for.
    pub why: Option<String>,
    /// Functions that call it by its name, where that is timed.
    pub callers: usize,
    /// Those whose calls are not: refused, left out, or some of the places are.
    pub not_timed: usize,
    /// Functions that jump to it by its name: these are no calls.
    pub jumps: usize,
    /// Something takes its address: calls through pointers are not seen.
    pub is_pointed_to: bool,
}

/// Of one process.
#[derive(Default)]
pub(super) struct ByName {
    /// By the module that calls, by its functions.
    calls: BTreeMap<usize, BTreeMap<u64, Calls>>,
    functions: HashSet<(ModuleIx, u64)>,
    /// Each, and who calls it.
    found: Vec<(InCallers, Vec<Caller>)>,
}

/// What of a process is looked at.
pub(super) struct Process<'a> {
    pub(super) seen: &'a Seen,
    pub(super) opened: &'a [Opened<'a>],
    pub(super) shadow_stack: bool,
}

#[derive(Default)]
struct Callers {
    /// By module and function; whether through its import.
    calls: BTreeSet<(usize, u64, Option<String>)>,
    jumps: usize,
}

impl ByName {
    pub(super) fn of_module(&mut self, n: usize) -> BTreeMap<u64, Calls> {
        self.calls.remove(&n).unwrap_or_default()
    }

    /// Whether this function's calls are timed instead of it.
    pub(super) fn has(&self, module: ModuleIx, function: &Function) -> bool {
        self.functions.contains(&(module, function.svma))
    }
}

impl Plan {
    /// Which functions are timed in their callers, and in which.
    pub(super) fn timed_by_name<'s>(
        &mut self,
        process: &Process,
        selections: &[Selection],
        left_out: &[Pattern],
        slots: &impl Fn() -> &'s FoundSlots,
    ) -> ByName {
        let mut found = ByName::default();
        if !self.times_in_callers {
            return found;
        }
        for (n, (module, image, ix)) in process.opened.iter().enumerate() {
            let path = module.path.to_string_lossy();
            let asked = selections.iter().filter(|s| self.may_time_calls_of(s));
            let asked: Vec<&Selection> =
                asked.filter(|s| s.pattern.matches_module(&path)).collect();
            if asked.is_empty() {
                continue;
            }
            let tables = process.seen.tables(process.opened, n);
            let traits = process
                .seen
                .traits(n, tables.as_ref(), process.shadow_stack);
            let nothing = ByFunction::default();
            let home = Home::of(process.seen, &process.opened[n], &nothing, traits);
            let functions = image.functions().iter().enumerate();
            for (number, function) in functions {
                let is_asked = asked.iter().any(|s| s.of(&path, function).is_some());
                // What is to be taken along is taken at its entry, or it is refused.
                let takes = |s: &Selection| s.of(&path, function).is_some_and(|c| !c.is_empty());
                if !is_asked || selections.iter().any(takes) {
                    continue;
                }
                if left_out.iter().any(|p| p.matches(&path, function)) {
                    continue;
                }
                let why = match self.method {
                    Method::Calls => None,
                    method => match judged(&home, function, (method, &[]), slots) {
                        // Its calls would be refused for the same reason.
                        Ok(_) | Err(Refusal::NeverTouch(_)) => continue,
                        Err(why) => Some(why.to_string()),
                    },
                };
                let mut callers = callers(process.opened, (n, number, function), slots());
                if why.is_some() {
                    // It has no copy in which its own calls could be timed.
                    callers
                        .calls
                        .retain(|(m, caller, _)| (*m, *caller) != (n, function.svma));
                }
                if callers.calls.is_empty() {
                    if why.is_none() {
                        let base = basename(&module.path);
                        self.refuse(base, &function.name, function.svma, nobody(callers.jumps));
                        found.functions.insert((*ix, function.svma));
                    }
                    continue;
                }
                let address = function.svma.wrapping_add(module.bias);
                let is_read = || slots().as_ref().is_ok_and(|slots| slots.are_read(address));
                let names = || [&function.raw_name].into_iter().chain(&function.aliases);
                let is_in_data = || {
                    let mut images = process.opened.iter().map(|(_, image, _)| image);
                    images.any(|image| names().any(|name| image.is_symbol_pointed_to(name)))
                };
                let one = InCallers {
                    module: basename(&module.path).to_owned(),
                    name: function.name.clone(),
                    svma: function.svma,
                    why,
                    callers: 0,
                    not_timed: 0,
                    jumps: callers.jumps,
                    is_pointed_to: image.calls().nodes[number].address_taken
                        || is_in_data()
                        || is_read(),
                };
                let by = callers.calls.iter().map(|(module, caller, import)| {
                    let (_, image, ix) = &process.opened[*module];
                    let raw = match import {
                        Some(symbol) => symbol,
                        None => image.callee_name(function.svma).unwrap_or_default(),
                    };
                    (*ix, *caller, demangle(raw))
                });
                found.found.push((one, by.collect()));
                found.functions.insert((*ix, function.svma));
                for (module, caller, import) in callers.calls {
                    let of_module = found.calls.entry(module).or_default();
                    let calls = of_module.entry(caller).or_default();
                    match import {
                        Some(symbol) => drop(calls.imports.insert(symbol)),
                        None => drop(calls.functions.insert(function.svma)),
                    }
                }
            }
        }
        found
    }

    /// Once it is known whose calls are timed.
    pub(super) fn say_who_calls(&mut self, by_name: ByName) {
        for (mut one, callers) in by_name.found {
            // Directly and through a slot one may call twice.
            let function = |(module, caller, _): &Caller| (*module, *caller);
            let all: BTreeSet<_> = callers.iter().map(function).collect();
            let is_timed = |call: &&Caller| self.named_calls.timed.contains(*call);
            let mut timed: BTreeSet<_> = callers.iter().filter(is_timed).map(function).collect();
            let in_all = timed.len();
            for call in &callers {
                if !self.named_calls.timed.contains(call) || self.named_calls.refused.contains(call)
                {
                    timed.remove(&function(call));
                }
            }
            if in_all == 0 {
                let why = match all.len() {
                    1 => "the function that calls it by its name is not measured".to_owned(),
                    n => format!("none of the {n} functions that call it by its name is measured"),
                };
                self.refuse(&one.module, &one.name, one.svma, why);
                continue;
            }
            one.callers = timed.len();
            one.not_timed = all.len() - timed.len();
            self.note_in_callers(one);
        }
    }

    /// Of a pattern many functions may be refused: their callers are not changed without being asked for.
    fn may_time_calls_of(&self, selection: &Selection) -> bool {
        let is_of_functions = !selection.inlined
            && selection.calls.is_none()
            && selection.callers.is_none()
            && selection.captures.is_empty();
        match self.method {
            Method::Calls => is_of_functions,
            Method::Auto => is_of_functions && selection.pattern.is_one_name(),
            Method::Jump | Method::Got => false,
        }
    }

    /// Once, however many processes share it.
    fn note_in_callers(&mut self, one: InCallers) {
        if !self.in_callers.contains(&one) {
            self.in_callers.push(one);
        }
    }
}

fn nobody(jumps: usize) -> String {
    match jumps {
        0 => "nothing calls it by its name".to_owned(),
        1 => "nothing calls it by its name; 1 function jumps to it at its end".to_owned(),
        n => format!("nothing calls it by its name; {n} functions jump to it at their end"),
    }
}

/// Functions that call the one with this number in its module, directly or through a slot that leads to it.
fn callers(
    opened: &[Opened],
    (module, number, function): (usize, usize, &Function),
    slots: &FoundSlots,
) -> Callers {
    let mut found = Callers::default();
    let (mapped, image, _) = &opened[module];
    let mut add = |module: usize, graph: &CallGraph, to: To, import: Option<&str>| {
        for (node, caller) in graph.nodes.iter().zip(opened[module].1.functions()) {
            for edge in node.edges.iter().filter(|edge| edge.to == to) {
                match edge.tail {
                    true => found.jumps += 1,
                    false => {
                        let import = import.map(str::to_owned);
                        found.calls.insert((module, caller.svma, import));
                    }
                }
            }
        }
    };
    add(module, image.calls(), To::Function(number as u32), None);
    let Ok(slots) = slots else { return found };
    let address = function.svma.wrapping_add(mapped.bias);
    for (module, slot) in slots.that_lead_to(address) {
        let image = &opened[module].1;
        let Some(symbol) = image.slot_symbol(slot) else {
            continue;
        };
        let graph = image.calls();
        let known = graph.imports.iter().position(|name| name == symbol);
        if let Some(n) = known {
            add(module, graph, To::Import(n as u32), Some(symbol));
        }
    }
    found
}

impl Slots {
    /// Whether code of another module, or of this one, takes the function's address from one.
    fn are_read(&self, function: u64) -> bool {
        let slots = self.by_function.get(&function).into_iter().flatten();
        let mut reads = slots.map(|slot| (slot, self.images[slot.module].slot_reads()));
        reads.any(|(slot, reads)| !reads.is_only_called(&slot.of_file))
    }

    /// The modules of slots, by number, and where these lie in their files.
    fn that_lead_to(&self, function: u64) -> BTreeSet<(usize, u64)> {
        let slots = self.by_function.get(&function).into_iter().flatten();
        slots.map(|slot| (slot.module, slot.of_file.svma)).collect()
    }
}
