//! How fast the functions of a large library are listed.
use crate::hopscope::Hopscope;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// The largest shared object that a developer's machine has.
fn large_library() -> Option<PathBuf> {
    let sysroot =
        crate::program::run(std::process::Command::new("rustc").args(["--print", "sysroot"]));
    let mut folders = vec![PathBuf::from("/usr/lib/x86_64-linux-gnu")];
    if let Ok(sysroot) = sysroot {
        folders.push(PathBuf::from(sysroot.trim()).join("lib"));
    }
    folders
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("librustc_driver") || name.starts_with("libLLVM")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path())))
        .max()
        .map(|(_, path)| path)
}

/// `hopscope functions -b` over a large library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listing {
    pub(crate) file: String,
    pub(crate) functions: usize,
    pub(crate) seconds: Spread,
    pub(crate) functions_per_s: f64,
}

impl Listing {
    pub(crate) fn measure(hopscope: &Hopscope, repetitions: usize) -> Result<Listing, String> {
        let file = large_library().ok_or("no librustc_driver or libLLVM found on this machine")?;
        let path = file.to_string_lossy().into_owned();
        let (mut seconds, mut functions) = (Vec::new(), 0);
        for _ in 0..repetitions {
            let start = Instant::now();
            let listed = hopscope
                .ask(&["functions", "-b", &path, "--json"])
                .map_err(|e| e.to_string())?;
            seconds.push(start.elapsed().as_secs_f64());
            functions = listed
                .lines()
                .filter(|line| line.contains("\"type\":\"function\""))
                .count();
        }
        if functions == 0 {
            return Err(format!(
                "hopscope functions -b {path} --json listed nothing"
            ));
        }
        let seconds = Spread::of(&seconds).ok_or("no repetition was asked for")?;
        Ok(Listing {
            file: path,
            functions,
            seconds,
            functions_per_s: functions as f64 / seconds.median,
        })
    }
}
