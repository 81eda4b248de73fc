//! Calls through pointers get the functions that they call: the address lies behind each entry ([`hopscope_event::callee`]).
//!
//! Functions that are called for the first time are numbered and named here, and told to the sink before their records.
mod names;

use super::rows::NewRows;
use names::Module;
pub use names::{Files, Names};

use crate::plan::Plan;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{
    CaptureMethod, Content, FunctionEntry, FunctionId, Record, RecordKind, callee,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// Callees that get a function of their own: code that is made at run time has no end of them.
const CALLEES_MAX: usize = 4096;

/// Addresses, of all processes, that are not looked up again.
const KNOWN_MAX: usize = 1 << 16;

/// Children whose mappings are kept.
const CHILDREN_MAX: usize = 64;

/// Those of one process, and of what it forks.
pub struct Callees {
    /// Of calls whose callees are to be named, by their numbers.
    calls: Vec<Option<FunctionEntry>>,
    /// By process, function that calls, and address.
    known: HashMap<(i32, FunctionId, u64), FunctionId>,
    /// By function that calls, module and name: processes share them.
    functions: HashMap<(FunctionId, ModuleIx, String), FunctionId>,
    names: Names,
    /// Of forked children, which may have other files at the same places.
    of_children: HashMap<i32, Names>,
    /// The next ones, of all processes.
    next: Rc<Numbering>,
    modules: HashMap<String, ModuleIx>,
    new: NewRows,
    /// Since addresses were looked up last.
    later: bool,
    /// Calls beyond [`CALLEES_MAX`].
    unnamed: u64,
}

/// The next numbers of a recording.
#[derive(Debug)]
pub struct Numbering {
    functions: Cell<u32>,
    modules: Cell<u32>,
}

impl Numbering {
    /// Behind what its tables have.
    pub fn after(functions: usize, modules: usize) -> Rc<Numbering> {
        Rc::new(Numbering {
            functions: Cell::new(functions as u32),
            modules: Cell::new(modules as u32),
        })
    }
}

/// The calls of one thread that have not ended, by the stack positions that they show.
#[derive(Debug, Clone, Default)]
pub struct OpenCalls(HashMap<u32, OpenCall>);

#[derive(Debug, Clone, Copy)]
struct OpenCall {
    calls: FunctionId,
    callee: FunctionId,
}

/// More positions are none of calls that are open: what left them by `longjmp` lies there.
const OPEN_MAX: usize = 1 << 16;

impl Callees {
    /// `None`: nothing in the tables has callees to be named.
    pub fn of(
        functions: &[FunctionEntry],
        captures: &[hopscope_event::CaptureEntry],
        next: Rc<Numbering>,
        names: impl FnOnce() -> Names,
    ) -> Option<Callees> {
        let mut calls = vec![None; functions.len()];
        let mut named = captures
            .iter()
            .filter(|c| c.method == CaptureMethod::Callee)
            .peekable();
        named.peek()?;
        for capture in named {
            let n = capture.function.0 as usize;
            if let (Some(place), Some(function)) = (calls.get_mut(n), functions.get(n)) {
                *place = Some(function.clone());
            }
        }
        Some(Callees {
            calls,
            known: HashMap::new(),
            functions: HashMap::new(),
            names: names(),
            of_children: HashMap::new(),
            next,
            modules: HashMap::new(),
            new: NewRows::default(),
            later: false,
            unnamed: 0,
        })
    }

    /// Those of `pid`, as they are planned; `next` is of all processes.
    pub fn of_plan(plan: &Plan, pid: i32, next: Rc<Numbering>) -> Option<Callees> {
        let files = plan.files();
        let files = files.map(|(path, image, ix)| (path.clone(), (Some(image.clone()), ix)));
        let names = || Names::new(pid, files.collect(), plan.loads(pid));
        Callees::of(&plan.functions, &plan.captures, next, names)
    }

    fn is_of_calls(&self, function: FunctionId) -> bool {
        let entry = self.calls.get(function.0 as usize);
        entry.is_some_and(Option::is_some)
    }

    /// Whether the value of this record comes in the slot behind it.
    pub fn awaits_value(&self, record: &Record) -> bool {
        record.kind() == Some(RecordKind::Entry) && self.is_of_calls(record.function())
    }

    /// Writes callees into records of `pid` that follow each other in one ring; `gap`: not those before.
    pub fn name(&mut self, pid: i32, open: &mut OpenCalls, gap: bool, records: &mut [Record]) {
        if gap {
            open.0.clear();
        }
        self.later = true;
        for at in 0..records.len() {
            let record = records[at];
            let calls = record.function();
            if !self.is_of_calls(calls) {
                continue;
            }
            match record.kind() {
                Some(RecordKind::Entry) => {
                    let address = records.get(at + 1).and_then(|next| address(next, calls));
                    let callee = address.and_then(|address| self.callee(pid, calls, address));
                    let Some(callee) = callee else {
                        open.0.remove(&record.rsp_lo32());
                        continue;
                    };
                    records[at] = record.with_function(callee);
                    records[at + 1] = records[at + 1].with_function(callee);
                    if open.0.len() >= OPEN_MAX {
                        open.0.clear();
                    }
                    open.0.insert(record.rsp_lo32(), OpenCall { calls, callee });
                }
                Some(RecordKind::Exit) => {
                    let rsp = record.rsp_lo32();
                    let call = open.0.get(&rsp).copied();
                    if let Some(call) = call.filter(|call| call.calls == calls) {
                        open.0.remove(&rsp);
                        records[at] = record.with_function(call.callee);
                    }
                }
                _ => {}
            }
        }
    }

    fn callee(&mut self, pid: i32, calls: FunctionId, address: u64) -> Option<FunctionId> {
        if let Some(known) = self.known.get(&(pid, calls, address)) {
            return Some(*known);
        }
        if self.functions.len() >= CALLEES_MAX {
            self.unnamed += 1;
            return None;
        }
        let later = std::mem::take(&mut self.later);
        let names = self.names(pid);
        if later {
            names.begin();
        }
        let named = names.of(address);
        let module = match named.module {
            Module::OfRecording(ix) => ix,
            Module::Other { path, build_id } => self.module(path, build_id),
        };
        let key = (calls, module, named.name);
        let id = match self.functions.get(&key) {
            Some(id) => *id,
            None => {
                let id = FunctionId(self.next.functions.get());
                let of_calls = self.calls[calls.0 as usize].as_ref()?;
                self.next.functions.set(id.0 + 1);
                let function = callee::named(of_calls, id, &key.2, module, named.svma);
                self.new.functions.push(function);
                self.new.captures.push(callee::row(id));
                self.functions.insert(key, id);
                id
            }
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert((pid, calls, address), id);
        Some(id)
    }

    /// What names the addresses of a process.
    fn names(&mut self, pid: i32) -> &mut Names {
        if pid == self.names.pid() {
            return &mut self.names;
        }
        if self.of_children.len() >= CHILDREN_MAX {
            self.of_children.clear();
        }
        let child = self.of_children.entry(pid);
        let child = child.or_insert_with(|| self.names.of_child(pid));
        // One that has ended had what its parent has, unless it loaded something.
        match child.is_empty() {
            true => &mut self.names,
            false => child,
        }
    }

    fn module(&mut self, path: String, build_id: String) -> ModuleIx {
        *self.modules.entry(path).or_insert_with_key(|path| {
            let ix = ModuleIx(self.next.modules.get());
            self.next.modules.set(ix.0 + 1);
            self.new.modules.push(ModuleEntry {
                ix,
                path: path.clone(),
                build_id,
            });
            ix
        })
    }

    pub fn take_new(&mut self) -> NewRows {
        std::mem::take(&mut self.new)
    }

    /// What the user should know.
    pub(super) fn note(&self, pid: i32) -> Option<String> {
        (self.unnamed > 0).then(|| {
            format!(
                "process {pid}: {} calls through pointers are of an unknown callee: {CALLEES_MAX} are told apart",
                self.unnamed
            )
        })
    }
}

fn address(record: &Record, calls: FunctionId) -> Option<u64> {
    let value = record
        .value()
        .filter(|value| record.function() == calls && value.capture == callee::CAPTURE)?;
    match value.content {
        Content::Value(address) => Some(callee::address(address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
