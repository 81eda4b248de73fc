//! Files that a process has mapped.
use super::error::LocateError;
use super::files::{Links, open_regular};
use super::headers::{Segment, executable_segments};
use super::version::Version;
use hopscope_process::maps::{self, Mapping};
use std::fs::File;
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

/// One load of a file. A file that was loaded twice (dlmopen) is two modules.
#[derive(Debug, Clone)]
pub struct MappedModule {
    /// As the target names it.
    pub path: PathBuf,
    /// Address in the process minus address in the file (wrapping). Meaningful when
    /// [`super::Image::open_mapped`] succeeds.
    pub bias: u64,
    pub text: Vec<TextMapping>,
    /// From the lowest to the highest segment, `.bss` included, in whole pages. Other mappings of
    /// the same file, such as a program that reads itself through mmap, do not count.
    pub avma_range: Range<u64>,
    pub deleted: bool,
    inode: u64,
    /// Why `bias` is not known.
    unplaced: Option<String>,
}

impl MappedModule {
    /// The same file at the same place.
    pub fn is_same_load(&self, other: &MappedModule) -> bool {
        let of = |m: &MappedModule| (m.inode, m.deleted, m.avma_range.clone());
        self.path == other.path && of(self) == of(other)
    }

    /// `later` is a part of this load whose file could not be looked into: the process ends.
    pub fn had(&self, later: &MappedModule) -> bool {
        let file = |m: &MappedModule| (m.inode, m.deleted);
        self.path == later.path
            && file(self) == file(later)
            && (self.unplaced.is_none() && later.unplaced.is_some())
            && self.avma_range.contains(&later.avma_range.start)
    }

    /// As it is seen of a process that ends meanwhile.
    #[cfg(test)]
    pub fn of_one_that_ends(&self) -> MappedModule {
        let text = self.text[0].clone();
        MappedModule {
            bias: 0,
            avma_range: text.avma.clone(),
            text: vec![text],
            unplaced: Some("No such process".into()),
            ..self.clone()
        }
    }

    pub(super) fn inode(&self) -> u64 {
        self.inode
    }
}

const DELETED: &str = " (deleted)";
const PAGE: u64 = 4096;

/// Modules with code, in address order. The vdso and anonymous code are not files and not listed.
///
/// # Errors
/// When there is no such process, or this user may not look into it.
pub fn mapped_modules(pid: i32) -> Result<Vec<MappedModule>, LocateError> {
    let mappings = maps::read(pid).map_err(|source| LocateError::of_process(pid, source))?;
    let code = |m: &&Mapping| {
        let file = m.inode != 0 && m.name.starts_with('/') && !m.name.starts_with("/memfd:");
        m.executable && file
    };
    let mut modules: Vec<MappedModule> = Vec::new();
    for m in mappings.iter().filter(code) {
        let mut module = unplaced(m);
        let last = modules
            .iter_mut()
            .rev()
            .find(|known| known.inode == m.inode);
        if let Some(known) = last
            && known.avma_range.contains(&m.range.start)
        {
            known.text.append(&mut module.text);
            continue;
        }
        match place(pid, &module) {
            Ok((bias, avma_range)) => (module.bias, module.avma_range) = (bias, avma_range),
            Err(why) => module.unplaced = Some(why),
        }
        modules.push(module);
    }
    Ok(modules)
}

fn unplaced(m: &Mapping) -> MappedModule {
    MappedModule {
        path: PathBuf::from(m.name.strip_suffix(DELETED).unwrap_or(&m.name)),
        bias: 0,
        text: vec![TextMapping {
            avma: m.range.clone(),
            file_offset: m.offset,
            shared: m.shared,
        }],
        avma_range: m.range.clone(),
        deleted: m.name.ends_with(DELETED),
        inode: m.inode,
        unplaced: None,
    }
}

/// Bias and address range, from the program header whose part of the file the mapping shows.
fn place(pid: i32, module: &MappedModule) -> Result<(u64, Range<u64>), String> {
    let file = file_of(pid, module).map_err(|e| e.to_string())?;
    let headers = executable_segments(&file)?;
    let text = &module.text[0];
    let shown = |s: &&Segment| {
        let end = s.offset.saturating_add(s.file_size);
        s.offset & !(PAGE - 1) <= text.file_offset && text.file_offset < end
    };
    let Some(segment) = headers.executable.iter().find(shown) else {
        return Err("the mapping is not an executable segment of the file".into());
    };
    let svma = segment
        .svma
        .wrapping_add(text.file_offset.wrapping_sub(segment.offset));
    let bias = text.avma.start.wrapping_sub(svma);
    let start = headers.svma_range.start.wrapping_add(bias) & !(PAGE - 1);
    let end = headers
        .svma_range
        .end
        .wrapping_add(bias)
        .wrapping_add(PAGE - 1)
        & !(PAGE - 1);
    if bias % PAGE != 0 || start > text.avma.start || end < text.avma.end {
        return Err("its segments do not lie where its headers say".into());
    }
    Ok((bias, start..end))
}

/// Whether the kernel keeps a shadow stack for the process: copies may then not jump to code that
/// was reached by a call.
///
/// # Errors
/// When there is no such process.
pub fn has_shadow_stack(pid: i32) -> Result<bool, LocateError> {
    let status = hopscope_process::procfs::text(&format!("/proc/{pid}/status"))
        .map_err(|source| LocateError::of_process(pid, source))?;
    let features = status
        .lines()
        .find_map(|l| l.strip_prefix("x86_Thread_features:"));
    Ok(features.is_some_and(|f| f.split_whitespace().any(|f| f == "shstk")))
}

/// The mapped file: through the process's own root, or, when it was replaced or deleted, through
/// the mapping itself.
pub(super) fn file_of(pid: i32, module: &MappedModule) -> Result<File, LocateError> {
    let holder = hopscope_process::procfs::memory_holder(pid);
    let through_root = Path::new("/proc").join(holder.to_string()).join("root");
    let path = through_root.join(module.path.strip_prefix("/").unwrap_or(&module.path));
    let range = &module.text[0].avma;
    let mapping = PathBuf::from(format!(
        "/proc/{holder}/map_files/{:x}-{:x}",
        range.start, range.end
    ));
    let mut replaced = LocateError::Replaced {
        path: module.path.clone(),
    };
    for path in [path, mapping] {
        let is_mapped = |m: std::fs::Metadata| m.ino() == module.inode;
        if !std::fs::metadata(&path).is_ok_and(is_mapped) {
            continue;
        }
        match open_regular(&path, Links::Follow) {
            // It may have been replaced just now.
            Ok(file) if file.metadata().is_ok_and(is_mapped) => return Ok(file),
            Ok(_) => {}
            Err(source) => {
                replaced = LocateError::File {
                    path: module.path.clone(),
                    source,
                }
            }
        }
    }
    Err(replaced)
}

/// # Errors
/// When the file is not what is mapped, or its place in the process is not known.
pub(super) fn file_of_placed(pid: i32, module: &MappedModule) -> Result<File, LocateError> {
    let file = file_of(pid, module)?;
    match &module.unplaced {
        None => Ok(file),
        Some(why) => Err(LocateError::NotElf {
            path: module.path.clone(),
            why: why.clone(),
        }),
    }
}

/// Device and inode of what is mapped, and which file of that inode.
pub(super) fn identity_of(pid: i32, module: &MappedModule) -> Option<((u64, u64), Version)> {
    let metadata = file_of(pid, module).ok()?.metadata().ok()?;
    let identity = (metadata.dev(), metadata.ino());
    Some((identity, Version::of(&metadata)))
}
