//! Programs whose socket calls a preloaded library does not see: told before they run on the kernel's stack without a word.
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Of a program header (ELF-64).
const HEADER_LEN: usize = 56;

/// As exec(3) looks in PATH.
pub(super) fn find(name: &OsStr) -> anyhow::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs = |path: &PathBuf| {
        let meta = std::fs::metadata(path);
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(runs)
        .with_context(|| format!("{}: no such program in PATH", name.to_string_lossy()))
}

/// The program, or the interpreter that a script names.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
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

fn script_of(path: &Path) -> anyhow::Result<Option<PathBuf>> {
    let mut start = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(256).read_to_end(&mut start)?;
    let Some(line) = start.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let interpreter = words.find(|word| !word.is_empty());
    Ok(interpreter.map(|word| OsStr::from_bytes(word).into()))
}

fn check_elf(path: &Path) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let shown = path.display();
    let meta = file.metadata()?;
    let (mode, owner) = (meta.permissions().mode(), meta.uid());
    let changes_user = mode & 0o4000 != 0 && owner != nix::unistd::getuid().as_raw();
    let changes_group = mode & 0o2000 != 0 && meta.gid() != nix::unistd::getgid().as_raw();
    if changes_user || changes_group {
        bail!(
            "{shown} changes its user or group when it starts (set-uid): the loader ignores preloaded libraries there"
        );
    }
    let (mut interpreted, mut go) = (false, false);
    for (kind, offset, len) in
        headers(&file).with_context(|| format!("{shown} is no program for x86-64"))?
    {
        interpreted |= kind == PT_INTERP;
        if kind == PT_NOTE {
            let mut note = vec![0; len.min(4096)];
            file.read_exact_at(&mut note, offset)?;
            // Length of the name 4, and the name.
            go |=
                note.get(..4) == Some(&4_u32.to_le_bytes()) && note.get(12..16) == Some(b"Go\0\0");
        }
    }
    if go {
        bail!(
            "{shown} is a Go program: it makes its system calls without the C library, where they are taken"
        );
    }
    if !interpreted {
        bail!("{shown} is linked statically: nothing can be preloaded");
    }
    Ok(())
}

/// Program headers: type, offset, length.
fn headers(file: &File) -> anyhow::Result<Vec<(u32, u64, usize)>> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0)?;
    // 64 bits, little-endian, EM_X86_64.
    if header[..6] != *b"\x7fELF\x02\x01" || header[18..20] != [62, 0] {
        bail!("no ELF file of this machine");
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
    Ok(entries
        .map(|entry| {
            let kind = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            (kind, long(entry, 8), long(entry, 32) as usize)
        })
        .collect())
}
