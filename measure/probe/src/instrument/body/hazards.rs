//! What a whole process can do to frames besides returning from them: raise exceptions that somebody
//! catches, and end threads in a way that unwinds their stacks.
use crate::locate::basename;
use crate::locate::{Image, Raises, Role, To, UnwindFacts, is_raising_import};
use std::collections::HashSet;

/// Facts of all modules together, by the names of the modules they come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hazards {
    raisers: Vec<String>,
    catchers: Vec<String>,
    /// The C++ library is there, which catches what programs raise beneath it: a stream what its buffer throws,
    /// `new(std::nothrow)` what a new-handler throws.
    library_catches: bool,
    /// Modules with clean-ups that an ending thread runs.
    landers: Vec<String>,
    cancellers: Vec<String>,
    exiters: Vec<String>,
    cancels_anywhere: bool,
    forced_unwinder: bool,
}

/// Threads end by unwinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forced {
    pub why: String,
    /// At cancellation points, not only where they end themselves.
    pub cancels: bool,
    /// At any instruction.
    pub anywhere: bool,
    /// Only the C and C++ libraries have clean-ups that could be skipped.
    pub libraries_only: bool,
}

impl Hazards {
    pub fn of<'a>(images: impl Iterator<Item = &'a Image> + Clone) -> Hazards {
        let mut imported = HashSet::new();
        for image in images.clone() {
            imported.extend(image.imports());
        }
        let mut hazards = Hazards::default();
        for image in images {
            hazards.add(image, &imported);
        }
        hazards
    }

    /// Counts a module that cannot be read as one that may do anything: raise, catch, cancel and clean up.
    pub fn add_unread(&mut self, name: &str) {
        let name = || format!("{name} cannot be read and perhaps");
        self.raisers.push(name());
        self.catchers.push(name());
        self.landers.push(name());
        self.cancellers.push(name());
        self.forced_unwinder = true;
    }

    /// Counts modules that are loaded later as ones that raise and catch exceptions.
    pub fn add_later(&mut self) {
        let later = || "a module that may be loaded later".to_owned();
        self.raisers.push(later());
        self.catchers.push(later());
    }

    /// As if another module raised and caught exceptions: what a live process may add to a file.
    pub fn of_company() -> Hazards {
        let other = || vec!["another module of the process".to_owned()];
        Hazards {
            raisers: other(),
            catchers: other(),
            ..Hazards::default()
        }
    }

    fn add(&mut self, image: &Image, imported: &HashSet<&str>) {
        let facts: &UnwindFacts = image.unwinds();
        self.forced_unwinder |= facts.forced_unwinder;
        self.library_catches |= facts.role == Role::LanguageRuntime && facts.catches;
        if !facts.is_program() {
            return;
        }
        let name = || basename(image.path()).to_owned();
        if facts.cancels {
            self.cancellers.push(name());
            self.cancels_anywhere |= facts.cancels_anywhere;
        }
        if facts.exits_threads {
            self.exiters.push(name());
        }
        let may = facts.raises != Raises::No || facts.lands;
        if may && !only_allocates(image, imported) {
            if raises(image) {
                self.raisers.push(name());
            }
            if facts.catches {
                self.catchers.push(name());
            }
            if facts.lands {
                self.landers.push(name());
            }
        }
    }

    /// The module that raises what another catches. An exception that nobody catches ends the
    /// program where it is raised, measured or not.
    pub fn exceptions(&self) -> Option<&str> {
        let raiser = self.raisers.first()?;
        (self.library_catches || !self.catchers.is_empty()).then_some(raiser)
    }

    /// How threads are ended, where that unwinds and something is skipped by not unwinding: C
    /// without `-fexceptions` keeps its clean-ups in a list that is run all the same.
    pub fn forced(&self) -> Option<Forced> {
        let (who, how) = match (self.cancellers.first(), self.exiters.first()) {
            (Some(who), _) => (who, "cancels threads (pthread_cancel)"),
            (None, Some(who)) => (who, "ends threads early (pthread_exit)"),
            (None, None) => return None,
        };
        self.forced_unwinder.then(|| Forced {
            why: format!("{who} {how}"),
            cancels: !self.cancellers.is_empty(),
            anywhere: self.cancels_anywhere,
            libraries_only: self.landers.is_empty(),
        })
    }

    /// Whether frames are unwound at all.
    pub fn unwinds(&self) -> bool {
        self.exceptions().is_some() || self.forced().is_some()
    }

    /// What `later` can do that these cannot, in words.
    pub fn new_in(&self, later: &Hazards) -> Option<String> {
        if let (None, Some(raiser)) = (self.exceptions(), later.exceptions()) {
            return Some(format!("{raiser} raises exceptions"));
        }
        let is_worse = |now: &Forced| {
            self.forced().is_none_or(|before| {
                let worse = |before: bool, now: bool| !before && now;
                worse(before.cancels, now.cancels)
                    || worse(before.anywhere, now.anywhere)
                    || worse(!before.libraries_only, !now.libraries_only)
            })
        };
        later.forced().filter(is_worse).map(|now| now.why)
    }
}

