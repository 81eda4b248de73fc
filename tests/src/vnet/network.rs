//! A network namespace for this process alone, with a cable in it.
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use nix::sched::{CloneFlags, unshare};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    // Else the kernel looks for neighbours, among the frames that are counted.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
    ip("link set lo up")
}

pub(super) fn cable(near: &str, far: &str) -> Result<()> {
    ip(&format!("link add {near} type veth peer name {far}"))?;
    ip(&format!("link set {near} up"))?;
    ip(&format!("link set {far} up"))
}

/// For sockets: their names have 107 bytes at most (unix(7)), and a scratch directory may be deep.
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new() -> Result<Place> {
        let path = std::env::temp_dir().join(format!("hopscope-vnet-{}", std::process::id()));
        // Of a test that was killed, and had this process's number.
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        Ok(Place(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn ip(arguments: &str) -> Result<()> {
    let out = run(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}
