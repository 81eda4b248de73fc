//! Modules that a target loads while it is recorded. One that raises exceptions, in a program where
//! nobody did, may let them pass through measured functions: the recording then ends.
use crate::instrument::body::hazards::Hazards;
use crate::instrument::body::unwinders;
use crate::locate::basename;
use crate::locate::{self, Image, LocateError};
use hopscope_process::procfs;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What was judged safe at the attach, and on what grounds.
#[derive(Clone)]
pub struct Watch {
    pid: i32,
    images: Vec<Arc<Image>>,
    hazards: Hazards,
    /// Unwinders are given the tables of copies.
    answered: bool,
    /// It was judged as if what is loaded later raised exceptions.
    expected: bool,
    /// Path and place of each module that is known.
    known: HashSet<(PathBuf, u64)>,
    /// Kilobytes of code mapped besides the program's own; it changes when a module is loaded.
    code_kb: Option<u64>,
    unread: Unread,
    /// Of modules that could not be read, at the attach or since.
    unread_names: Vec<String>,
}

/// Modules that were not examined.
#[derive(Debug, Clone, Default)]
struct Unread {
    modules: u64,
    /// Of the first of them.
    why: String,
    /// Looks in a row that found no memory map to read, and why the last one did not.
    looks: u64,
    looks_why: String,
}

/// Code mapped by `pid`, in KiB (`VmLib` of proc_pid_status(5)); cheap beside reading the maps.
pub fn mapped_code_kb(pid: i32) -> Option<u64> {
    let status = procfs::text(&format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmLib:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

impl Watch {
    /// `code_kb`: read before the modules were.
    pub fn new(
        pid: i32,
        modules: &[locate::MappedModule],
        images: Vec<Arc<Image>>,
        unread_names: Vec<String>,
        hazards: Hazards,
        code_kb: Option<u64>,
    ) -> Watch {
        Watch {
            pid,
            images,
            hazards,
            answered: false,
            expected: false,
            known: modules.iter().map(place).collect(),
            code_kb,
            unread: Unread::default(),
            unread_names,
        }
    }

    /// Where unwinders are given the tables of copies, one that asks elsewhere is dangerous.
    pub fn answered(self, answered: bool) -> Watch {
        Watch { answered, ..self }
    }

    /// Where exceptions of what is loaded later were reckoned with.
    pub fn expected(self, expected: bool) -> Watch {
        Watch { expected, ..self }
    }

    /// Whether modules may have been loaded since the last look.
    pub fn is_due(&self) -> bool {
        let code_kb = mapped_code_kb(self.pid);
        code_kb.is_none() || code_kb != self.code_kb
    }

    /// Finds modules loaded since the last time; returns which may unwind measured functions now.
    pub fn look(&mut self) -> Option<String> {
        let code_kb = mapped_code_kb(self.pid);
        let modules = match locate::mapped_modules(self.pid) {
            Ok(modules) => modules,
            // Looked for again the next time: one that is exiting has none, and is no loss.
            Err(why) => {
                self.unread.looks += 1;
                self.unread.looks_why = why.to_string();
                return None;
            }
        };
        self.unread.looks = 0;
        self.code_kb = code_kb;
        let before = self.images.len() + self.unread_names.len();
        for module in modules {
            if !self.known.insert(place(&module)) {
                continue;
            }
            match Image::open_mapped(self.pid, &module) {
                Ok(image) => self.images.push(Arc::new(image)),
                // It may do anything.
                Err(why) => {
                    self.unread.module(&why);
                    self.unread_names.push(basename(&module.path).to_owned());
                }
            }
        }
        if self.images.len() + self.unread_names.len() == before {
            return None;
        }
        let mut now = Hazards::of(self.images.iter().map(Arc::as_ref));
        let unread = self.unread_names.iter();
        unread.for_each(|name| now.add_unread(name));
        if self.expected {
            now.add_later();
        }
        let new = self.hazards.new_in(&now);
        self.hazards = now;
        new.or_else(|| self.asks_elsewhere())
    }

    fn asks_elsewhere(&self) -> Option<String> {
        let images: Vec<&Image> = self.images.iter().map(Arc::as_ref).collect();
        let asked = self.answered.then(|| unwinders::asked(&images))?;
        match self.unread_names.first() {
            Some(name) => Some(format!(
                "{name} cannot be read, and may have an unwinder of its own"
            )),
            None => asked.err(),
        }
    }

    /// Modules loaded meanwhile and not examined, as text.
    pub fn not_looked_at(&self) -> Vec<String> {
        let Unread { modules, why, .. } = &self.unread;
        let (pid, mut told) = (self.pid, Vec::new());
        if *modules > 0 {
            told.push(format!(
                "process {pid}: {modules} modules loaded while recording were not looked at for exceptions ({why}): \
                 one that lets them pass through measured functions would have ended the target"
            ));
        }
        // A single one is what the end of a process looks like.
        if self.unread.looks > 1 {
            let Unread {
                looks, looks_why, ..
            } = &self.unread;
            told.push(format!(
                "process {pid}: modules loaded while recording were not looked at for exceptions, {looks} times up to \
                 the end: {looks_why}"
            ));
        }
        told
    }
}

impl Unread {
    fn module(&mut self, why: &LocateError) {
        self.modules += 1;
        if self.modules == 1 {
            self.why = why.to_string();
        }
    }
}

fn place(module: &locate::MappedModule) -> (PathBuf, u64) {
    (module.path.clone(), module.avma_range.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_this_process_is_counted() {
        assert!(mapped_code_kb(std::process::id() as i32).is_some_and(|kb| kb > 0));
        assert_eq!(mapped_code_kb(-1), None);
    }

    fn watch(pid: i32, code_kb: Option<u64>) -> Watch {
        let hazards = Hazards::of(std::iter::empty());
        Watch::new(pid, &[], Vec::new(), Vec::new(), hazards, code_kb)
    }

    #[test]
    fn a_memory_map_that_cannot_be_read_is_told() {
        // No process has this number.
        let mut gone = watch(i32::MAX, None);
        assert_eq!(gone.look(), None);
        assert_eq!(gone.not_looked_at(), [""; 0], "it may have been its end");
        assert_eq!(gone.look(), None);
        let told = gone.not_looked_at();
        assert!(
            told.len() == 1 && told[0].contains("2 times up to the end: no process"),
            "{told:?}"
        );
    }

    #[test]
    fn where_all_can_be_read_nothing_is_told() {
        let mut here = watch(std::process::id() as i32, None);
        here.look();
        assert_eq!(here.not_looked_at(), [""; 0]);
    }
}
