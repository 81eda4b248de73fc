//! What is looked at of a process before any of its functions: its files, and who unwinds stacks in it.
use super::{Plan, PlanError};
use crate::instrument::body::NoTables;
use crate::instrument::body::hazards::Hazards;
use crate::instrument::body::sensitive;
use crate::instrument::body::unwinding::Unwinding as MayUnwind;
use crate::instrument::body::verdict::ProcessTraits;
use crate::live::asked::{self, Asked};
use crate::locate::{self, Image, MappedModule, basename};
use crate::new_modules::{Watch, mapped_code_kb};
use crate::progress::{self, Phase};
use hopscope_event::table::ModuleIx;
use std::sync::Arc;

pub(super) type Opened<'a> = (&'a MappedModule, Arc<Image>, ModuleIx);

/// A process that was looked into.
pub(super) struct Seen {
    pub(super) modules: Vec<MappedModule>,
    /// Those that can be read, by number.
    readable: Vec<(usize, Arc<Image>, ModuleIx)>,
    /// `None`: the user asserts that nothing is unwound.
    pub(super) unwinding: Option<MayUnwind>,
    /// Where unwinders ask for tables, or why they cannot be answered.
    pub(super) asked: Result<Arc<[Asked]>, NoTables>,
    /// Something unwinds, or looks at, stacks.
    pub(super) walked: bool,
    assume_no_exceptions: bool,
}

impl Seen {
    pub(super) fn opened(&self) -> Vec<Opened<'_>> {
        let readable = self.readable.iter();
        let opened = readable.map(|(n, image, ix)| (&self.modules[*n], image.clone(), *ix));
        opened.collect()
    }

    /// What decides about the functions of a module; `tables`: [`Seen::tables`].
    pub(super) fn traits<'t>(
        &'t self,
        n: usize,
        tables: Result<&'t hopscope_unwind::Module<'t>, &'t NoTables>,
        shadow_stack: bool,
    ) -> ProcessTraits<'t> {
        ProcessTraits {
            unwinding: self.unwinding.as_ref().map(|u| u.module(n)),
            tables: tables.ok(),
            no_tables: tables.err(),
            assume_no_exceptions: self.assume_no_exceptions,
            shadow_stack,
            entry_stays: false,
        }
    }

    /// Those of a module, where unwinders can be given those of copies.
    pub(super) fn tables<'o>(
        &self,
        opened: &'o [Opened],
        n: usize,
    ) -> Result<hopscope_unwind::Module<'o>, NoTables> {
        self.asked.as_ref().map_err(NoTables::clone)?;
        let (module, image, _) = &opened[n];
        let tables = image.unwind_tables(module.bias);
        tables.map_err(|why| NoTables::because(&why.to_string()))
    }
}

impl Plan {
    pub(super) fn look_into(&mut self, pid: i32) -> Result<Seen, PlanError> {
        let code_kb = mapped_code_kb(pid);
        let modules = locate::mapped_modules(pid)?;
        let (mut readable, mut unread) = (Vec::new(), Vec::new());
        progress::begin(Phase::Files, modules.len());
        for (n, module) in modules.iter().enumerate() {
            progress::step(1);
            match self.image(pid, module) {
                Ok((image, ix)) => readable.push((n, image, ix)),
                Err(e) => {
                    self.refuse_module(module, &e);
                    unread.push(basename(&module.path));
                }
            }
        }
        sensitive::close(readable.iter().map(|(_, image, _)| &**image));
        let images: Vec<&Image> = readable.iter().map(|(_, image, _)| &**image).collect();
        if !unread.is_empty() || images.iter().any(|i| i.switches_stacks()) {
            self.switchers.insert(pid);
        }
        let mut walked = images.iter().any(|i| walks(i) || i.is_unwinder());
        let (mut unwinding, mut asked) = (None, Err(NoTables::default()));
        if !self.assume_no_exceptions {
            let mut hazards = Hazards::of(images.iter().copied());
            unread.iter().for_each(|name| hazards.add_unread(name));
            let sites = match unread.first() {
                Some(name) => Err(format!("{name} cannot be read")),
                None => sites(&modules, &readable),
            };
            // Copies get tables beforehand, where unwinders can be given them.
            let expected = self.follows_loads && sites.is_ok();
            if expected {
                hazards.add_later();
            }
            unwinding = Some(MayUnwind::of(&images, &hazards));
            asked = sites.map_err(|why| NoTables::because(&why));
            let unwinds = hazards.unwinds();
            walked |= unwinds;
            let names = unread.iter().map(|name| (*name).to_owned()).collect();
            let kept = readable.iter().map(|(_, image, _)| image.clone()).collect();
            let watch = Watch::new(pid, &modules, kept, names, hazards, code_kb);
            let watch = watch.answered(unwinds && asked.is_ok());
            let watch = watch.expected(expected);
            self.watches.insert(pid, watch);
        }
        Ok(Seen {
            readable,
            unwinding,
            asked,
            walked,
            modules,
            assume_no_exceptions: self.assume_no_exceptions,
        })
    }
}

/// Where the unwinders of a process ask for tables, if all of them do.
fn sites(
    modules: &[MappedModule],
    readable: &[(usize, Arc<Image>, ModuleIx)],
) -> Result<Arc<[Asked]>, String> {
    let images: Vec<&Image> = readable.iter().map(|(_, image, _)| &**image).collect();
    let asked = asked::sites(&images)?.into_iter().map(|(m, range)| {
        let (n, image, _) = &readable[m];
        let module = &modules[*n];
        Asked::new(image.clone(), range, module.bias, module.avma_range.clone())
    });
    Ok(asked.collect())
}

/// Whether a program looks at its own stack (`backtrace`, and what `std::stacktrace` and Rust's panic messages use).
fn walks(image: &Image) -> bool {
    const WALKERS: [&str; 2] = ["_Unwind_Backtrace", "backtrace"];
    let mut imports = image.imports();
    image.unwinds().is_program() && imports.any(|name| WALKERS.contains(&locate::bare(name)))
}
