//! What lies at an address of a process: a function of a file, or another place.
use crate::locate::{Image, MappedModule, mapped_modules};
use hopscope_event::callee::NO_FILE;
use hopscope_event::table::ModuleIx;
use hopscope_process::maps;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Files of the recording by their paths; `None`: not looked into yet.
pub type Files = HashMap<PathBuf, (Option<Arc<Image>>, ModuleIx)>;

pub struct Names {
    pid: i32,
    files: Files,
    modules: Vec<Known>,
    /// The kernel's own code.
    vdso: Option<Range<u64>>,
    /// What is mapped was looked at since the last [`Names::begin`].
    looked: bool,
}

/// What the process has mapped.
#[derive(Clone)]
struct Known {
    module: MappedModule,
    /// `None`: not looked into yet, or it cannot be read.
    image: Option<Arc<Image>>,
    /// In the recording's table.
    ix: Option<ModuleIx>,
}

const VDSO: &str = "[vdso]";

/// What lies at an address.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) module: Module,
    /// Of the module.
    pub(super) svma: Range<u64>,
}

pub(super) enum Module {
    OfRecording(ModuleIx),
    /// Loaded since, or no file.
    Other {
        path: String,
        build_id: String,
    },
}

impl Names {
    /// `loads`: what the process had mapped when it was looked into, if that is known.
    pub fn new(pid: i32, files: Files, loads: &[MappedModule]) -> Names {
        let mut names = Names {
            pid,
            files,
            modules: Vec::new(),
            vdso: None,
            looked: false,
        };
        // It may have ended by the time its first records are read, or even now.
        names.look();
        if names.modules.is_empty() {
            names.modules = loads.iter().map(|load| names.was(load)).collect();
        }
        names
    }

    /// As it was before the process ended.
    fn was(&self, module: &MappedModule) -> Known {
        let file = self.files.get(&module.path);
        Known {
            image: file.and_then(|(image, _)| image.clone()),
            ix: file.map(|(_, ix)| *ix),
            module: module.clone(),
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// The same for a child.
    pub(super) fn of_child(&self, pid: i32) -> Names {
        Names::new(pid, self.files.clone(), &[])
    }

    /// Nothing is known of it.
    pub(super) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// Records of a later time follow: other files may have come to the same places.
    pub(super) fn begin(&mut self) {
        self.looked = false;
    }

    pub(super) fn of(&mut self, address: u64) -> Named {
        if !self.looked {
            self.look();
        }
        let Some(n) = self.module(address) else {
            return self.elsewhere(address);
        };
        let pid = self.pid;
        let known = &mut self.modules[n];
        if known.image.is_none() {
            let opened = Image::open_mapped(pid, &known.module);
            known.image = opened.ok().map(Arc::new);
        }
        let svma = address.wrapping_sub(known.module.bias);
        let image = known.image.as_deref();
        let (name, range) = image
            .and_then(|image| symbol(image, svma))
            .unwrap_or_else(|| (format!("+{svma:#x}"), svma..svma));
        let module = match known.ix {
            Some(ix) => Module::OfRecording(ix),
            None => Module::Other {
                path: known.module.path.display().to_string(),
                build_id: image.map_or(String::new(), |image| image.build_id().to_owned()),
            },
        };
        Named {
            name,
            module,
            svma: range,
        }
    }

    fn module(&self, address: u64) -> Option<usize> {
        let there = |known: &Known| known.module.avma_range.contains(&address);
        self.modules.iter().position(there)
    }

    /// What is mapped now; of a process that is gone, what was.
    fn look(&mut self) {
        self.looked = true;
        let now = mapped_modules(self.pid).unwrap_or_default();
        if now.is_empty() {
            return;
        }
        let mappings = maps::read(self.pid).unwrap_or_default();
        let vdso = mappings.into_iter().find(|m| m.name == VDSO);
        self.vdso = vdso.map(|m| m.range);
        self.take(now);
    }

    fn take(&mut self, now: Vec<MappedModule>) {
        let before = std::mem::take(&mut self.modules);
        for module in now {
            if let Some(known) = before.iter().find(|known| known.module.had(&module)) {
                self.modules.push(known.clone());
                continue;
            }
            let same = |known: &&Known| known.module.is_same_load(&module);
            let image = match before.iter().find(same) {
                Some(known) => known.image.clone(),
                None => {
                    let file = self.files.get(&module.path);
                    let image = file.and_then(|(image, _)| image.clone());
                    image.filter(|image| image.is_mapped_by(self.pid, &module))
                }
            };
            self.modules.push(Known {
                image,
                ix: self.files.get(&module.path).map(|(_, ix)| *ix),
                module,
            });
        }
    }

    fn elsewhere(&self, address: u64) -> Named {
        let vdso = self.vdso.as_ref().filter(|vdso| vdso.contains(&address));
        let (name, path) = match vdso {
            Some(vdso) => (format!("+{:#x}", address - vdso.start), VDSO),
            None => (format!("{address:#x}"), NO_FILE),
        };
        Named {
            name,
            module: Module::Other {
                path: path.to_owned(),
                build_id: String::new(),
            },
            svma: address..address,
        }
    }
}

/// The function at an address, or where in one that is.
fn symbol(image: &Image, svma: u64) -> Option<(String, Range<u64>)> {
    if let Some(stub) = image.stub_symbol(svma) {
        return Some((format!("{stub}@plt"), svma..svma));
    }
    let functions = image.functions();
    let after = functions.partition_point(|f| f.svma <= svma);
    let function = &functions[after.checked_sub(1)?];
    let range = function.svma..function.svma.saturating_add(function.size);
    match svma - function.svma {
        0 => Some((function.name.clone(), range)),
        within if range.contains(&svma) => Some((format!("{}+{within:#x}", function.name), range)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its mappings are there, and their files are not any more.
    #[test]
    fn what_a_process_that_ends_has_mapped_keeps_its_names() {
        let own = std::process::id() as i32;
        let exe = std::env::current_exe().unwrap();
        let loads = mapped_modules(own).unwrap();
        let program = loads.iter().find(|m| m.path == exe).unwrap();
        let image = Arc::new(Image::open_mapped(own, program).unwrap());
        let function = image.functions().iter().find(|f| f.size > 8).unwrap();
        let address = function.svma.wrapping_add(program.bias);
        let files = [(exe.clone(), (Some(image.clone()), ModuleIx(3)))];
        let mut names = Names::new(own, files.into_iter().collect(), &[]);
        names.take(loads.iter().map(MappedModule::of_one_that_ends).collect());
        assert_eq!(names.of(address).name, function.name);
        // Another file at its place is not it.
        let mut other = program.of_one_that_ends();
        other.path = "/another".into();
        names.take(vec![other]);
        assert_ne!(names.of(address).name, function.name);
    }
}
