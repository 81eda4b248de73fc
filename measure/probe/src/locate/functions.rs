//! One list of functions out of every source a file has.
use super::eh_frame::Fde;
use super::names::{demangle, fragment_of};
use object::{Object, ObjectSymbol, SymbolFlags, SymbolKind, elf};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSource {
    Symtab,
    Dynsym,
    DebugFile,
    EhFrame,
}

impl NameSource {
    pub fn as_str(self) -> &'static str {
        match self {
            NameSource::Symtab => "symtab",
            NameSource::Dynsym => "dynsym",
            NameSource::DebugFile => "debug file",
            NameSource::EhFrame => "eh_frame",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Function {
    /// For people: demangled.
    pub name: String,
    /// As in the symbol table.
    pub raw_name: String,
    /// Other names of the same address.
    pub aliases: Vec<String>,
    pub svma: u64,
    pub size: u64,
    pub source: NameSource,
    /// Pieces elsewhere that belong to it (`.cold`).
    pub fragments: Vec<Range<u64>>,
    pub has_lsda: bool,
    pub has_fde: bool,
    /// An IFUNC: the address is the resolver's.
    pub ifunc: bool,
}

struct Named {
    name: String,
    size: u64,
    source: NameSource,
    ifunc: bool,
    aliases: Vec<String>,
}

/// What the symbol tables of a file say, by address.
#[derive(Default)]
pub struct Symbols {
    functions: BTreeMap<u64, Named>,
    /// `.cold` pieces: (name of the function, start, size).
    fragments: Vec<(String, u64, u64)>,
}

impl Symbols {
    /// Adds both tables of `file`; `in_text` says what lies in an executable section.
    pub fn add(&mut self, file: &object::File, debug_file: bool, in_text: &dyn Fn(u64) -> bool) {
        let symtab = if debug_file {
            NameSource::DebugFile
        } else {
            NameSource::Symtab
        };
        for s in file.symbols() {
            self.symbol(&s, symtab, in_text);
        }
        for s in file.dynamic_symbols() {
            self.symbol(&s, NameSource::Dynsym, in_text);
        }
    }

    fn symbol<'d>(
        &mut self,
        s: &impl ObjectSymbol<'d>,
        source: NameSource,
        in_text: &dyn Fn(u64) -> bool,
    ) {
        let SymbolFlags::Elf { st_info, .. } = s.flags() else {
            return;
        };
        let ifunc = st_info & 0xf == elf::STT_GNU_IFUNC;
        // Hand-written code often has no type: take such labels only when they have a size.
        let untyped = s.kind() == SymbolKind::Unknown && s.size() > 0;
        if !(s.kind() == SymbolKind::Text || ifunc || untyped)
            || s.is_undefined()
            || !in_text(s.address())
        {
            return;
        }
        let Ok(name) = s.name() else { return };
        if name.is_empty() {
            return;
        }
        if let Some(parent) = fragment_of(name) {
            self.fragments
                .push((parent.to_owned(), s.address(), s.size()));
            return;
        }
        let named = self.functions.entry(s.address()).or_insert_with(|| Named {
            name: name.to_owned(),
            size: s.size(),
            source,
            ifunc,
            aliases: Vec::new(),
        });
        named.ifunc |= ifunc;
        named.size = named.size.max(s.size());
        if named.name != name && !named.aliases.iter().any(|a| a == name) {
            // Of `__GI_foo`, `foo`: what people call it comes first.
            if named.name.starts_with('_') && !name.starts_with('_') {
                named
                    .aliases
                    .push(std::mem::replace(&mut named.name, name.to_owned()));
            } else {
                named.aliases.push(name.to_owned());
            }
        }
    }

    /// Ascending by address.
    pub fn into_functions(self, fdes: &[Fde], in_text: &dyn Fn(u64) -> bool) -> Vec<Function> {
        let by_start: HashMap<u64, &Fde> = fdes.iter().map(|f| (f.svma, f)).collect();
        let mut functions: Vec<Function> = Vec::with_capacity(self.functions.len());
        let starts: Vec<u64> = self.functions.keys().copied().collect();
        let named_fragment: HashMap<u64, ()> =
            self.fragments.iter().map(|(_, at, _)| (*at, ())).collect();
        for (n, (svma, named)) in self.functions.into_iter().enumerate() {
            let fde = by_start.get(&svma);
            let next = starts.get(n + 1).copied().unwrap_or(u64::MAX);
            let size = match (named.size, fde) {
                (0, Some(fde)) => fde.size.min(next - svma),
                (size, _) => size,
            };
            functions.push(Function {
                name: demangle(&named.name),
                raw_name: named.name,
                aliases: named.aliases,
                svma,
                size,
                source: named.source,
                fragments: Vec::new(),
                has_lsda: fde.is_some_and(|f| f.has_lsda),
                has_fde: fde.is_some(),
                ifunc: named.ifunc,
            });
        }
        let covered = |at: u64| {
            let i = starts.partition_point(|s| *s <= at);
            i.checked_sub(1)
                .is_some_and(|i| at - functions[i].svma < functions[i].size.max(1))
        };
        let nameless: Vec<Function> = fdes
            .iter()
            .filter(|f| {
                !f.is_fragment
                    && in_text(f.svma)
                    && !covered(f.svma)
                    && !named_fragment.contains_key(&f.svma)
            })
            .map(|f| Function {
                name: format!("fn_{:x}", f.svma),
                raw_name: format!("fn_{:x}", f.svma),
                aliases: Vec::new(),
                svma: f.svma,
                size: f.size,
                source: NameSource::EhFrame,
                fragments: Vec::new(),
                has_lsda: f.has_lsda,
                has_fde: true,
                ifunc: false,
            })
            .collect();
        functions.extend(nameless);
        functions.sort_by_key(|f| f.svma);
        attach_fragments(&mut functions, &self.fragments, &by_start);
        functions
    }
}

fn attach_fragments(
    functions: &mut [Function],
    named: &[(String, u64, u64)],
    fdes: &HashMap<u64, &Fde>,
) {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, f) in functions.iter().enumerate() {
        for name in std::iter::once(&f.raw_name).chain(&f.aliases) {
            by_name.entry(name).or_default().push(i);
        }
    }
    let mut found = Vec::new();
    for (parent, at, size) in named {
        let size = if *size == 0 {
            fdes.get(at).map_or(0, |f| f.size)
        } else {
            *size
        };
        // Static functions of several files may share a name: only a sole owner is certain.
        if let Some([owner]) = by_name.get(parent.as_str()).map(Vec::as_slice)
            && size > 0
        {
            found.push((*owner, *at..*at + size));
        }
    }
    for (owner, range) in found {
        let has_lsda = fdes.get(&range.start).is_some_and(|f| f.has_lsda);
        let f = &mut functions[owner];
        f.has_lsda |= has_lsda;
        if !f.fragments.contains(&range) {
            f.fragments.push(range);
        }
    }
}
