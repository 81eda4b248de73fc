//! The two C programs that hopscope's figures are set against, compiled when they are needed.
use crate::error::{Error, Result};
use crate::program::{Compiler, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// Round trips with as little as it takes.
    pub(crate) rr: PathBuf,
    /// A forwarder with a known delay.
    pub(crate) forward: PathBuf,
}

impl Programs {
    pub(crate) fn build(dir: &Path, compiler: &Compiler) -> Result<Programs> {
        let dir = dir.join("load");
        Ok(Programs {
            rr: compiled(&dir, compiler, "rr", include_str!("rr.c"))?,
            forward: compiled(&dir, compiler, "forward", include_str!("forward.c"))?,
        })
    }
}

/// Built anew only when its text is another.
pub(crate) fn compiled(dir: &Path, compiler: &Compiler, name: &str, text: &str) -> Result<PathBuf> {
    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
    let (source, program) = (dir.join(format!("{name}.c")), dir.join(name));
    let is_same = fs::read_to_string(&source).is_ok_and(|old| old == text);
    if !is_same || !program.exists() {
        fs::write(&source, text).map_err(Error::file("write", &source))?;
        let mut command = Command::new(compiler);
        command.args(["-O2", "-std=gnu11", "-pthread"]).arg(&source);
        run(command.arg("-o").arg(&program))?;
    }
    Ok(program)
}
