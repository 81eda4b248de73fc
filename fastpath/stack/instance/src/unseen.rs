//! Programs whose socket calls a preloaded library does not see: told before they run on the kernel's stack without a word.
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Of a program header (ELF-64).
const HEADER_LEN: usize = 56;
/// So much of a script's first line the kernel reads (BINPRM_BUF_SIZE).
const LINE_MAX: usize = 256;

/// Why a program's calls are not seen.
#[derive(Debug, thiserror::Error)]
pub enum Unseen {
    #[error("{0}: no such program in PATH")]
    NotFound(String),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0} is no program for x86-64")]
    NoProgram(PathBuf),
    #[error(
        "{0} changes its user or group when it starts (set-uid): the loader ignores preloaded libraries there"
    )]
    SetUser(PathBuf),
    #[error(
        "{0} has capabilities of its own (setcap): the loader ignores preloaded libraries there"
    )]
    Capable(PathBuf),
    #[error(
        "{0} is a Go program: it makes its system calls without the C library, where they are taken"
    )]
    Go(PathBuf),
    #[error("{0} is linked statically: nothing can be preloaded")]
    Static(PathBuf),
}

/// As exec(3) looks in PATH.
///
/// # Errors
/// [`Unseen::NotFound`]
pub fn find(name: &OsStr, path: &OsStr) -> Result<PathBuf, Unseen> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let runs = |path: &PathBuf| {
        let meta = std::fs::metadata(path);
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(runs);
    found.ok_or_else(|| Unseen::NotFound(name.to_string_lossy().into()))
}

/// The program, or the interpreter that a script names.
///
/// # Errors
/// Why its calls are not seen.
pub fn check(path: &Path) -> Result<(), Unseen> {
    let mut path = path.to_owned();
    // As many as the kernel follows (BINPRM_MAX_RECURSION).
    for _ in 0..5 {
        match script_of(&path)? {
            Some(interpreter) => path = interpreter,
            None => return check_elf(&path),
        }
    }
    Ok(())
}

fn script_of(path: &Path) -> Result<Option<PathBuf>, Unseen> {
    let failed = |error| Unseen::File(path.into(), error);
    let mut start = [0; LINE_MAX];
    let file = File::open(path).map_err(failed)?;
    // By pread(2), for which the library, which calls this, has no hook.
    let len = file.read_at(&mut start, 0).map_err(failed)?;
    let Some(line) = start[..len].strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let interpreter = words.find(|word| !word.is_empty());
    Ok(interpreter.map(|word| OsStr::from_bytes(word).into()))
}

fn check_elf(path: &Path) -> Result<(), Unseen> {
    let failed = |error| Unseen::File(path.into(), error);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    let (mode, owner) = (meta.permissions().mode(), meta.uid());
    let changes_user = mode & 0o4000 != 0 && owner != nix::unistd::getuid().as_raw();
    let changes_group = mode & 0o2000 != 0 && meta.gid() != nix::unistd::getgid().as_raw();
    if changes_user || changes_group {
        return Err(Unseen::SetUser(path.into()));
    }
    // As capabilities(7): the loader is told of a program that gets some, which root has anyway.
    let capable = rustix::fs::fgetxattr(&file, c"security.capability", &mut [0_u8; 64][..]).is_ok();
    if capable && !nix::unistd::getuid().is_root() {
        return Err(Unseen::Capable(path.into()));
    }
    let (mut interpreted, mut go) = (false, false);
    let headers = headers(&file).map_err(failed)?;
    for (kind, offset, len) in headers.ok_or_else(|| Unseen::NoProgram(path.into()))? {
        interpreted |= kind == PT_INTERP;
        if kind == PT_NOTE {
            let mut note = vec![0; len.min(4096)];
            file.read_exact_at(&mut note, offset).map_err(failed)?;
            go |= names(&note).any(|name| name == b"Go\0\0");
        }
    }
    match (go, interpreted) {
        (true, _) => Err(Unseen::Go(path.into())),
        (_, false) if !loads_others(path) => Err(Unseen::Static(path.into())),
        _ => Ok(()),
    }
}

/// A loader of programs, which preloads for them: ld.so(8), or a tool of valgrind's, which has libraries of its own to preload beside it.
fn loads_others(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let of_valgrind = path.with_file_name("vgpreload_core-amd64-linux.so");
    name.starts_with(b"ld-linux-x86-64.so.")
        || name.ends_with(b"-amd64-linux") && of_valgrind.exists()
}

/// Of the notes in a segment: each has three words (lengths of name and description, type), the name and the description, each up to a
/// multiple of four (elf(5)).
fn names(mut notes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let word = |at: usize| {
            let four = notes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(four) as usize)
        };
        let (name, description) = (word(0)?, word(4)?);
        let found = notes.get(12..)?.get(..name)?;
        let len = 12 + name.next_multiple_of(4) + description.next_multiple_of(4);
        notes = notes.get(len..).unwrap_or_default();
        Some(found)
    })
}

/// Program headers: type, offset, length. `None`: no ELF file of this machine.
fn headers(file: &File) -> io::Result<Option<Vec<(u32, u64, usize)>>> {
    let mut header = [0; 64];
    if let Err(error) = file.read_exact_at(&mut header, 0) {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(error),
        };
    }
    // 64 bits, little-endian, EM_X86_64.
    if header[..6] != *b"\x7fELF\x02\x01" || header[18..20] != [62, 0] {
        return Ok(None);
    }
    let long = |bytes: &[u8], at: usize| {
        let eight = bytes
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(eight.unwrap_or_default())
    };
    let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
    let mut table = vec![0; count * HEADER_LEN];
    file.read_exact_at(&mut table, long(&header, 32))?;
    let entries = table.chunks_exact(HEADER_LEN);
    let entries = entries.map(|entry| {
        let kind = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        (kind, long(entry, 8), long(entry, 32) as usize)
    });
    Ok(Some(entries.collect()))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn every_note_of_a_segment_is_seen() {
        let mut notes = Vec::new();
        for (name, description) in [(&b"GNU\0"[..], &[1; 20][..]), (b"Go\0\0", b"id of it")] {
            for word in [name.len(), description.len(), 4] {
                notes.extend((word as u32).to_le_bytes());
            }
            notes.extend(name);
            notes.extend(description);
        }
        let found: Vec<&[u8]> = names(&notes).collect();
        assert_eq!(found, [&b"GNU\0"[..], b"Go\0\0"]);
        // Lengths that lead out of it.
        for len in 0..notes.len() {
            assert!(names(&notes[..len]).count() <= 2);
        }
        assert_eq!(names(&[0xff; 64]).count(), 0);
    }
}
