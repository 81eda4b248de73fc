//! Programs as users name them: by the command name of a process, its file or what it was started as.
use crate::procfs::{memory_holder, text};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The kernel cuts command names off there (`TASK_COMM_LEN`).
const COMM_MAX: usize = 15;

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("reading /proc")]
    Proc(#[source] io::Error),
    #[error("no process is called {0:?}; ps -eo pid,comm shows the names")]
    NoProcess(String),
    #[error("{0}: no such file here or in PATH, and no process runs one of that name")]
    NoFile(String),
    /// `give`: what tells them apart.
    #[error("{name:?} may be any of {candidates}; give {give}")]
    Ambiguous {
        name: String,
        candidates: String,
        give: &'static str,
    },
}

fn pids() -> Result<impl Iterator<Item = i32>, ProgramError> {
    let found = fs::read_dir("/proc").map_err(ProgramError::Proc)?.flatten();
    let own = std::process::id() as i32;
    let number = |e: fs::DirEntry| e.file_name().to_str()?.parse().ok();
    Ok(found.filter_map(number).filter(move |pid| *pid != own))
}

pub fn comm(pid: i32) -> String {
    let comm = text(&format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}

/// With its arguments; empty where it cannot be read.
pub fn command_line(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = bytes.split(|b| *b == 0).filter(|arg| !arg.is_empty());
    arguments
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

/// The file that a process runs.
fn file_of(pid: i32) -> Option<PathBuf> {
    let holder = memory_holder(pid);
    let path = fs::read_link(format!("/proc/{holder}/exe")).ok()?;
    let shown = path.to_str()?;
    Some(PathBuf::from(
        shown.strip_suffix(" (deleted)").unwrap_or(shown),
    ))
}

fn is_called(name: &str, path: &Path) -> bool {
    path.file_name().is_some_and(|last| last == name)
}

fn runs_as(pid: i32, name: &str) -> bool {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = command_line.split(|b| *b == 0).next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    file_of(pid).is_some_and(|file| is_called(name, &file) || is_called(name, Path::new(&*first)))
}

/// Processes with this command name. Where there is none: those whose file is called so, or that were
/// started as that.
///
/// # Errors
/// When none is, or when the latter are of several programs.
pub fn processes(name: &str) -> Result<Vec<i32>, ProgramError> {
    let with_comm = |pid: &i32| comm(*pid) == name;
    let mut found: Vec<i32> = pids()?.filter(with_comm).collect();
    if found.is_empty() || name.len() > COMM_MAX {
        found = pids()?.filter(|pid| runs_as(*pid, name)).collect();
        let mut programs: BTreeMap<PathBuf, Vec<i32>> = BTreeMap::new();
        for pid in &found {
            programs
                .entry(file_of(*pid).unwrap_or_default())
                .or_default()
                .push(*pid);
        }
        if programs.len() > 1 {
            let of = |(file, pids): (&PathBuf, &Vec<i32>)| {
                format!("{} (process {})", file.display(), pids[0])
            };
            let programs: Vec<String> = programs.iter().map(of).collect();
            return Err(ProgramError::Ambiguous {
                name: name.to_owned(),
                candidates: programs.join(", "),
                give: "-p PID",
            });
        }
    }
    if found.is_empty() {
        return Err(ProgramError::NoProcess(name.to_owned()));
    }
    found.sort_unstable();
    Ok(found)
}

/// The file that is meant: a path, or the name of a program that runs or that the shell would find.
///
/// # Errors
/// When the name may mean several files.
pub fn file(given: &Path) -> Result<PathBuf, ProgramError> {
    let name = match given.to_str() {
        Some(name) if !name.contains('/') && !given.exists() => name,
        _ => return Ok(given.to_owned()),
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|p| p.is_file());
    let runs = |pid: &i32| comm(*pid) == name || runs_as(*pid, name);
    let running = pids()?.filter(runs).filter_map(file_of);
    let mut files: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
    for path in in_path.into_iter().chain(running) {
        if let Ok(found) = fs::metadata(&path) {
            files.entry((found.dev(), found.ino())).or_insert(path);
        }
    }
    let files: Vec<PathBuf> = files.into_values().collect();
    match &files[..] {
        [] => Err(ProgramError::NoFile(name.to_owned())),
        [one] => Ok(one.clone()),
        _ => {
            let files: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
            Err(ProgramError::Ambiguous {
                name: name.to_owned(),
                candidates: files.join(", "),
                give: "the path",
            })
        }
    }
}
