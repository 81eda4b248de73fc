//! The echo server that is a kernel module: a baseline for the others, so it has to be right itself.
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Context, Result, ensure};
use hopscope_guest::ECHO;
use hopscope_tests::requirement::find_program;
use hopscope_tests::{Requirement, compile, counts, paths};
use serde_json::Value;

pub(super) const MODULE_ECHOES: Part = Part {
    name: "vm::a_kernel_module_echoes",
    needs: &[Requirement::Vm, Requirement::VmHeaders, Requirement::Gcc],
    steps,
    holds,
};

const FLOODS: u64 = 6;
const EARLY: u64 = 20;

/// Of `tester`, and of `load`.
fn clients() -> (u64, u64) {
    counts().pick((40, 200), (3000, 1000))
}

fn steps(guest: &mut Guest) -> Result<()> {
    let (clients, together) = clients();
    let module = ECHO.build(&paths::vm_kernel()?, &paths::built_programs())?;
    guest.copy(&module, "/hop_echo.ko")?;
    for name in ["tester", "flood"] {
        let source = format!("splice/{name}.c");
        let program = compile("gcc", &[&source], &["-O2", "-static"])?;
        guest.program(&program, &format!("/bin/{name}"))?;
    }
    guest.step("load", "insmod /hop_echo.ko port=7007");
    // Before everything else that runs: all have sent before one is accepted.
    let chrt = find_program("chrt").context("no chrt (package util-linux)")?;
    guest.program(&chrt, "/bin/chrt")?;
    guest.step(
        "early",
        &format!("chrt -f 1 tester 127.0.0.1 7007 {EARLY} {EARLY}"),
    );
    guest.step("bytes", &format!("tester 127.0.0.1 7007 {clients} 100"));
    guest.step(
        "together",
        &format!(
            "hopscope load tcp echo 127.0.0.1:7007 -n {together} --size 64 --timeout 60s --json"
        ),
    );
    guest.step("unread", &format!("flood 7007 {FLOODS}"));
    // Connections with nothing under way, and with more than either end takes.
    guest.step(
        "unload",
        &format!(
            "flood 7007 {FLOODS} /tmp/module-flooded & flood=$!
            while [ ! -e /tmp/module-flooded ]; do kill -0 $flood || exit 3; sleep 0.1; done
            rmmod hop_echo || exit 4
            wait $flood || exit 5
            ! grep hop_echo /proc/modules"
        ),
    );
    guest.step("listens", "cat /proc/net/tcp");
    guest.step(
        "reloaded",
        "insmod /hop_echo.ko port=7007 && tester 127.0.0.1 7007 60 20 && rmmod hop_echo",
    );
    guest.step(
        "said",
        "dmesg | grep hop_echo: ; cat /proc/sys/kernel/tainted",
    );
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
    let (clients, together) = clients();
    run.step("load")?.expect_code(0)?;
    json(run, "early")?;
    let all = json(run, "bytes")?;
    ensure!(all["connections"] == clients, "{all}");
    let echoed = json(run, "together")?;
    ensure!(
        echoed["done"] == together && echoed["corrupt"] == 0,
        "{echoed}"
    );
    let unread = json(run, "unread")?;
    ensure!(
        unread["sent"] == unread["back"] && unread["ended"] == FLOODS,
        "{unread}"
    );
    let ended = json(run, "unload")?;
    let ends = ["ended", "reset"].map(|name| ended[name].as_u64().unwrap_or(0));
    ensure!(ends.iter().sum::<u64>() == FLOODS, "{ended}");
    let open = run.step("listens")?.expect_code(0)?.stdout;
    // Port 7007 of 127.0.0.1, listening.
    ensure!(!open.contains("0100007F:1B5F 00000000:0000 0A"), "{open}");
    json(run, "reloaded")?;
    nothing_left(run, clients + EARLY + together + 2 * FLOODS)
}

fn json(run: &Run, step: &str) -> Result<Value> {
    let said = run.step(step)?.expect_code(0)?.stdout;
    let line = said.lines().last().context("nothing said")?;
    serde_json::from_str(line).with_context(|| format!("{step}: {line}"))
}

/// By the kernel's word: of a module of others, unsigned (`Documentation/admin-guide/
/// tainted-kernels.rst`, bits 12 and 13), and nothing else: no warning, no oops.
const OF_OTHERS_UNSIGNED: u64 = 1 << 12 | 1 << 13;

fn nothing_left(run: &Run, connections: u64) -> Result<()> {
    let said = run.step("said")?.expect_code(0)?.stdout;
    let ends: Vec<&str> = said.lines().filter(|line| line.contains(" left")).collect();
    let [first, second] = ends.as_slice() else {
        anyhow::bail!("{said}");
    };
    // `load` asks first whether a server is there.
    let served = format!("hop_echo: {} connections, ", connections + 1);
    ensure!(first.contains(&served), "{served} expected: {said}");
    ensure!(second.contains("hop_echo: 60 connections, "), "{said}");
    for line in [first, second] {
        ensure!(line.ends_with(" 0 left"), "{said}");
    }
    let taint: u64 = said.lines().last().unwrap_or_default().parse()?;
    ensure!(taint & !OF_OTHERS_UNSIGNED == 0, "{said}");
    Ok(())
}
