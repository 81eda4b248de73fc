//! One list of functions out of every source a file has.
use super::eh_frame::Fde;
use super::names::{demangle, fragment_of};
use super::unwinds::bare;
use object::{Object, ObjectSymbol, SymbolFlags, SymbolKind, elf};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// End of the executable section that an address lies in.
pub type TextEnd<'a> = &'a dyn Fn(u64) -> Option<u64>;

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
    /// Its unwind entry begins with a frame in place: jumped to, not called.
    pub has_frame_at_entry: bool,
}

impl Function {
    /// Of all its pieces; the first one begins with the entry.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let entry = self.svma..self.svma + self.size;
        std::iter::once(entry)
            .chain(self.fragments.iter().cloned())
            .collect()
    }

    /// All names of the address, without versions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.aliases.iter().map(String::as_str);
        std::iter::once(self.raw_name.as_str())
            .chain(aliases)
            .map(bare)
    }
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
    /// `.cold` pieces: name, start, size.
    fragments: Vec<(String, u64, u64)>,
}

/// What a file has, before anybody knows who calls and who jumps.
pub struct Sorted {
    /// Ascending by address.
    pub functions: Vec<Function>,
    /// Named as pieces of a function.
    pub pieces: Vec<(String, Range<u64>)>,
    /// Without a name, and entered with a frame. Ascending.
    pub parts: Vec<Range<u64>>,
}

impl Symbols {
    /// Adds both tables of `file`; what lies in no executable section is left out.
    pub fn add(&mut self, file: &object::File, debug_file: bool, text_end: TextEnd) {
        let symtab = if debug_file {
            NameSource::DebugFile
        } else {
            NameSource::Symtab
        };
        for s in file.symbols() {
            self.symbol(&s, symtab, text_end);
        }
        for s in file.dynamic_symbols() {
            self.symbol(&s, NameSource::Dynsym, text_end);
        }
    }

    fn symbol<'d>(&mut self, s: &impl ObjectSymbol<'d>, source: NameSource, text_end: TextEnd) {
        let SymbolFlags::Elf { st_info, .. } = s.flags() else {
            return;
        };
        let ifunc = st_info & 0xf == elf::STT_GNU_IFUNC;
        // Hand-written code often has no type: take such labels only when they have a size.
        let untyped = s.kind() == SymbolKind::Unknown && s.size() > 0;
        if !(s.kind() == SymbolKind::Text || ifunc || untyped)
            || s.is_undefined()
            || text_end(s.address()).is_none()
        {
            return;
        }
        let Ok(name) = s.name() else { return };
        if name.is_empty() {
            return;
        }
        if fragment_of(name).is_some() {
            self.fragments
                .push((name.to_owned(), s.address(), s.size()));
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
        // The linker may have folded thousands into one: names given twice go later, all at once.
        if named.name != name {
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

    pub fn sorted(self, fdes: &[Fde], text_end: TextEnd) -> Sorted {
        let by_start: HashMap<u64, &Fde> = fdes.iter().map(|f| (f.svma, f)).collect();
        let mut starts: Vec<u64> = self.functions.keys().copied().collect();
        starts.extend(fdes.iter().map(|f| f.svma));
        starts.sort_unstable();
        let sized = |svma: u64, told: u64| {
            let end = text_end(svma).unwrap_or(svma);
            let next = starts.get(starts.partition_point(|s| *s <= svma));
            let fits = |size: &u64| *size > 0 && svma.checked_add(*size).is_some_and(|e| e <= end);
            // A size that leaves the section is damaged: worth no more than none.
            Some(told)
                .filter(fits)
                .or_else(|| by_start.get(&svma).map(|f| f.size).filter(fits))
                .unwrap_or_else(|| next.map_or(end, |n| end.min(*n)) - svma)
        };
        let mut functions: Vec<Function> = Vec::with_capacity(starts.len());
        for (svma, mut named) in self.functions {
            let mut seen = HashSet::from([named.name.clone()]);
            named.aliases.retain(|alias| seen.insert(alias.clone()));
            let fde = by_start.get(&svma);
            functions.push(Function {
                name: demangle(&named.name),
                raw_name: named.name,
                aliases: named.aliases,
                svma,
                size: sized(svma, named.size),
                source: named.source,
                fragments: Vec::new(),
                has_lsda: fde.is_some_and(|f| f.has_lsda),
                has_fde: fde.is_some(),
                ifunc: named.ifunc,
                has_frame_at_entry: fde.is_some_and(|f| f.is_fragment),
            });
        }
        let pieces: Vec<(String, Range<u64>)> = self
            .fragments
            .into_iter()
            .map(|(name, at, size)| (name, at..at + sized(at, size)))
            .filter(|(_, range)| !range.is_empty())
            .collect();
        let named_piece: HashSet<u64> = pieces.iter().map(|(_, range)| range.start).collect();
        let covered = |at: u64| {
            let i = functions.partition_point(|f| f.svma <= at);
            i.checked_sub(1)
                .is_some_and(|i| at - functions[i].svma < functions[i].size.max(1))
        };
        let nameless = |f: &&Fde| {
            let inside = text_end(f.svma).is_some_and(|end| f.size <= end - f.svma);
            inside && !covered(f.svma) && !named_piece.contains(&f.svma)
        };
        let (parts, whole): (Vec<&Fde>, Vec<&Fde>) =
            fdes.iter().filter(nameless).partition(|f| f.is_fragment);
        functions.extend(whole.into_iter().map(of_fde));
        functions.sort_by_key(|f| f.svma);
        let mut parts: Vec<Range<u64>> = parts.iter().map(|f| f.svma..f.svma + f.size).collect();
        parts.sort_by_key(|range| range.start);
        Sorted {
            functions,
            pieces,
            parts,
        }
    }
}

impl Function {
    /// A fragment by its name, and called all the same.
    pub fn of_piece(name: String, range: Range<u64>, fdes: &HashMap<u64, &Fde>) -> Function {
        let fde = fdes.get(&range.start);
        Function {
            name: demangle(&name),
            raw_name: name,
            aliases: Vec::new(),
            svma: range.start,
            size: range.end - range.start,
            source: NameSource::Symtab,
            fragments: Vec::new(),
            has_lsda: fde.is_some_and(|f| f.has_lsda),
            has_fde: fde.is_some(),
            ifunc: false,
            has_frame_at_entry: fde.is_some_and(|f| f.is_fragment),
        }
    }
}

fn of_fde(f: &Fde) -> Function {
    Function {
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
        has_frame_at_entry: false,
    }
}
