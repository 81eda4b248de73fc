//! Functions that inspect their return address (dlsym …), and those that end in a jump to one:
//! behind a tail call, the address that is looked at is that of the one before.
use super::never;
use crate::locate::{CallerSensitive, Function, Image};
use std::collections::HashMap;
use std::sync::Arc;

/// Of one module: with what the other modules of the process say, of this one alone until they are asked.
pub fn of(image: &Image) -> Arc<CallerSensitive> {
    image.known_sensitive().unwrap_or_else(|| {
        close(std::iter::once(image));
        image.known_sensitive().unwrap_or_default()
    })
}

/// Looks through all modules of a process, until none finds more: a function that ends in a jump
/// may be imported by another module, or by name by its own.
pub fn close<'a>(images: impl Iterator<Item = &'a Image> + Clone) {
    let mut names: HashMap<String, String> = HashMap::new();
    loop {
        let before = names.len();
        for image in images.clone() {
            let found = CallerSensitive::find(image, &names);
            names.extend(found.names(image));
            image.learn_sensitive(found);
        }
        if names.len() == before {
            return;
        }
    }
}

impl CallerSensitive {
    /// With `elsewhere` known of other modules.
    pub fn find(image: &Image, elsewhere: &HashMap<String, String>) -> CallerSensitive {
        let mut found = CallerSensitive {
            functions: HashMap::new(),
            elsewhere: elsewhere.clone(),
        };
        let own = |f: &&Function| names_of(f).any(never::is_caller_sensitive);
        let seeds: Vec<&Function> = image.functions().iter().filter(own).collect();
        let imported = image.imported().any(|name| found.by_name(name).is_some());
        // Most modules have nothing to do with any of them, and are not decoded for it.
        if seeds.is_empty() && !imported {
            return found;
        }
        let mut jumpers: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut next: Vec<(u64, String)> = Vec::new();
        let held = Held::of(image.functions());
        for (from, to) in image.branch_targets().jumps() {
            let Some(function) = held.by(*from).filter(|f| f != to) else {
                continue;
            };
            match image.stub_symbol(*to).and_then(|name| found.by_name(name)) {
                Some(leads_to) => next.push((function, leads_to)),
                None => jumpers.entry(*to).or_default().push(function),
            }
        }
        for (from, slot) in image.branch_targets().slot_jumps() {
            let symbol = image.slot_symbol(*slot);
            let leads_to = symbol.and_then(|name| found.by_name(name));
            if let (Some(function), Some(leads_to)) = (held.by(*from), leads_to) {
                next.push((function, leads_to));
            }
        }
        let before_seed = |f: &&Function| (f.svma, f.raw_name.clone());
        for (seed, name) in seeds.iter().map(before_seed) {
            let jump = jumpers.get(&seed).into_iter().flatten();
            next.extend(jump.map(|f| (*f, name.clone())));
        }
        while let Some((function, leads_to)) = next.pop() {
            if found.functions.contains_key(&function) {
                continue;
            }
            for jumper in jumpers.get(&function).into_iter().flatten() {
                next.push((*jumper, leads_to.clone()));
            }
            found.functions.insert(function, leads_to);
        }
        found
    }

    /// What a call of `name` leads to, where that looks at its caller.
    pub fn by_name(&self, name: &str) -> Option<String> {
        let name = name.split('@').next().unwrap_or(name);
        match never::is_caller_sensitive(name) {
            true => Some(name.to_owned()),
            false => self.elsewhere.get(name).cloned(),
        }
    }

    /// What a call of the function at `svma` leads to.
    pub fn by_address(&self, svma: u64) -> Option<&str> {
        self.functions.get(&svma).map(String::as_str)
    }

    fn names(&self, image: &Image) -> Vec<(String, String)> {
        let functions = image.functions().iter();
        let leading = functions.filter_map(|f| Some((f, self.functions.get(&f.svma)?)));
        leading
            .flat_map(|(f, to)| names_of(f).map(move |name| (name.to_owned(), to.clone())))
            .collect()
    }
}

fn names_of(f: &Function) -> impl Iterator<Item = &str> {
    std::iter::once(&f.raw_name)
        .chain(&f.aliases)
        .map(|name| name.split('@').next().unwrap_or(name))
}

/// Which function an instruction belongs to: ascending start, end, function's address.
struct Held(Vec<(u64, u64, u64)>);

impl Held {
    fn of(functions: &[Function]) -> Held {
        let mut held = Vec::with_capacity(functions.len());
        for f in functions {
            held.push((f.svma, f.svma.saturating_add(f.size), f.svma));
            held.extend(f.fragments.iter().map(|r| (r.start, r.end, f.svma)));
        }
        held.sort_unstable();
        Held(held)
    }

    fn by(&self, at: u64) -> Option<u64> {
        let n = self.0.partition_point(|(start, ..)| *start <= at);
        let (_, end, function) = self.0[n.checked_sub(1)?];
        (at < end).then_some(function)
    }
}
