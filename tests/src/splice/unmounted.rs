//! Where no cgroup2 is mounted, as inside `ip netns exec`: its own mount is nobody else's, and what is left when it ends
//! is as little as elsewhere.
use super::scene::ANYWAY;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{cgroup2, hopscope_bin};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Command;

/// Of the command, which has only what commands have, and leaves a process that goes on.
const WITHIN: &str =
    "sleep 60 >/dev/null 2>&1 & echo $!; echo $(ls /proc/self/fd); grep ^0:: /proc/self/cgroup";

pub(super) fn command_that_leaves_a_process() -> Result<()> {
    let script = "for at in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/self/mounts); do umount -l $at; done; \
        exec \"$BIN\" -q splice run \"$@\"";
    let plain = command(Command::new("sh").args(["-c", "echo $(ls /proc/self/fd)"]))?;
    let mut run = Command::new("unshare");
    run.args(["-m", "sh", "-c", script, "sh", ANYWAY]);
    run.args(["--", "sh", "-c", WITHIN]);
    let out = command(run.env("BIN", hopscope_bin()))?.expect_code(0)?;
    let mut lines = out.stdout.lines();
    let mut line = || lines.next().with_context(|| format!("{out:?}"));
    let left = Pid::from_raw(line()?.parse()?);
    let _end = End(left);
    let descriptors = line()?;
    ensure!(
        descriptors == plain.stdout.trim(),
        "descriptors {descriptors}, without splice {}",
        plain.stdout
    );
    let group = line()?.trim_start_matches("0::/").to_owned();
    ensure!(group.contains("hopscope-splice-"), "{group}");
    let root = cgroup2().context("cgroup2 is mounted here")?;
    ensure!(!root.join(&group).exists(), "{group} is left");
    let now = std::fs::read_to_string(format!("/proc/{left}/cgroup"))?;
    ensure!(!now.contains("hopscope-splice-"), "{now}");
    Ok(())
}

struct End(Pid);

impl Drop for End {
    fn drop(&mut self) {
        // It has ended, or it does now.
        let _ = kill(self.0, Signal::SIGKILL);
    }
}
