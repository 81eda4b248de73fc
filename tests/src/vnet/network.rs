//! A network namespace for this process alone, with a cable in it.
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use nix::sched::{CloneFlags, unshare};
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

pub(super) fn ip(arguments: &str) -> Result<()> {
    let out = run(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}
