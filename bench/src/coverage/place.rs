//! Where a program runs, as whom, and what makes a server work.
use super::programs::Program;
use crate::error::{Error, Result};
use nix::unistd::{Uid, User, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `dir`, or a server's folder in it.
pub(super) fn of(program: &Program, dir: &Path) -> Result<PathBuf> {
    if program.load.is_none() {
        return Ok(dir.to_owned());
    }
    let own = dir.join(program.name);
    std::fs::create_dir_all(&own).map_err(Error::file("create", &own))?;
    if let Some(user) = other_user(program)? {
        let owned = chown(&own, Some(user.uid), Some(user.gid));
        owned.map_err(|e| Error::file("give away", &own)(e.into()))?;
    }
    Ok(own)
}

/// Only root can choose one.
fn other_user(program: &Program) -> Result<Option<User>> {
    let name = program.user.filter(|_| Uid::effective().is_root());
    let user = name.map(User::from_name).transpose();
    let user = user.map_err(|e| Error::file("find", "the user of a server")(e.into()))?;
    Ok(user.flatten())
}

pub(super) fn as_its_user(program: &Program, command: &mut Command) -> Result<()> {
    if let Some(user) = other_user(program)? {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    Ok(())
}

/// What loads a server, after what it needs was made anew.
pub(super) fn prepared(program: &Program, scripts: &Path, dir: &Path) -> Result<Option<Command>> {
    let Some(script) = program.load else {
        return Ok(None);
    };
    let shell = || -> Result<Command> {
        let mut shell = Command::new("sh");
        shell.arg(scripts.join(script)).current_dir(dir);
        as_its_user(program, &mut shell)?;
        Ok(shell)
    };
    let status = shell()?.arg("prepare").status();
    let status = status.map_err(Error::start(script))?;
    if !status.success() {
        log(program, dir);
    }
    shell().map(Some)
}

fn log(program: &Program, dir: &Path) {
    let said = std::fs::read_to_string(dir.join("prepared")).unwrap_or_default();
    eprintln!("{}: {}", program.name, crate::program::last_words(&said));
}
