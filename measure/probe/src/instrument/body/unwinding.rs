//! Which functions of a process may be unwound: an exception, or the end of a thread, could pass
//! through their frame. Copies have no unwind tables, so that the program would end there, or skip
//! clean-ups.
//!
//! In most processes of C nobody raises and no thread is cancelled; then no function is. Otherwise a
//! function is safe when nothing that it calls, directly or through others, raises or waits where a
//! thread may be cancelled. Calls through pointers may do anything.
use super::hazards::{Forced, Hazards, is_library};
use super::quiet_imports::{calls_back, never_cancels};
use crate::locate::basename;
use crate::locate::{CallGraph, Function, Image, NameSource, Node, Role, To, is_raising};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The answers for each module, in the order in which they were given.
#[derive(Debug, Default)]
pub struct Unwinding {
    modules: Vec<ModuleUnwinding>,
}

/// The functions of one module that may be unwound, with who does it.
#[derive(Debug, Default)]
pub struct ModuleUnwinding {
    at_risk: HashMap<u64, Arc<str>>,
}

impl ModuleUnwinding {
    /// What may unwind the function at `svma`, if anything.
    pub fn of(&self, svma: u64) -> Option<&Arc<str>> {
        self.at_risk.get(&svma)
    }
}

impl Unwinding {
    /// `images`: every module of the process.
    pub fn of(images: &[&Image], hazards: &Hazards) -> Unwinding {
        let mut unwinding = Unwinding {
            modules: images.iter().map(|_| ModuleUnwinding::default()).collect(),
        };
        let (exceptions, forced) = (hazards.exceptions(), hazards.forced());
        if exceptions.is_none() && forced.is_none() {
            return unwinding;
        }
        let process = Process::of(images);
        if let Some(raiser) = exceptions {
            process.mark(&Passing::Exceptions { raiser }, &mut unwinding);
        }
        if let Some(forced) = &forced {
            process.mark(&Passing::ThreadEnd(forced), &mut unwinding);
        }
        unwinding
    }

    pub fn module(&self, n: usize) -> &ModuleUnwinding {
        &self.modules[n]
    }
}

/// What passes through frames.
enum Passing<'a> {
    Exceptions { raiser: &'a str },
    ThreadEnd(&'a Forced),
}

/// The call graphs of all modules as one: functions are numbered through.
struct Process<'a> {
    images: &'a [&'a Image],
    graphs: Vec<&'a CallGraph>,
    /// Number of each module's first function.
    first: Vec<usize>,
    functions: usize,
    /// Definitions of imported names outside the C library.
    defined: HashMap<&'a str, Vec<usize>>,
    system: HashSet<&'a str>,
    /// Where the C and C++ libraries define imported names: module and number in it.
    library_functions: HashMap<&'a str, Vec<(usize, usize)>>,
}

/// What a call leads to.
enum Leads<'p, 'c> {
    Nowhere,
    /// To the end of the frame: cause.
    Out(&'c Arc<str>),
    To(&'p [usize]),
}

struct Causes {
    raised: Vec<Arc<str>>,
    unknown: Arc<str>,
}

impl<'a> Process<'a> {
    fn of(images: &'a [&'a Image]) -> Process<'a> {
        decode_all(images);
        let graphs: Vec<&CallGraph> = images.iter().map(|i| i.calls()).collect();
        let imported: HashSet<&str> = graphs
            .iter()
            .flat_map(|g| g.imports.iter().map(String::as_str))
            .collect();
        let mut process = Process {
            images,
            first: Vec::new(),
            functions: 0,
            defined: HashMap::new(),
            system: HashSet::new(),
            library_functions: HashMap::new(),
            graphs,
        };
        for (m, image) in images.iter().enumerate() {
            process.first.push(process.functions);
            let system = image.unwinds().role == Role::SystemLibrary;
            for (n, function) in image.functions().iter().enumerate() {
                for name in function.names().filter(|name| imported.contains(name)) {
                    if is_library(image) {
                        process
                            .library_functions
                            .entry(name)
                            .or_default()
                            .push((m, n));
                    }
                    match system {
                        true => _ = process.system.insert(name),
                        false => process
                            .defined
                            .entry(name)
                            .or_default()
                            .push(process.functions + n),
                    }
                }
            }
            process.functions += image.functions().len();
        }
        process
    }

