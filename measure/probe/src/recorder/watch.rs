//! Modules that a target loads while it is recorded. One that raises exceptions, in a program where
//! nobody did, may let them pass through measured functions: the recording then ends.
use crate::locate::{self, Image};
use crate::relocate::hazards::Hazards;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// What was judged safe at the attach, and on what grounds.
#[derive(Clone)]
pub struct Watch {
    pid: i32,
    images: Vec<Arc<Image>>,
    hazards: Hazards,
    /// Path and place of each module that is known.
    known: HashSet<(PathBuf, u64)>,
    /// Kilobytes of code mapped besides the program's own; it changes when a module is loaded.
    code_kb: Option<u64>,
}

/// Code mapped by `pid`, in KiB (`VmLib` of proc_pid_status(5)); cheap beside reading the maps.
pub fn mapped_code_kb(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmLib:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

impl Watch {
    /// `code_kb`: read before the modules were.
    pub fn new(
        pid: i32,
        modules: &[locate::MappedModule],
        images: Vec<Arc<Image>>,
        hazards: Hazards,
        code_kb: Option<u64>,
    ) -> Watch {
        Watch {
            pid,
            images,
            hazards,
            known: modules.iter().map(place).collect(),
            code_kb,
        }
    }

    /// Looks for modules loaded since the last time; says who may unwind measured functions now.
    pub fn look(&mut self) -> Option<String> {
        let code_kb = mapped_code_kb(self.pid);
        if code_kb == self.code_kb {
            return None;
        }
        self.code_kb = code_kb;
        let modules = locate::mapped_modules(self.pid).ok()?;
        let before = self.images.len();
        for module in modules {
            if self.known.insert(place(&module))
                && let Ok(image) = Image::open_mapped(self.pid, &module)
            {
                self.images.push(Arc::new(image));
            }
        }
        if self.images.len() == before {
            return None;
        }
        let now = Hazards::of(self.images.iter().map(Arc::as_ref));
        let new = self.hazards.new_in(&now);
        self.hazards = now;
        new
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
}
