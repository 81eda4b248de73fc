//! Files that a process has mapped.
use super::error::LocateError;
use crate::live::maps::{self, Mapping};
use object::{Object, ObjectSegment, SegmentFlags, elf};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct TextMapping {
    pub avma: Range<u64>,
    pub file_offset: u64,
    /// MAP_SHARED: a change would be seen elsewhere.
    pub shared: bool,
}

#[derive(Debug, Clone)]
pub struct MappedModule {
    /// As the target names it.
    pub path: PathBuf,
    /// Address in the process minus address in the file (wrapping).
    pub bias: u64,
    pub text: Vec<TextMapping>,
    /// Lowest to highest mapping of the file, with what lies between.
    pub avma_range: Range<u64>,
    pub deleted: bool,
    inode: u64,
}

const DELETED: &str = " (deleted)";

/// Modules with code, in address order. The vdso and anonymous code are not files and not listed.
pub fn mapped_modules(pid: i32) -> Result<Vec<MappedModule>, LocateError> {
    let mappings = maps::read(pid).map_err(|source| LocateError::Process { pid, source })?;
    let mut modules: Vec<MappedModule> = Vec::new();
    for m in mappings
        .iter()
        .filter(|m| m.inode != 0 && m.name.starts_with('/') && !m.name.starts_with("/memfd:"))
    {
        let path = PathBuf::from(m.name.strip_suffix(DELETED).unwrap_or(&m.name));
        match modules
            .iter_mut()
            .find(|known| known.inode == m.inode && known.path == path)
        {
            Some(known) => {
                known.avma_range.end = known.avma_range.end.max(m.range.end);
                known.text.extend(text(m));
            }
            None => modules.push(MappedModule {
                path,
                bias: 0,
                text: text(m).into_iter().collect(),
                avma_range: m.range.clone(),
                deleted: m.name.ends_with(DELETED),
                inode: m.inode,
            }),
        }
    }
    modules.retain(|m| !m.text.is_empty());
    for module in &mut modules {
        // .bss follows the file's last mapping as anonymous memory.
        let end = module.avma_range.end;
        if let Some(bss) = mappings
            .iter()
            .find(|m| m.range.start == end && m.inode == 0 && m.name.is_empty())
        {
            module.avma_range.end = bss.range.end;
        }
        module.bias = bias(pid, module).unwrap_or(0);
    }
    Ok(modules)
}

fn text(m: &Mapping) -> Option<TextMapping> {
    let text = TextMapping {
        avma: m.range.clone(),
        file_offset: m.offset,
        shared: m.shared,
    };
    m.executable.then_some(text)
}

/// Whether the kernel keeps a shadow stack for the process: copies may then not jump to code that
/// was reached by a call.
pub fn has_shadow_stack(pid: i32) -> Result<bool, LocateError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|source| LocateError::Process { pid, source })?;
    let features = status.lines().find_map(|l| l.strip_prefix("x86_Thread_features:"));
    Ok(features.is_some_and(|f| f.split_whitespace().any(|f| f == "shstk")))
}

/// From the program header whose file offset the first text mapping covers.
fn bias(pid: i32, module: &MappedModule) -> Option<u64> {
    let data = std::fs::read(file_of(pid, module).ok()?).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let text = module.text.first()?;
    let page = |v: u64| v & !4095;
    file.segments().find_map(|s| {
        let (offset, len) = s.file_range();
        // Neighbouring segments share a page of the file: only the executable one counts.
        let SegmentFlags::Elf { p_flags } = s.flags() else {
            return None;
        };
        let executable = p_flags & elf::PF_X != 0;
        let covers = page(offset) <= text.file_offset && text.file_offset < offset + len;
        (executable && covers).then(|| {
            let svma = page(s.address()).wrapping_add(text.file_offset - page(offset));
            text.avma.start.wrapping_sub(svma)
        })
    })
}

/// A path under which the mapped file can be read here: through the process's own root, or, when
/// it was replaced or deleted, through the mapping itself.
pub fn file_of(pid: i32, module: &MappedModule) -> Result<PathBuf, LocateError> {
    let through_root = Path::new("/proc").join(pid.to_string()).join("root");
    let path = through_root.join(module.path.strip_prefix("/").unwrap_or(&module.path));
    if std::fs::metadata(&path).is_ok_and(|m| m.ino() == module.inode) {
        return Ok(path);
    }
    let range = &module.text[0].avma;
    let mapping = PathBuf::from(format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        range.start, range.end
    ));
    if std::fs::metadata(&mapping).is_ok_and(|m| m.ino() == module.inode) {
        return Ok(mapping);
    }
    Err(LocateError::Replaced {
        path: module.path.clone(),
    })
}

/// Device and inode of what is mapped.
pub fn identity_of(pid: i32, module: &MappedModule) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(file_of(pid, module).ok()?).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
