//! Target programs, compiled once for each compiler, flags and source text.
use crate::paths::{built_programs, programs};
use anyhow::{Context, Result, bail};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `gcc` over files of `tests/programs/`. Flags such as `-lm` are given after the sources.
///
/// # Errors
/// With the compiler's own words.
pub fn compile_c(sources: &[&str], flags: &[&str]) -> Result<PathBuf> {
    compile("gcc", sources, flags)
}

/// A source, and what it may include of its folder.
fn with_headers(source: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![source.to_owned()];
    let folder = source.parent().context("a folder")?;
    for file in std::fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|e| e == "h") {
            files.push(file);
        }
    }
    files[1..].sort();
    Ok(files)
}

/// Any compiler with the manners of `cc`. The result's file name starts with the first source's.
///
/// # Errors
/// With the compiler's own words.
pub fn compile(compiler: &str, sources: &[&str], flags: &[&str]) -> Result<PathBuf> {
    let paths: Vec<PathBuf> = sources.iter().map(|name| programs().join(name)).collect();
    let mut hasher = DefaultHasher::new();
    (compiler, flags, compiler_version(compiler)?).hash(&mut hasher);
    for path in &paths {
        for file in with_headers(path)? {
            std::fs::read(&file)
                .with_context(|| format!("reading {}", file.display()))?
                .hash(&mut hasher);
        }
    }
    let stem = Path::new(sources[0]).file_stem().unwrap_or_default();
    let dir = built_programs();
    std::fs::create_dir_all(&dir)?;
    let out = dir.join(format!(
        "{}-{:016x}",
        stem.to_string_lossy(),
        hasher.finish()
    ));
    if out.exists() {
        return Ok(out);
    }
    // Cases run in parallel: build aside, so that none sees half a program. Whoever comes second
    // leaves what is there: it may run already, and its file's name is looked up.
    let aside = out.with_extension(std::process::id().to_string());
    let mut command = Command::new(compiler);
    command.args(&paths).args(flags).arg("-o").arg(&aside);
    let done = command
        .output()
        .with_context(|| format!("starting {compiler}"))?;
    if !done.status.success() {
        bail!(
            "{command:?}: {}\n{}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }
    let linked = std::fs::hard_link(&aside, &out);
    std::fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("naming {}", out.display()))
        }
        _ => Ok(out),
    }
}

fn compiler_version(compiler: &str) -> Result<Vec<u8>> {
    let out = Command::new(compiler)
        .arg("--version")
        .output()
        .with_context(|| format!("starting {compiler}"))?;
    Ok(out.stdout)
}
