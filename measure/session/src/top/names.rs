//! The names of functions, which may become more.
use hopscope_event::FunctionEntry;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_probe::locate::basename;
use hopscope_report::printable;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of a function before anything is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Name {
    pub function: String,
    pub module: String,
}

#[derive(Debug, Default)]
pub(super) struct Names {
    modules: HashMap<ModuleIx, String>,
    /// By the functions' numbers. Whoever shows them keeps those of his picture.
    all: Arc<Vec<Name>>,
}

impl Names {
    pub(super) fn all(&self) -> &Arc<Vec<Name>> {
        &self.all
    }

    pub(super) fn add(&mut self, modules: &[ModuleEntry], functions: &[FunctionEntry]) {
        let files = modules
            .iter()
            .map(|m| (m.ix, printable(basename(m.path.as_ref()))));
        self.modules.extend(files);
        let all = Arc::make_mut(&mut self.all);
        for function in functions {
            let at = function.id.0 as usize;
            if at >= all.len() {
                all.resize(at + 1, Name::default());
            }
            all[at] = Name {
                function: printable(&function.name),
                module: self
                    .modules
                    .get(&function.module)
                    .cloned()
                    .unwrap_or_default(),
            };
        }
    }
}
