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
    /// Looks at what is mapped that are left for addresses in no known file.
    looks: u32,
}

/// What the process has mapped.
struct Known {
    module: MappedModule,
    /// `None`: not looked into yet, or it cannot be read.
    image: Option<Arc<Image>>,
    /// In the recording's table.
    ix: Option<ModuleIx>,
}

const VDSO: &str = "[vdso]";

/// Code that is made at run time is in no file, however often one looks.
const LOOKS_MAX: u32 = 256;

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
    pub fn new(pid: i32, files: Files) -> Names {
        let mut names = Names {
            pid,
            files,
            modules: Vec::new(),
            looks: LOOKS_MAX,
        };
        // It may have ended by the time its first records are read.
        names.look();
        names
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// The same for a child.
    pub(super) fn of_child(&self, pid: i32) -> Names {
        Names::new(pid, self.files.clone())
    }

    /// Nothing is known of it.
    pub(super) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    pub(super) fn of(&mut self, address: u64) -> Named {
        if self.module(address).is_none() && self.looks > 0 {
            self.looks -= 1;
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

    /// What was mapped since.
    fn look(&mut self) {
        let now = mapped_modules(self.pid).unwrap_or_default();
        for module in now {
            let is_known = |known: &Known| known.module.avma_range == module.avma_range;
            if self.modules.iter().any(is_known) {
                continue;
            }
            let file = self.files.get(&module.path);
            let image = file.and_then(|(image, _)| image.clone());
            let image = image.filter(|image| image.is_mapped_by(self.pid, &module));
            self.modules.push(Known {
                image,
                ix: file.map(|(_, ix)| *ix),
                module,
            });
        }
    }

    fn elsewhere(&self, address: u64) -> Named {
        let mappings = match self.looks {
            0 => Vec::new(),
            _ => maps::read(self.pid).unwrap_or_default(),
        };
        let mapping = mappings.iter().find(|m| m.range.contains(&address));
        // The kernel's own code.
        let (name, path) = match mapping.filter(|m| m.name == VDSO) {
            Some(m) => (format!("+{:#x}", address - m.range.start), m.name.clone()),
            None => (format!("{address:#x}"), NO_FILE.to_owned()),
        };
        Named {
            name,
            module: Module::Other {
                path,
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
