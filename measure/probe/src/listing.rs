//! Every function of a file or of a process with its verdict: what `functions` shows.
use crate::instrument::body::hazards::Hazards;
use crate::instrument::body::sensitive;
use crate::instrument::body::unwinding::Unwinding;
use crate::instrument::body::verdict::{self, ProcessTraits};
use crate::instrument::body::{NoTables, Refusal};
use crate::live::asked;
use crate::locate::basename;
use crate::locate::module_names::ModuleNames;
use crate::locate::pattern::{self, Pattern};
use crate::locate::{self, Function, Image, LocateError, MappedModule, Role};
use crate::plan;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files whose functions are listed.
pub struct Listing {
    pub modules: Vec<ListedModule>,
    /// Mapped files that cannot be looked into, with the reason.
    pub unreadable: Vec<(PathBuf, LocateError)>,
    /// `None`: the user asserts that nothing is unwound.
    unwinding: Option<Unwinding>,
    /// Of a file: what holds in a process where another module raises exceptions.
    in_company: Option<Unwinding>,
    shadow_stack: bool,
    names: ModuleNames,
}

pub struct ListedModule {
    pub image: Image,
    /// `None` for a file, not a process.
    pub mapped: Option<MappedModule>,
    /// Whether unwinders can be given the tables of copies.
    answered: Result<(), NoTables>,
}

impl ListedModule {
    pub fn path(&self) -> &Path {
        self.image.path()
    }

    pub fn basename(&self) -> &str {
        basename(self.image.path())
    }

    fn tables(&self) -> Result<hopscope_unwind::Module<'_>, NoTables> {
        let bias = self.mapped.as_ref().map_or(0, |m| m.bias);
        self.answered.clone()?;
        let tables = self.image.unwind_tables(bias);
        tables.map_err(|why| NoTables::because(&why.to_string()))
    }

    /// Where the function lies in the process.
    pub fn avma(&self, function: &Function) -> Option<u64> {
        self.mapped
            .as_ref()
            .map(|m| function.svma.wrapping_add(m.bias))
    }
}

/// A selected function.
pub struct Listed<'a> {
    pub module: &'a ListedModule,
    pub function: &'a Function,
    /// Whether `record` would measure it; of a file, in a process of this file alone.
    pub verdict: Result<(), Refusal>,
    /// Of a file: why `record` would refuse it in a process where another module raises exceptions.
    pub in_company: Option<Refusal>,
}

impl Listing {
    /// # Errors
    /// When the file cannot be read or is no x86-64 ELF file.
    pub fn of_file(path: &Path, assume_no_exceptions: bool) -> Result<Listing, LocateError> {
        let image = Image::open(path)?;
        let (mut unwinding, mut in_company) = (None, None);
        let mut answered = Err(NoTables::default());
        if !assume_no_exceptions {
            // The C library that this program runs with says which imports raise nothing.
            let libraries = own_system_libraries();
            let images: Vec<&Image> = std::iter::once(&image).chain(&libraries).collect();
            let alone = Hazards::of(images.iter().copied());
            unwinding = Some(Unwinding::of(&images, &alone));
            answered = answers(&images, None);
            if alone.exceptions().is_none() {
                in_company = Some(Unwinding::of(&images, &Hazards::of_company()));
            }
        }
        Ok(Listing {
            modules: vec![ListedModule {
                image,
                mapped: None,
                answered,
            }],
            unreadable: Vec::new(),
            unwinding,
            in_company,
            shadow_stack: false,
            names: ModuleNames::of_file(path),
        })
    }

    /// Only reads: the process is neither stopped nor changed.
    ///
    /// # Errors
    /// When there is no such process, or this user may not look into it.
    pub fn of_process(pid: i32, assume_no_exceptions: bool) -> Result<Listing, LocateError> {
        let shadow_stack = locate::has_shadow_stack(pid)?;
        let modules = locate::mapped_modules(pid)?;
        let mut listing = Listing {
            modules: Vec::new(),
            unreadable: Vec::new(),
            unwinding: None,
            in_company: None,
            shadow_stack,
            names: ModuleNames::of_process(pid, &modules),
        };
        for mapped in modules {
            match Image::open_mapped(pid, &mapped) {
                Ok(image) => listing.modules.push(ListedModule {
                    image,
                    mapped: Some(mapped),
                    answered: Err(NoTables::default()),
                }),
                Err(why) => listing.unreadable.push((mapped.path, why)),
            }
        }
        sensitive::close(listing.modules.iter().map(|m| &m.image));
        if !assume_no_exceptions {
            let images: Vec<&Image> = listing.modules.iter().map(|m| &m.image).collect();
            let mut hazards = Hazards::of(images.iter().copied());
            let unread = listing.unreadable.iter().map(|(path, _)| basename(path));
            unread.for_each(|name| hazards.add_unread(name));
            listing.unwinding = Some(Unwinding::of(&images, &hazards));
            let unread = listing.unreadable.first().map(|(path, _)| basename(path));
            let answered = answers(&images, unread);
            let modules = listing.modules.iter_mut();
            modules.for_each(|module| module.answered = answered.clone());
        }
        Ok(listing)
    }

    /// The patterns as they apply to these modules, which users also know by links to their files and by what
    /// the process was started as.
    ///
    /// # Errors
    /// When a name may mean several modules.
    pub fn resolve(&self, patterns: &[Pattern]) -> Result<Vec<Pattern>, LocateError> {
        self.names.resolve_all(patterns)
    }

