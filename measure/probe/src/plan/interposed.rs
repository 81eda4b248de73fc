//! Functions that stay as they are, and are measured where modules call them through their GOT slots.
use super::{Opened, Plan};
use crate::instrument::body::{NoSlot, Refusal};
use crate::live::led_slot::LedSlot;
use crate::locate::pattern::Pattern;
use crate::locate::{Export, Function, GotSlot, Image, Load, NameSource, basename};
use hopscope_process::AttachError;
use hopscope_process::memory::TargetMemory;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// How calls are led into the copies of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By a jump where it has room, else by GOT slots where there are any. What was named and cannot be measured so is timed
    /// where it is called.
    #[default]
    Auto,
    /// By a jump at the function's entry: whoever calls it.
    Jump,
    /// By the GOT slots of modules that call it: nothing is written to the function.
    Got,
    /// Not at all: calls are timed where they are made.
    Calls,
}

/// Behind the name of a function, before those of the modules.
pub const CALLED_FROM: &str = " [called from ";

/// Who calls a function through slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Led {
    pub(super) slots: Vec<LedSlot>,
    /// File names of the modules.
    callers: BTreeSet<String>,
    /// Of those whose slots do not lead into it.
    not_led: BTreeSet<String>,
}

/// The slots of a process.
pub(super) struct Slots {
    /// By the address that they hold, or are going to.
    pub(super) by_function: HashMap<u64, Vec<Slot>>,
    pub(super) images: Vec<Arc<Image>>,
    paths: Vec<String>,
    /// Files whose slots are not known.
    pub(super) unknown: Vec<String>,
}

pub(super) struct Slot {
    /// Of the process, by number: the one that calls.
    pub(super) module: usize,
    pub(super) of_file: GotSlot,
    led: LedSlot,
}

impl Slots {
    /// # Errors
    /// Its memory cannot be read.
    pub(super) fn of(pid: i32, opened: &[Opened]) -> Result<Slots, AttachError> {
        let memory = TargetMemory::open(pid)?;
        let mut slots = Slots {
            by_function: HashMap::new(),
            images: opened.iter().map(|(_, image, _)| image.clone()).collect(),
            paths: opened
                .iter()
                .map(|(module, ..)| module.path.display().to_string())
                .collect(),
            unknown: Vec::new(),
        };
        let blind = opened.iter().filter(|(_, image, _)| !image.has_sections());
        let blind = blind.map(|(module, ..)| basename(&module.path).to_owned());
        slots.unknown.extend(blind);
        let mut unbound = Vec::new();
        for (n, (module, image, _)) in opened.iter().enumerate() {
            let load = Some(Load::of(module, image));
            for of_file in image.got_slots() {
                let at = of_file.svma.wrapping_add(module.bias);
                let mut word = [0; 8];
                // A slot that was never mapped, or is gone.
                if memory.read(at, &mut word).is_err() {
                    continue;
                }
                let found = u64::from_le_bytes(word);
                let slot = Slot {
                    module: n,
                    led: LedSlot { at, found, load },
                    of_file,
                };
                let is_unbound = slot.of_file.of_stub
                    && module.avma_range.contains(&found)
                    && image.is_stub(found.wrapping_sub(module.bias));
                match is_unbound {
                    true => unbound.push(slot),
                    false => slots.by_function.entry(found).or_default().push(slot),
                }
            }
        }
        if !unbound.is_empty() {
            slots.foresee(unbound, &Definitions::of(pid, opened));
        }
        Ok(slots)
    }

    /// Those of some modules, by number.
    pub(super) fn only_of(mut self, is_wanted: impl Fn(usize) -> bool) -> Slots {
        for slots in self.by_function.values_mut() {
            slots.retain(|slot| is_wanted(slot.module));
        }
        self.by_function.retain(|_, slots| !slots.is_empty());
        self
    }

    /// Whether any leads, or is going to lead, to what lies at `function`.
    pub(super) fn lead_to(&self, function: u64) -> bool {
        self.by_function.contains_key(&function)
    }

