//! Addresses inside functions that something other than a branch knows: tables of instructions that
//! may fault (safe fetches, `__ex_table` and their like), labels of hand-written code. A copy of such
//! an instruction lies elsewhere, where whoever asks by its address does not find it.
use super::branches::BranchTargets;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};
use std::ops::Range;

/// What knows an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    /// A pointer in data; the targets of a function's computed jumps are such, too.
    Pointer,
    /// A section of the program's own.
    Table,
    /// A label without a size.
    Label,
    /// Code elsewhere, which takes the address.
    Code,
}

impl Known {
    pub fn as_str(self) -> &'static str {
        match self {
            Known::Pointer => "a pointer in data",
            Known::Table => "a table in a section of its own",
            Known::Label => "a label",
            Known::Code => "other code",
        }
    }
}

/// Ascending. Entries of functions are among them.
#[derive(Debug, Default)]
pub struct KnownAddresses(Vec<(u64, Known)>);

/// Sections that compilers, linkers and tool chains make: no table of the program's own is there.
const ORDINARY: [&str; 24] = [
    ".rodata",
    ".data",
    ".eh_frame",
    ".gcc_except_table",
    ".init_array",
    ".fini_array",
    ".preinit_array",
    ".ctors",
    ".dtors",
    ".got",
    ".dynamic",
    ".dynsym",
    ".dynstr",
    ".hash",
    ".gnu",
    ".rel",
    ".interp",
    ".note",
    ".tdata",
    ".tm_clone_table",
    ".jcr",
    ".probes",
    ".stapsdt",
    "__rseq_cs",
];

/// At least one in so many slots of a table is an address: it may have other fields.
const SHARE: usize = 4;

impl KnownAddresses {
    /// `pointers`: what the dynamic linker writes into data.
    pub fn read(file: &object::File, texts: &[Range<u64>], pointers: &[u64]) -> KnownAddresses {
        let is_text = |at: u64| texts.iter().any(|r| r.contains(&at));
        let mut known = KnownAddresses::default();
        let mut add = |at: u64, how| {
            if is_text(at) {
                known.0.push((at, how));
            }
        };
        pointers.iter().for_each(|at| add(*at, Known::Pointer));
        for section in file.sections().filter(holds_data) {
            let (Ok(data), Ok(name)) = (section.data(), section.name()) else {
                continue;
            };
            // What BOLT replaced, and left where it was.
            let name = name.strip_prefix(".bolt.org").unwrap_or(name);
            if ORDINARY.iter().any(|known| name.starts_with(known)) {
                continue;
            }
            let words = data.chunks_exact(8);
            let words = words.map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")));
            // `.long label - .`, as Linux's own tables have it.
            let distances = data.chunks_exact(4);
            let distances = distances.map(|d| i32::from_le_bytes(d.try_into().expect("4 bytes")));
            let here = |n: u64| section.address().wrapping_add(4 * n);
            let relative = (0..)
                .zip(distances)
                .map(|(n, distance)| here(n).wrapping_add_signed(distance.into()));
            for (slots, found) in [
                (
                    data.len() / 8,
                    words.filter(|at| is_text(*at)).collect::<Vec<_>>(),
                ),
                (data.len() / 4, relative.filter(|at| is_text(*at)).collect()),
            ] {
                // Few of many are numbers that happen to be addresses.
                if found.len() * SHARE >= slots {
                    found.into_iter().for_each(|at| add(at, Known::Table));
                }
            }
        }
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let is_label = symbol.kind() == SymbolKind::Unknown && symbol.size() == 0;
            let is_named = symbol.name().is_ok_and(|name| !name.is_empty());
            if is_label && is_named && !symbol.is_undefined() {
                add(symbol.address(), Known::Label);
            }
        }
        known.0.sort_unstable();
        known.0.dedup();
        known
    }

    /// Those in `range`, and what code outside of it takes the address of.
    pub fn within<'a>(
        &'a self,
        branches: &'a BranchTargets,
        range: Range<u64>,
    ) -> impl Iterator<Item = (u64, Known)> + 'a {
        let first = self.0.partition_point(|(at, _)| *at < range.start);
        let end = self.0.partition_point(|(at, _)| *at < range.end);
        let taken = branches.taken(range).map(|at| (at, Known::Code));
        self.0[first..end].iter().copied().chain(taken)
    }
}

/// In memory, with contents, and none of them code or relocations.
fn holds_data<'d>(section: &impl ObjectSection<'d>) -> bool {
    let SectionFlags::Elf { sh_flags } = section.flags() else {
        return false;
    };
    let (allocated, code) = (elf::SHF_ALLOC as u64, elf::SHF_EXECINSTR as u64);
    sh_flags & allocated != 0 && sh_flags & code == 0
}
