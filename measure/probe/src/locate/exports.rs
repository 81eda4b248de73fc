//! What a file defines for others, and which files it needs: where the dynamic linker finds a symbol.
use super::Image;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol, SymbolFlags, elf};

/// A definition that others may be bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Without its version.
    pub symbol: String,
    /// In the file.
    pub svma: u64,
    /// What it is bound to is chosen when the program runs (STT_GNU_IFUNC).
    pub is_chosen_later: bool,
}

/// Names by which files are known to each other (System V ABI, DT_SONAME and DT_NEEDED).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dependencies {
    pub soname: Option<String>,
    pub needed: Vec<String>,
}

impl Image {
    /// Functions that its dynamic symbol table defines.
    pub fn exports(&self) -> Vec<Export> {
        let Some(file) = self.file() else {
            return Vec::new();
        };
        let export = |symbol: object::Symbol| {
            let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                return None;
            };
            let kind = st_info & 0xf;
            let is_function = matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE);
            if symbol.is_undefined() || symbol.is_local() || !is_function {
                return None;
            }
            let name = symbol.name().ok()?;
            let bare = name.split('@').next().unwrap_or(name);
            Some(Export {
                symbol: bare.to_owned(),
                svma: symbol.address(),
                is_chosen_later: kind == elf::STT_GNU_IFUNC,
            })
        };
        file.dynamic_symbols().filter_map(export).collect()
    }

    pub fn dependencies(&self) -> Dependencies {
        match self.file() {
            Some(object::File::Elf64(file)) => read(&file).unwrap_or_default(),
            _ => Dependencies::default(),
        }
    }
}

fn read(file: &object::read::elf::ElfFile64) -> object::Result<Dependencies> {
    let (endian, data) = (file.endian(), file.data());
    let strings = file.elf_dynamic_symbol_table().strings();
    let mut found = Dependencies::default();
    for header in file.elf_header().program_headers(endian, data)? {
        for entry in header.dynamic(endian, data)?.unwrap_or_default() {
            let tag = entry.tag32(endian).unwrap_or_default();
            let name = || {
                let name = entry.string(endian, strings)?;
                Ok::<_, object::Error>(String::from_utf8_lossy(name).into_owned())
            };
            match tag {
                elf::DT_SONAME => found.soname = Some(name()?),
                elf::DT_NEEDED => found.needed.push(name()?),
                elf::DT_NULL => break,
                _ => {}
            }
        }
    }
    Ok(found)
}