    /// The function, with the names of slots that hold its address beside its own.
    pub(super) fn named(&self, address: u64, function: &Function) -> Option<Function> {
        let slots = self.by_function.get(&address)?.iter();
        let mut symbols: Vec<&String> = slots.map(|slot| &slot.of_file.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let known = |name: &&String| **name == function.raw_name || function.aliases.contains(name);
        symbols.retain(|name| !known(name));
        let first = symbols.first()?;
        let mut named = function.clone();
        if function.source == NameSource::EhFrame {
            (named.name, named.raw_name) = ((*first).clone(), (*first).clone());
        }
        named.aliases.extend(symbols.into_iter().cloned());
        Some(named)
    }

    /// Those that nobody has called through yet.
    fn foresee(&mut self, unbound: Vec<Slot>, definitions: &Definitions) {
        for slot in unbound {
            let found = definitions.by_name.get(&slot.of_file.symbol);
            let fixed = found.into_iter().flatten().filter(|d| !d.is_chosen_later);
            for definition in fixed {
                let function = definition.at;
                let found = match definitions.is_certain(definition, &slot.of_file.symbol) {
                    true => slot.led.found,
                    // It is known once the dynamic linker has written it.
                    false => function,
                };
                self.by_function.entry(function).or_default().push(Slot {
                    module: slot.module,
                    of_file: slot.of_file.clone(),
                    led: LedSlot { found, ..slot.led },
                });
            }
        }
    }

    /// Through which slots `callers` (empty: all modules) call what lies at `function`.
    pub(super) fn to(&self, function: u64, callers: &[&Pattern]) -> Result<Led, NoSlot> {
        let is_asked_for = |slot: &&Slot| {
            let path = &self.paths[slot.module];
            callers.is_empty() || callers.iter().any(|c| c.matches_module(path))
        };
        let all = self.by_function.get(&function).into_iter().flatten();
        let mut found = Led::default();
        for slot in all.filter(is_asked_for) {
            let name = basename(self.paths[slot.module].as_ref());
            let reads = self.images[slot.module].slot_reads();
            match reads.is_only_called(&slot.of_file) {
                true => {
                    found.slots.push(slot.led);
                    found.callers.insert(name.to_owned());
                }
                false => drop(found.not_led.insert(name.to_owned())),
            }
        }
        match (found.slots.is_empty(), found.not_led.first()) {
            (false, _) => Ok(found),
            (true, Some(module)) => Err(NoSlot::ReadOtherwise(module.as_str().into())),
            (true, None) => Err(NoSlot::Nobody),
        }
    }
}

impl Led {
    /// What a function is called of which only these calls are measured.
    pub(super) fn name(&self, function: &str) -> String {
        const NAMED: usize = 2;
        let names: Vec<&str> = self.callers.iter().map(String::as_str).collect();
        let callers = match names.len() {
            ..=NAMED => names.join(", "),
            n => format!("{n} modules"),
        };
        format!("{function}{CALLED_FROM}{callers}]")
    }
}

impl Plan {
    /// Modules whose calls of a function are not among those that are measured.
    pub(super) fn refuse_callers(&mut self, led: &Led, module: &str, function: &Function) {
        for caller in &led.not_led {
            let name = format!("{} [called from {caller}]", function.name);
            let why = NoSlot::ReadOtherwise(caller.as_str().into());
            self.refuse(module, &name, function.svma, why.to_string());
        }
    }
}

/// By a jump, or by slots: whatever `method` and `only_callers` allow.
pub(super) fn choose<T>(
    (method, only_callers): (Method, bool),
    by_jump: impl FnOnce() -> Result<T, Refusal>,
    by_slots: impl FnOnce() -> Result<T, Refusal>,
    led: impl FnOnce() -> Result<Led, NoSlot>,
) -> Result<(T, Option<Led>), Refusal> {
    if only_callers {
        // What they do not call is not asked for.
        let led = led().map_err(Refusal::NoSlot)?;
        return Ok((by_slots()?, Some(led)));
    }
    if method == Method::Got {
        let accepted = by_slots()?;
        return Ok((accepted, Some(led().map_err(Refusal::NoSlot)?)));
    }
    match by_jump() {
        Err(why) if method != Method::Jump && why.is_of_the_entry() => match led() {
            Ok(led) => Ok((by_slots()?, Some(led))),
            Err(_) => Err(why),
        },
        judged => Ok((judged?, None)),
    }
}

/// What the dynamic linker may bind a symbol to.
struct Definitions {
    by_name: HashMap<String, Vec<Definition>>,
    /// What audits the dynamic linker (rtld-audit(7)) may have it bind to something else.
    audited: bool,
}

struct Definition {
    /// In the process.
    at: u64,
    /// Of a module that was loaded with the program: it is found before those of modules loaded later.
    from_the_start: bool,
    is_chosen_later: bool,
}

impl Definitions {
    fn of(pid: i32, opened: &[Opened]) -> Definitions {
        let needed = needed_by_the_program(pid, opened);
        let mut by_name: HashMap<String, Vec<Definition>> = HashMap::new();
        for (n, (module, image, _)) in opened.iter().enumerate() {
            let exports = image.exports().into_iter();
            for Export {
                symbol,
                svma,
                is_chosen_later,
            } in exports
            {
                let definition = Definition {
                    at: svma.wrapping_add(module.bias),
                    from_the_start: needed.contains(&n),
                    is_chosen_later,
                };
                by_name.entry(symbol).or_default().push(definition);
            }
        }
        Definitions {
            audited: by_name.contains_key("la_version"),
            by_name,
        }
    }

    /// Whether nothing else can be found for it: several versions of a symbol are several definitions.
    fn is_certain(&self, definition: &Definition, symbol: &str) -> bool {
        let only_one = self.by_name.get(symbol).is_some_and(|all| all.len() == 1);
        only_one && definition.from_the_start && !definition.is_chosen_later && !self.audited
    }
}

/// The program and what it needs, directly or not: modules by number.
fn needed_by_the_program(pid: i32, opened: &[Opened]) -> HashSet<usize> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let is_program = |(module, ..): &Opened| Some(&module.path) == program.as_ref();
    let all: Vec<_> = opened.iter().map(|(_, i, _)| i.dependencies()).collect();
    let mut found: HashSet<usize> = opened.iter().position(is_program).into_iter().collect();
    let mut open: Vec<usize> = found.iter().copied().collect();
    while let Some(n) = open.pop() {
        for needed in &all[n].needed {
            // A path where the file was linked with by its path, and has no name of its own.
            let needed = basename(needed.as_ref());
            let is_it = |m: &usize| {
                let file = basename(&opened[*m].0.path);
                all[*m].soname.as_deref().unwrap_or(file) == needed
            };
            if let Some(m) = (0..opened.len()).find(is_it)
                && found.insert(m)
            {
                open.push(m);
            }
        }
    }
    found
}
