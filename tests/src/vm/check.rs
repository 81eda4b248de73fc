//! `hopscope check` sees the kernel it runs on: what this machine lacks is there in the guest, and
//! the other way round.
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Output, Requirement, compile_c};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const DESCRIBES: Part = Part {
    name: "vm::check_describes_the_guest",
    needs: &[Requirement::Vm, Requirement::Gcc],
    steps,
    holds,
};

/// Of Debian's 6.1: what hopscope needs of a kernel is built in, and nothing is locked down.
const THERE: &[&str] = &[
    "ptrace",
    "cap-bpf",
    "proc-mem-write",
    "memfd-exec",
    "fsgsbase",
    "no-lockdown",
    "btf",
    "bpf-tracepoint",
    "bpf-raw-tracepoint",
    "bpf-fentry",
    "bpf-fexit",
    "bpf-kprobe",
    "bpf-cgroup",
    "bpf-sockops",
    "cgroup2",
    "netns",
    "veth",
    "tap",
    "af-xdp",
];

/// Programs are freed when no processor can be in them any more, some time after their link.
pub(super) const LIKE_BEFORE: &str = "looks=0
    until bpf_objects | cmp -s - /tmp/before || [ $looks = 500 ]; do looks=$((looks + 1)); sleep 0.05; done
    bpf_objects";

fn steps(guest: &mut Guest) -> Result<()> {
    let objects = compile_c(&["slice/bpf_objects.c"], &["-O2"])?;
    guest.program(&objects, "/bin/bpf_objects")?;
    guest.step("before", "bpf_objects | tee /tmp/before");
    guest.step("check", "hopscope check --json");
    guest.step("after", LIKE_BEFORE);
    guest.step("again", "hopscope check --json");
    let unmounted = "unshare -m sh -c 'umount -l /sys; hopscope check --json'";
    guest.step("unmounted", unmounted);
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
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
    let (before, after) = (run.step("before")?.stdout, run.step("after")?.stdout);
    ensure!(before == after, "left behind:\n{before}\n{after}");
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