    fn mark(&self, passing: &Passing, unwinding: &mut Unwinding) {
        let causes = self.causes(passing);
        let reaching = self.reaching(passing, &causes);
        // In a program without clean-ups of its own only those of the libraries could be skipped.
        let beneath = match passing {
            Passing::ThreadEnd(forced) if forced.libraries_only => Some(self.beneath_clean_ups()),
            _ => None,
        };
        for (m, image) in self.images.iter().enumerate() {
            if beneath.is_some() && !is_library(image) {
                continue;
            }
            let at_risk = &mut unwinding.modules[m].at_risk;
            for (n, function) in image.functions().iter().enumerate() {
                if beneath.as_ref().is_some_and(|b| !b[self.first[m] + n]) {
                    continue;
                }
                let node = &self.graphs[m].nodes[n];
                let out = self.out_of_calls(m, function, node, passing, &causes, &reaching);
                if let Some(cause) = out {
                    at_risk
                        .entry(function.svma)
                        .or_insert_with(|| cause.clone());
                }
            }
        }
    }

    /// Functions of the C and C++ libraries that may run beneath one that has clean-ups.
    fn beneath_clean_ups(&self) -> Vec<bool> {
        let mut beneath = vec![false; self.functions];
        let mut left = Vec::new();
        let mut pointed_to = Vec::new();
        let libraries = || (0..self.images.len()).filter(|m| is_library(self.images[*m]));
        for m in libraries() {
            for (n, function) in self.images[m].functions().iter().enumerate() {
                let at = (m, n);
                if function.has_lsda {
                    left.push(at);
                }
                if self.graphs[m].nodes[n].address_taken {
                    pointed_to.push(at);
                }
            }
        }
        // The clean-ups' own functions are refused for having them; what they call is beneath.
        while let Some((m, n)) = left.pop() {
            let node = &self.graphs[m].nodes[n];
            let mut reach = |m: usize, n: usize, left: &mut Vec<(usize, usize)>| {
                if !std::mem::replace(&mut beneath[self.first[m] + n], true) {
                    left.push((m, n));
                }
            };
            for edge in &node.edges {
                match edge.to {
                    To::Function(to) => reach(m, to as usize, &mut left),
                    To::Import(name) => {
                        let name = self.graphs[m].imports[name as usize].as_str();
                        for (m, n) in self.library_functions.get(name).into_iter().flatten() {
                            reach(*m, *n, &mut left);
                        }
                    }
                }
            }
            if node.calls_unknown || node.jumps_unknown {
                for (m, n) in std::mem::take(&mut pointed_to) {
                    reach(m, n, &mut left);
                }
            }
        }
        beneath
    }

    fn causes(&self, passing: &Passing) -> Causes {
        match passing {
            Passing::Exceptions { raiser } => Causes {
                raised: self
                    .images
                    .iter()
                    .map(|i| match is_library(i) {
                        true => format!("{raiser} raises exceptions").into(),
                        false => format!("{} raises exceptions", basename(i.path())).into(),
                    })
                    .collect(),
                unknown: format!("{raiser} raises exceptions, and pointers may lead there").into(),
            },
            Passing::ThreadEnd(forced) => Causes {
                raised: vec![forced.why.as_str().into(); self.images.len()],
                unknown: forced.why.as_str().into(),
            },
        }
    }

