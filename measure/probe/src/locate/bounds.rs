//! Whether a file's tables agree with its size. Sections may lie upon each other and names may end
//! in one another, so a small file can describe any amount of code and names.
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};

/// Names that end in another name share its bytes, and two tables may share one string table.
const NAME_BYTES_PER_FILE_BYTE: usize = 4;
/// Small files have small tables, whatever they share.
const NAME_BYTES_FREE: usize = 1 << 20;
/// Linkers make some ten.
const CODE_SECTIONS_MAX: usize = 4096;

/// # Errors
/// What does not agree, in words.
pub(super) fn check(file: &object::File, file_bytes: usize) -> Result<(), String> {
    let (mut sections, mut code_bytes) = (0usize, 0u64);
    for section in file.sections().filter(is_code) {
        sections += 1;
        let bytes = section.file_range().map_or(0, |(_, bytes)| bytes);
        code_bytes = code_bytes.saturating_add(bytes);
    }
    if sections > CODE_SECTIONS_MAX {
        return Err(format!(
            "it has {sections} sections of code; up to {CODE_SECTIONS_MAX} are read"
        ));
    }
    if code_bytes > file_bytes as u64 {
        return Err(format!(
            "its sections of code have {code_bytes} bytes together, the file has {file_bytes}"
        ));
    }
    let allowed = file_bytes * NAME_BYTES_PER_FILE_BYTE + NAME_BYTES_FREE;
    let mut name_bytes = 0usize;
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        name_bytes += symbol.name_bytes().map_or(0, <[u8]>::len);
        if name_bytes > allowed {
            return Err(format!(
                "its symbols' names have more than {allowed} bytes together, the file has {file_bytes}"
            ));
        }
    }
    Ok(())
}

/// Stubs and start-up code included.
pub(super) fn is_code<'d>(section: &impl ObjectSection<'d>) -> bool {
    let executable = elf::SHF_EXECINSTR as u64;
    matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & executable != 0)
}