/// Of a file that defines an unwinder itself, whether anything else in it raises.
fn raises(image: &Image) -> bool {
    match image.unwinds().raises {
        Raises::No => false,
        Raises::Yes => true,
        Raises::WhereCalled => {
            let (functions, calls) = (image.functions(), image.calls());
            let starts = |n: usize| {
                functions[n]
                    .names()
                    .any(|name| is_raising_import(name) && !name.starts_with("_Z"))
            };
            let own = |name: &str| {
                const OWN: [&str; 5] = ["_Unwind_", "__cxa_", "__gcc_", "__libunwind", "__pthread"];
                OWN.iter().any(|prefix| name.starts_with(prefix))
            };
            calls.nodes.iter().enumerate().any(|(n, node)| {
                let calls_it = |to: &To| matches!(to, To::Function(to) if starts(*to as usize));
                (starts(n) && node.address_taken)
                    || (!functions[n].names().any(own)
                        && node.edges.iter().any(|e| calls_it(&e.to)))
            })
        }
    }
}

/// An allocator written in C with `operator new` beside it (jemalloc, mimalloc): whatever raises or
/// has landing pads is an `operator new`, or called by nothing else. Who uses that counts itself.
fn only_allocates(image: &Image, imported: &HashSet<&str>) -> bool {
    let (functions, calls) = (image.functions(), image.calls());
    let is_operator = |name: &str| {
        const OPERATORS: [&str; 4] = ["_Znw", "_Zna", "_Zdl", "_Zda"];
        OPERATORS.iter().any(|prefix| name.starts_with(prefix))
    };
    let operator: Vec<bool> = functions
        .iter()
        .map(|f| f.names().any(is_operator))
        .collect();
    if !operator.contains(&true) {
        return false;
    }
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    for (n, node) in calls.nodes.iter().enumerate() {
        for edge in &node.edges {
            if let To::Function(to) = edge.to {
                callers[to as usize].push(n);
            }
        }
    }
    let raising = |n: usize| {
        functions[n].has_lsda
            || calls.nodes[n].edges.iter().any(|e| match e.to {
                To::Import(i) => is_raising_import(&calls.imports[i as usize]),
                To::Function(to) => functions[to as usize].names().any(is_raising_import),
            })
    };
    let mut seen = operator;
    let mut left: Vec<usize> = (0..functions.len())
        .filter(|n| !seen[*n] && raising(*n))
        .collect();
    // Up to the operators: on the way nothing may be reachable from elsewhere.
    while let Some(n) = left.pop() {
        if std::mem::replace(&mut seen[n], true) {
            continue;
        }
        let elsewhere = calls.nodes[n].address_taken
            || callers[n].is_empty()
            || functions[n].names().any(|name| imported.contains(name));
        if elsewhere {
            return false;
        }
        left.extend(&callers[n]);
    }
    true
}

/// Whether frames of this role have clean-ups whatever the program is like.
pub fn is_library(image: &Image) -> bool {
    matches!(
        image.unwinds().role,
        Role::SystemLibrary | Role::LanguageRuntime
    )
}