    /// For each function, what can come out of a call of it.
    fn reaching<'c>(&self, passing: &Passing, causes: &'c Causes) -> Vec<Option<&'c Arc<str>>> {
        let mut reaching = vec![None; self.functions];
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); self.functions];
        let mut found = Vec::new();
        // What is known for certain first: it names the module.
        for certain in [true, false] {
            for (m, graph) in self.graphs.iter().enumerate() {
                for (n, node) in graph.nodes.iter().enumerate() {
                    let at = self.first[m] + n;
                    if self.is_cut(m, &self.images[m].functions()[n], passing) {
                        continue;
                    }
                    let out = match certain {
                        true => self.starts_here(m, node, passing, causes, at, &mut callers),
                        false => {
                            (node.calls_unknown || node.jumps_unknown).then_some(&causes.unknown)
                        }
                    };
                    if let (Some(cause), None) = (out, reaching[at]) {
                        reaching[at] = Some(cause);
                        found.push(at);
                    }
                }
            }
            while let Some(at) = found.pop() {
                for caller in &callers[at] {
                    if reaching[*caller as usize].is_none() {
                        reaching[*caller as usize] = reaching[at];
                        found.push(*caller as usize);
                    }
                }
            }
        }
        reaching
    }

    /// Whether something starts in `node` itself; its calls are noted in `callers`.
    fn starts_here<'c>(
        &self,
        m: usize,
        node: &Node,
        passing: &Passing,
        causes: &'c Causes,
        at: usize,
        callers: &mut [Vec<u32>],
    ) -> Option<&'c Arc<str>> {
        let mut out = self
            .waits_in_kernel(m, node, passing)
            .then(|| &causes.raised[m]);
        for edge in &node.edges {
            match self.leads(m, edge.to, passing, causes) {
                Leads::Nowhere => {}
                Leads::Out(cause) => out = out.or(Some(cause)),
                Leads::To(nodes) => nodes.iter().for_each(|to| callers[*to].push(at as u32)),
            }
            if let To::Function(to) = edge.to {
                callers[self.first[m] + to as usize].push(at as u32);
            }
        }
        out
    }

    /// Cancellation ends a thread in a system call of the C library.
    fn waits_in_kernel(&self, m: usize, node: &Node, passing: &Passing) -> bool {
        let cancels = matches!(passing, Passing::ThreadEnd(forced) if forced.cancels);
        let facts = self.images[m].unwinds();
        let library = facts.role == Role::SystemLibrary || facts.forced_unwinder;
        cancels && node.system_call && library
    }

    fn leads<'c>(&self, m: usize, to: To, passing: &Passing, causes: &'c Causes) -> Leads<'_, 'c> {
        let name = match to {
            To::Function(n) => {
                let function = &self.images[m].functions()[n as usize];
                let ends = function.names().any(|name| ends_frames(name, passing));
                return match ends {
                    true => Leads::Out(&causes.raised[m]),
                    false => Leads::Nowhere,
                };
            }
            To::Import(n) => self.graphs[m].imports[n as usize].as_str(),
        };
        if ends_frames(name, passing) {
            return Leads::Out(&causes.raised[m]);
        }
        if self.system.contains(name) {
            let waits =
                matches!(passing, Passing::ThreadEnd(f) if f.cancels && !never_cancels(name));
            return match (calls_back(name), waits) {
                (true, _) => Leads::Out(&causes.unknown),
                (false, true) => Leads::Out(&causes.raised[m]),
                (false, false) => Leads::Nowhere,
            };
        }
        match self.defined.get(name) {
            Some(nodes) => Leads::To(nodes),
            None => Leads::Out(&causes.unknown),
        }
    }

    /// Functions of the C library that are known better than by their code.
    fn is_cut(&self, m: usize, function: &Function, passing: &Passing) -> bool {
        let system = self.images[m].unwinds().role == Role::SystemLibrary;
        let cancels = matches!(passing, Passing::ThreadEnd(_));
        system && cancels && function.names().any(never_cancels)
    }

    /// What can come out of a call that `function` makes, so that it passes through its frame.
    fn out_of_calls<'c>(
        &self,
        m: usize,
        function: &Function,
        node: &Node,
        passing: &Passing,
        causes: &'c Causes,
        reaching: &[Option<&'c Arc<str>>],
    ) -> Option<&'c Arc<str>> {
        if function.names().any(|name| ends_frames(name, passing)) {
            return Some(&causes.raised[m]);
        }
        let image = self.images[m];
        let system = image.unwinds().role == Role::SystemLibrary;
        // The C library's own functions start nothing; what they are given may.
        let known =
            system && function.source == NameSource::Dynsym && !function.names().any(calls_back);
        match passing {
            Passing::ThreadEnd(forced) if forced.cancels => {
                if forced.anywhere {
                    return Some(&causes.raised[m]);
                }
                if self.is_cut(m, function, passing) {
                    return None;
                }
                if self.waits_in_kernel(m, node, passing) {
                    return Some(&causes.raised[m]);
                }
            }
            _ if known => return node.calls_unknown.then_some(&causes.unknown),
            _ => {}
        }
        let through = node
            .edges
            .iter()
            .filter(|edge| !edge.tail)
            .find_map(|edge| {
                let inside = match edge.to {
                    To::Function(n) => reaching[self.first[m] + n as usize],
                    To::Import(_) => None,
                };
                inside.or_else(|| match self.leads(m, edge.to, passing, causes) {
                    Leads::Nowhere => None,
                    Leads::Out(cause) => Some(cause),
                    Leads::To(nodes) => nodes.iter().find_map(|to| reaching[*to]),
                })
            });
        through.or_else(|| node.calls_unknown.then_some(&causes.unknown))
    }
}

fn ends_frames(name: &str, passing: &Passing) -> bool {
    match passing {
        Passing::Exceptions { .. } => is_raising(name),
        Passing::ThreadEnd(forced) => match name {
            "pthread_exit" | "__pthread_exit" | "thrd_exit" | "_Unwind_ForcedUnwind" => true,
            "__pthread_unwind" | "__pthread_unwind_next" => true,
            "pthread_testcancel" | "__pthread_testcancel" => forced.cancels,
            _ => false,
        },
    }
}

/// Decoding is nearly all of the work, and no module waits for another.
fn decode_all(images: &[&Image]) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(image) = images.get(next.fetch_add(1, Ordering::Relaxed)) {
            image.calls();
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(images.len()).min(8) {
            scope.spawn(worker);
        }
    });
}
