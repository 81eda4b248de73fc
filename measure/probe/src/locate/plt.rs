//! Names behind PLT stubs and GOT slots: which imported function a call goes to.
use iced_x86::{Code, Decoder, DecoderOptions};
use object::{
    Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, elf,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

#[derive(Debug, Default)]
pub struct Imports {
    /// GOT slot → symbol.
    slots: HashMap<u64, String>,
    plt: Vec<(Range<u64>, Vec<u8>)>,
    /// Addresses that the dynamic linker writes into data, ascending.
    pointers: Vec<u64>,
    /// Symbols whose addresses it writes there.
    named_pointers: HashSet<String>,
}

impl Imports {
    pub fn read(file: &object::File) -> Imports {
        let mut imports = Imports::default();
        if let (Some(relocations), Some(symbols)) =
            (file.dynamic_relocations(), file.dynamic_symbol_table())
        {
            for (at, relocation) in relocations {
                if let RelocationTarget::Symbol(index) = relocation.target()
                    && let Ok(symbol) = symbols.symbol_by_index(index)
                    && let Ok(name) = symbol.name()
                {
                    imports.slots.insert(at, name.to_owned());
                    let flags = relocation.flags();
                    if let RelocationFlags::Elf { r_type } = flags
                        && r_type == elf::R_X86_64_64
                    {
                        let bare = name.split('@').next().unwrap_or(name);
                        imports.named_pointers.insert(bare.to_owned());
                    }
                }
                if relocation.target() == RelocationTarget::Absolute {
                    imports.pointers.push(relocation.addend() as u64);
                }
            }
            imports.pointers.sort_unstable();
        }
        for section in file.sections() {
            if section.name().is_ok_and(|n| n.starts_with(".plt"))
                && let Ok(data) = section.data()
                && let Some(end) = section.address().checked_add(data.len() as u64)
            {
                imports.plt.push((section.address()..end, data.to_vec()));
            }
        }
        imports
    }

    /// Whether data of the file holds this address (position-independent files).
    pub fn is_pointed_to(&self, svma: u64) -> bool {
        self.pointers.binary_search(&svma).is_ok()
    }

    /// Whether data of the file holds the address of what a symbol of this name is bound to.
    pub fn is_symbol_pointed_to(&self, name: &str) -> bool {
        self.named_pointers.contains(name)
    }

    /// All those addresses, ascending.
    pub fn pointers(&self) -> &[u64] {
        &self.pointers
    }

    /// Names of everything imported, some more than once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.values().map(String::as_str)
    }

    pub fn slot(&self, at: u64) -> Option<&str> {
        self.slots.get(&at).map(String::as_str)
    }

    pub fn is_stub(&self, at: u64) -> bool {
        self.plt.iter().any(|(range, _)| range.contains(&at))
    }

    /// The symbol that a stub at `at` jumps to.
    pub fn stub(&self, at: u64) -> Option<&str> {
        let (range, bytes) = self.plt.iter().find(|(range, _)| range.contains(&at))?;
        let code = &bytes[(at - range.start) as usize..];
        let decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        // An optional endbr64, then `jmp [rip + slot]`.
        let jump = decoder
            .into_iter()
            .take(2)
            .find(|i| i.code() == Code::Jmp_rm64)?;
        self.slot(jump.ip_rel_memory_address())
    }
}
