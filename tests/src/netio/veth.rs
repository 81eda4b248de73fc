//! A network namespace for this process alone, with a veth pair.
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Nothing is left behind: the namespace and its devices go with the process.
pub(super) fn namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    // Else the kernel looks for neighbours on each new device, among the frames that are counted.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
    ip("link set lo up")
}

/// `left` and `right`, up.
pub(super) fn pair(left: &str, right: &str) -> Result<()> {
    ip(&format!("link add {left} type veth peer name {right}"))?;
    up(left)?;
    up(right)
}

fn up(device: &str) -> Result<()> {
    ip(&format!("link set {device} up"))
}

pub(super) fn ip(arguments: &str) -> Result<()> {
    let out = run(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}
