//! Counters of a processor on a kernel that has a PMU: one of a module's, whose events are scheduled, grouped and shown to
//! user space as any others. What counts is the measured program, which answers `rdpmc` itself. Each event holds the module:
//! none is left when nobody does. (It stays: threads that once had an event keep its PMU, which Linux 6.1 does not count.)
use super::guest::{Guest, Run};
use super::part::Part;
use crate::counted::program::{emulator, rows};
use anyhow::{Result, ensure};
use hopscope_guest::Module;
use hopscope_tests::{Requirement, compile, paths, scratch};

pub(super) const COUNTED: Part = Part {
    name: "vm::counters_of_a_pmu",
    needs: &[Requirement::Vm, Requirement::VmHeaders, Requirement::Gcc],
    steps,
    holds,
};

const PMU: Module = Module {
    name: "hop_pmu",
    source: include_str!("../../programs/counted/hop_pmu.c"),
};
const CALLS: i64 = 200;
const SLEEPS: i64 = 20;

fn steps(guest: &mut Guest) -> Result<()> {
    let module = PMU.build(&paths::vm_kernel()?, &paths::built_programs())?;
    guest.copy(&module, "/hop_pmu.ko")?;
    guest.copy(&emulator()?, "/rdpmc.so")?;
    let program = compile("gcc", &["counted/counts.c"], &["-O2", "-g", "-pthread"])?;
    guest.program(&program, "/bin/counts")?;
    let record =
        "hopscope record --buffer 1M --no-calibration --max-overhead 1e9 -o /tmp/counted.hop";
    guest.step(
        "without-a-pmu",
        &format!("{record} -f 'main(@instructions)' -- /bin/counts"),
    );
    guest.step(
        "with-a-pmu",
        &format!(
            "insmod /hop_pmu.ko || exit 2
            mkfifo /tmp/told
            LD_PRELOAD=/rdpmc.so counts < /tmp/told > /tmp/answers & counts=$!
            exec 4> /tmp/told
            {record} -p $counts --ready-file /tmp/counted-ready \\
              -f 'outer(@instructions,@cycles)' -f 'sleeper(@cycles)' & record=$!
            while [ ! -e /tmp/counted-ready ]; do kill -0 $record || exit 3; sleep 0.1; done
            echo run {CALLS} >&4
            echo sleep 2 {SLEEPS} >&4
            while [ $(wc -l < /tmp/answers) -lt 2 ]; do kill -0 $counts || exit 4; sleep 0.1; done
            kill -INT $record; wait $record || exit 5
            [ $(cat /sys/module/hop_pmu/refcnt) = 0 ] || exit 6
            kill -0 $counts || exit 7
            exec 4>&-; wait $counts"
        ),
    );
    guest.step("counted", "cat /tmp/counted.hop");
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
    let said = run.step("without-a-pmu")?.expect_code(125)?.stderr;
    ensure!(said.contains("@instructions is not available"), "{said}");
    run.step("with-a-pmu")?.expect_code(0)?;
    let file = scratch().join("counted.hop");
    std::fs::write(&file, run.bytes("counted")?)?;
    let rows = rows(&file)?;
    let outer = rows.row("outer")?;
    // 122 of the call itself and 7 of a reading on the first counter, twice as many and 11 on the second.
    for (counter, of_a_call) in [("cycles", 122 + 7), ("instructions", 2 * 122 + 11)] {
        let counted = outer.counter(counter)?;
        let whole = counted.number("total_calls")?;
        ensure!(
            whole > CALLS / 2
                && whole + counted.left_out("rescheduled") == CALLS
                && counted.number("total")? == whole * of_a_call,
            "{counted:?}"
        );
    }
    let sleeper = rows.row("sleeper")?.counter("cycles")?;
    ensure!(sleeper.left_out("rescheduled") == SLEEPS, "{sleeper:?}");
    Ok(())
}
