//! Benches that put hopscope beside its floor and its peers. They start programs and read what
//! those print; nothing that is measured is linked in here.
#![forbid(unsafe_code)]

pub mod analyze;
pub mod attach;
pub mod counters;
pub mod coverage;
pub mod density;
pub mod error;
mod function;
mod goal;
pub mod hopscope;
pub mod html;
mod listing;
pub mod load;
pub mod locality;
pub mod not_measured;
mod passes;
pub mod peers;
pub mod probe;
pub mod program;
pub mod propagation;
mod ratio;
pub mod recorder;
pub mod rows;
mod said;
pub mod slice;
pub mod splice;
pub mod stack;
mod table;
pub mod unmodified;
mod virtual_machine;
pub mod vnet;

use std::path::PathBuf;

/// What every bench is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The binary under test.
    pub hopscope: PathBuf,
    /// Generated programs, objects and recordings go here.
    pub build_dir: PathBuf,
    /// Fewer and shorter repetitions.
    pub quick: bool,
    /// As few and as short as there can be, which is quick too: whether a bench works, not what it finds.
    pub least: bool,
    /// No progress on stderr.
    pub quiet: bool,
}

impl Settings {
    /// The same, for programs that enter a namespace: they start at its root.
    ///
    /// # Errors
    /// There is no current directory.
    pub(crate) fn seen_from_the_root(&self) -> error::Result<Settings> {
        let found = std::path::absolute(&self.hopscope);
        Ok(Settings {
            hopscope: found.map_err(error::Error::file("find", &self.hopscope))?,
            ..self.clone()
        })
    }

    pub(crate) fn pick<T>(&self, least: T, quick: T, whole: T) -> T {
        match (self.least, self.quick) {
            (true, _) => least,
            (false, true) => quick,
            (false, false) => whole,
        }
    }

    pub(crate) fn say(&self, what: &str) {
        if !self.quiet {
            eprintln!("bench: {what}");
        }
    }
}
