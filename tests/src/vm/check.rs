//! `hopscope check` sees the kernel it runs on: what this machine lacks is there in the guest, and
//! the other way round.
use super::guest::Guest;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Output, Requirement, Suite};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "vm::check_describes_the_guest",
        &[Requirement::Vm],
        describes,
    );
}

/// Of Debian's 6.1: what hopscope needs of a kernel is built in, and nothing is locked down.
const THERE: &[&str] = &[
    "ptrace",
    "cap-bpf",
    "proc-mem-write",
    "memfd-exec",
    "fsgsbase",
    "no-lockdown",
    "btf",
    "cgroup2",
    "netns",
    "veth",
    "tap",
    "af-xdp",
];

fn describes() -> Result<()> {
    let mut guest = Guest::new()?;
    guest.step("check", "hopscope check --json");
    // The check itself has left nothing, and changed nothing.
    guest.step("again", "hopscope check --json");
    guest.step("unmounted", "umount -l /sys; hopscope check --json");
    let run = guest.run()?;
    let found = capabilities(&run.step("check")?)?;
    for name in THERE {
        let line = found.get(*name).with_context(|| format!("no {name}"))?;
        ensure!(line["state"] == "ok", "{line}");
    }
    // qemu's processor without KVM has no counters.
    ensure!(found["pmu"]["state"] == "missing", "{}", found["pmu"]);
    ensure!(
        run.step("check")?.code == Some(0),
        "{:?}",
        run.step("check")
    );
    ensure!(
        capabilities(&run.step("again")?)? == found,
        "a second check differs"
    );
    let bare = capabilities(&run.step("unmounted")?)?;
    ensure!(bare["btf"]["state"] == "missing", "{}", bare["btf"]);
    Ok(())
}

fn capabilities(said: &Output) -> Result<BTreeMap<String, Value>> {
    let lines = said.stdout.lines().map(|line| {
        let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let name = value["name"].as_str().context("a name")?.to_owned();
        Ok((name, value))
    });
    let found: BTreeMap<String, Value> = lines.collect::<Result<_>>()?;
    ensure!(!found.is_empty(), "nothing said: {said:?}");
    Ok(found)
}
