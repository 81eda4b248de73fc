//! Modules of the guest's kernel, built here against its headers.
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::programs::find_program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One source file.
pub struct Module {
    pub name: &'static str,
    pub source: &'static str,
}

/// A TCP echo server in the kernel (`guest/echo/hop_echo.c`).
pub const ECHO: Module = Module {
    name: "hop_echo",
    source: include_str!("../echo/hop_echo.c"),
};

impl Module {
    /// Built below `dir`, anew only when the source or the kernel is another: the `.ko`, without what only
    /// debuggers read.
    ///
    /// # Errors
    /// Without the headers, `make` or Debian's compiler of kernels; with the compiler's words where it fails.
    pub fn build(&self, kernel: &Kernel, dir: &Path) -> Result<PathBuf> {
        self.build_from(self.source, kernel, dir)
    }

    /// The same of another text: of one, say, that lacks what a test is about.
    ///
    /// # Errors
    /// As [`Module::build`].
    pub fn build_from(&self, text: &str, kernel: &Kernel, dir: &Path) -> Result<PathBuf> {
        let headers = kernel.headers()?;
        for (program, package) in [("make", "make"), ("gcc-12", "gcc-12")] {
            find_program(program).ok_or(Error::Program { program, package })?;
        }
        let dir = dir.join(format!("{}-{}", self.name, kernel.release));
        let source = dir.join(format!("{}.c", self.name));
        let built = dir.join(format!("{}.ko", self.name));
        if fs::read_to_string(&source).is_ok_and(|old| old == text) && built.is_file() {
            return Ok(built);
        }
        // Half a build must not look like a whole one.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        let kbuild = dir.join("Kbuild");
        let line = format!("obj-m := {}.o\n", self.name);
        fs::write(&kbuild, line).map_err(Error::file("write", &kbuild))?;
        fs::write(&source, text).map_err(Error::file("write", &source))?;
        let mut make = Command::new("make");
        // Variables of a `make` that runs this would be taken for this one's.
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        make.arg("-C").arg(&headers);
        make.arg(format!("M={}", dir.display())).arg("modules");
        run("make", make)?;
        let mut strip = Command::new("strip");
        strip.arg("--strip-debug").arg(&built);
        run("strip", strip)?;
        Ok(built)
    }
}

fn run(program: &'static str, mut command: Command) -> Result<()> {
    let started = command.output();
    let done = started.map_err(|source| Error::Start { program, source })?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            program: format!("{command:?}"),
            status: done.status.to_string(),
            said: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        }),
    }
}
