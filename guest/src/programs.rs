//! Programs of this machine in the guest, each with the libraries that it asks for.
use crate::archive::Archive;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// First match in PATH and in sbin, which unprivileged users often lack.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
}

/// `busybox`, and iproute2 as `ip2` (the shell takes its own `ip`, which makes neither veth pairs nor
/// namespaces, before any file of that name).
pub(crate) fn add_basics(archive: &mut Archive) -> Result<()> {
    for (program, package, place) in [
        ("busybox", "busybox-static", "/bin/busybox"),
        ("ip", "iproute2", "/bin/ip2"),
    ] {
        let path = find_program(program).ok_or(Error::Program { program, package })?;
        add(archive, &path, place)?;
    }
    Ok(())
}

pub(crate) fn add(archive: &mut Archive, program: &Path, place: &str) -> Result<()> {
    archive.copy(program, place)?;
    for library in libraries(program)? {
        if !archive.holds(&library) {
            archive.copy(Path::new(&library), &library)?;
        }
    }
    Ok(())
}

/// Absolute paths as `ldd` gives them: `NAME => PATH (ADDRESS)`, and `PATH (ADDRESS)` for the loader.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let out = output("ldd", Command::new("ldd").arg(program))?;
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    let has_none = stderr.contains("not a dynamic executable");
    match (out.status.success(), has_none) {
        (false, true) => return Ok(Vec::new()),
        (true, _) if !stdout.contains("not found") => {}
        _ => {
            return Err(Error::Library {
                program: program.to_owned(),
                said: format!("{stdout}{stderr}"),
            });
        }
    }
    let words = stdout.lines().flat_map(str::split_whitespace);
    Ok(words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect())
}

/// What is loaded is the same; the guest's memory holds the file.
pub(crate) fn without_debug(program: &Path, dir: &Path) -> Result<PathBuf> {
    let stripped = dir.join("hopscope");
    let mut strip = Command::new("strip");
    strip.args(["--strip-debug", "-o"]).arg(&stripped);
    let out = output("strip", strip.arg(program))?;
    match out.status.success() {
        true => Ok(stripped),
        false => Err(Error::Failed {
            program: "strip".into(),
            status: out.status.to_string(),
            said: text(&out.stderr),
        }),
    }
}

fn output(program: &'static str, command: &mut Command) -> Result<Output> {
    let started = command.output();
    started.map_err(|source| Error::Start { program, source })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
