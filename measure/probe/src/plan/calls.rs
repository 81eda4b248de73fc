//! Functions whose calls through pointers are timed where they are made: `calls:PATTERN`.
use super::{Plan, PlanError};
use crate::instrument::capture::parse::Selection;
use crate::locate::Function;
use crate::locate::pattern::Pattern;
use crate::recorder::callees::{Callees, Names, Numbering};
use hopscope_event::{FunctionEntry, FunctionId, callee};
use std::rc::Rc;

/// What became of calls through pointers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointerCalls {
    pub timed: usize,
    pub refused: usize,
}

pub(super) fn calling(selections: &[Selection]) -> impl Iterator<Item = &Pattern> {
    selections.iter().filter(|s| s.calls).map(|s| &s.pattern)
}

impl Plan {
    pub(super) fn count_calls(&mut self, is_new: bool, timed: usize, refused: usize) {
        if is_new {
            self.calls.timed += timed;
            self.calls.refused += refused;
        }
    }

    /// Of all such calls of one function, until their callees are known.
    pub(super) fn calls_id(&mut self, caller: FunctionId, function: &Function) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let id = *self.calls_ids.entry(caller).or_insert(next);
        if id == next {
            let caller = &self.functions[caller.0 as usize];
            self.functions.push(FunctionEntry {
                id,
                module: caller.module,
                name: callee::name(callee::UNKNOWN, &caller.name),
                svma: function.svma,
                size: 0,
                file: None,
                line: None,
            });
            self.captures.push(callee::row(id));
        }
        id
    }

    /// The function that calls is refused in the end.
    pub(super) fn refuse_calls(&mut self, caller: FunctionId, module: &str) {
        let Some(id) = self.calls_ids.get(&caller) else {
            return;
        };
        let entry = &self.functions[id.0 as usize];
        let (name, svma) = (entry.name.clone(), entry.svma);
        let why = "the function that calls is refused".to_owned();
        self.refuse(module, &name, svma, why);
    }

    /// For the recorder: what names the callees of `pid`; `next` is of all processes.
    pub fn callees(&self, pid: i32, next: Rc<Numbering>) -> Option<Callees> {
        let files = self.images.iter();
        let files = files.map(|(path, (image, ix))| (path.clone(), (Some(image.clone()), *ix)));
        let names = || Names::new(pid, files.collect());
        Callees::of(&self.functions, &self.captures, next, names)
    }

    /// Whether anything is left of what was asked for.
    pub(super) fn check_calls(&self, pid: i32, selections: &[Selection]) -> Result<(), PlanError> {
        match calling(selections).next() {
            Some(pattern) if self.calls == PointerCalls::default() => Err(PlanError::NoPointers {
                pid,
                pattern: pattern.to_string(),
            }),
            _ => Ok(()),
        }
    }
}