    /// Functions that any of `patterns` matches, all when there are none, in the order of the
    /// modules and of their addresses.
    pub fn select(&self, patterns: &[Pattern]) -> Vec<Listed<'_>> {
        let mut chosen = Vec::new();
        for (n, module) in self.modules.iter().enumerate() {
            let path = module.path().to_string_lossy();
            let wanted =
                |f: &&Function| patterns.is_empty() || patterns.iter().any(|p| p.matches(&path, f));
            chosen.extend(
                module
                    .image
                    .functions()
                    .iter()
                    .filter(wanted)
                    .map(|f| (n, f)),
            );
        }
        let tables = self.modules.iter().map(ListedModule::tables);
        let tables: Vec<_> = tables.collect();
        let verdict = |(n, function): &(usize, &Function)| self.verdicts(*n, function, &tables[*n]);
        let verdicts = in_parallel(&chosen, verdict);
        let listed = chosen.into_iter().zip(verdicts);
        listed
            .map(|((n, function), (verdict, in_company))| Listed {
                module: &self.modules[n],
                function,
                verdict,
                in_company,
            })
            .collect()
    }

    /// Patterns that no function matches.
    pub fn unmatched<'p>(&self, patterns: &'p [Pattern]) -> Vec<&'p Pattern> {
        let matches = |p: &Pattern| {
            self.modules.iter().any(|m| {
                let path = m.path().to_string_lossy();
                m.image.functions().iter().any(|f| p.matches(&path, f))
            })
        };
        patterns.iter().filter(|p| !matches(p)).collect()
    }

    /// What may have been meant by patterns that matched nothing: empty, or `; …`.
    pub fn hint(&self, patterns: &[Pattern]) -> String {
        let modules = self.modules.iter();
        pattern::hint(
            patterns,
            modules.map(|m| (m.basename(), m.image.functions())),
        )
    }

    fn verdicts(
        &self,
        n: usize,
        function: &Function,
        tables: &Result<hopscope_unwind::Module, NoTables>,
    ) -> (Result<(), Refusal>, Option<Refusal>) {
        let module = &self.modules[n];
        let traits = ProcessTraits {
            unwinding: self.unwinding.as_ref().map(|u| u.module(n)),
            tables: tables.as_ref().ok(),
            no_tables: tables.as_ref().err(),
            assume_no_exceptions: self.unwinding.is_none(),
            shadow_stack: self.shadow_stack,
            entry_stays: false,
        };
        let verdict = match &module.mapped {
            Some(mapped) => plan::accept(mapped, &module.image, function, traits).map(drop),
            None => verdict::accept(&module.image, function, traits).map(drop),
        };
        let in_company = self
            .in_company
            .as_ref()
            .and_then(|u| u.module(n).of(function.svma))
            .filter(|_| verdict.is_ok())
            .and_then(|who| match tables {
                Ok(tables) => tables
                    .check(&function.ranges())
                    .err()
                    .map(Refusal::UnwindTables),
                Err(why) => Some(Refusal::MayUnwind(who.clone(), why.clone())),
            });
        (verdict, in_company)
    }

    /// Whether a file was listed whose functions may be refused in a process.
    pub fn depends_on_company(&self) -> bool {
        self.in_company.is_some()
    }
}

/// As for a recording: whether unwinders can be given the tables of copies.
fn answers(images: &[&Image], unread: Option<&str>) -> Result<(), NoTables> {
    let why = match unread {
        Some(name) => format!("{name} cannot be read"),
        None => match asked::sites(images) {
            Ok(_) => return Ok(()),
            Err(why) => why,
        },
    };
    Err(NoTables::because(&why))
}

fn own_system_libraries() -> Vec<Image> {
    let own = std::process::id() as i32;
    let modules = locate::mapped_modules(own).unwrap_or_default();
    let opened = modules
        .iter()
        .filter_map(|m| Image::open_mapped(own, m).ok());
    opened
        .filter(|image| image.unwinds().role == Role::SystemLibrary)
        .collect()
}

/// Decoding every body is most of the work, and no verdict depends on another.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const BLOCK: usize = 256;
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len().div_ceil(BLOCK))
        .min(8);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let from = block.saturating_mul(BLOCK);
            if from >= items.len() {
                return done;
            }
            let to = items.len().min(from + BLOCK);
            done.push((block, items[from..to].iter().map(&work).collect::<Vec<R>>()));
        }
    };
    let mut blocks = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut blocks = worker();
        for other in others {
            blocks.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        blocks
    });
    blocks.sort_by_key(|(block, _)| *block);
    blocks
        .into_iter()
        .flat_map(|(_, results)| results)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_keep_their_order() {
        let items: Vec<usize> = (0..10_000).collect();
        let doubled = in_parallel(&items, |n| n * 2);
        assert!(
            doubled.iter().enumerate().all(|(n, d)| *d == n * 2) && doubled.len() == items.len()
        );
        assert!(in_parallel(&[] as &[u8], |n| *n).is_empty());
    }

    #[test]
    fn this_process_lists_itself() {
        let listing = Listing::of_process(std::process::id() as i32, false).unwrap();
        let pattern = Pattern::parse("this_process_lists_itself").unwrap();
        let found = listing.select(&[pattern]);
        let here = this_process_lists_itself as fn() as usize as u64;
        assert!(
            found
                .iter()
                .any(|l| l.module.avma(l.function) == Some(here))
        );
        let libc = listing.select(&[Pattern::parse("libc!vfork").unwrap()]);
        assert!(libc.iter().all(|l| l.verdict.is_err()) && !libc.is_empty());
    }
}
