//! The guest itself: what it says arrives as it was said, and an end before its time is a failure
//! that shows how far it came.
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, paths};

pub(super) fn register(suite: &mut Suite) {
    let vm = &[Requirement::Vm];
    suite.case("vm::a_panic_is_a_failure_with_its_words", vm, panics);
}

pub(super) const WHOLE: Part = Part {
    name: "vm::what_a_guest_says_arrives_whole",
    needs: &[Requirement::Vm],
    steps,
    holds,
};

fn all() -> Vec<u8> {
    (0..=255).cycle().take(100_000).collect()
}

fn steps(guest: &mut Guest) -> Result<()> {
    guest.file("/all", &all());
    guest.step("all", "cat /all");
    guest.step("both", "echo out; echo err >&2; exit 7");
    guest.step("left", "sleep 1000 & echo left");
    guest.step("modules", "cut -d' ' -f1 /proc/modules");
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
    ensure!(run.bytes("all")? == all(), "the bytes differ");
    let both = run.step("both")?.expect_code(7)?;
    ensure!(both.stdout == "out\n" && both.stderr == "err\n", "{both:?}");
    ensure!(run.step("left")?.stdout == "left\n");
    ensure!(
        run.bytes("both").is_err(),
        "a failed step's bytes are taken"
    );
    let release = paths::vm_kernel()?.release;
    ensure!(run.release() == release, "{} was booted", run.release());
    let modules = run.step("modules")?.stdout;
    for name in ["veth", "tun", "cls_bpf", "sch_ingress", "sch_tbf"] {
        ensure!(modules.contains(name), "no {name} among {modules}");
    }
    Ok(())
}

fn panics() -> Result<()> {
    let mut guest = Guest::new()?;
    guest.step("before", "echo before");
    guest.step("crash", "echo c > /proc/sysrq-trigger");
    guest.step("after", "echo after");
    let error = match guest.run() {
        Err(error) => format!("{error:#}"),
        Ok(run) => anyhow::bail!("a guest that panicked passed: {run:?}"),
    };
    for words in [
        "the guest ended during crash",
        "Kernel panic",
        "begin 01-crash",
    ] {
        ensure!(error.contains(words), "no `{words}` in: {error}");
    }
    Ok(())
}
