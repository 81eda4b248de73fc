//! Nodes of DPDK's graph library, all of whose work is inlined into one function: its parts, and the nodes that a walk calls
//! through their pointers.
use crate::recording::{Recording, Report, command_with_buffer};
use crate::told::Told;
use crate::vnet::dpdk;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{counts, scratch};
use std::process::Command;

/// As the program counts since its start.
struct Counted {
    walks: u64,
    packets: u64,
    classified: u64,
    rewritten: u64,
}

fn walked(running: &mut Told, walks: u64) -> Result<Counted> {
    let said = running.told(&walks.to_string())?;
    let numbers = said.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let of = |n: usize| numbers.get(n).copied().context("a number");
    Ok(Counted {
        walks: of(0)?,
        packets: of(1)?,
        classified: of(2)?,
        rewritten: of(3)?,
    })
}

pub(super) fn parts() -> Result<()> {
    const EAL: &str = "--no-huge --no-pci --no-shconf --no-telemetry -m 64 -l 0 --log-level 1";
    let flags = ["-O3", "-g", "-DALLOW_EXPERIMENTAL_API"];
    let program = dpdk::build("dpdk/graph_node.c", &flags)?;
    let mut running = Told::start(Command::new(program).args(EAL.split(' ')))?;
    let file = scratch().join("graph.hop");
    let patterns = [
        "graph_node*!lookup",
        "inlined:graph_node*!classify",
        "inlined:graph_node*!rewrite",
        "calls:graph_node*!main",
    ];
    let record = command_with_buffer(running.pid(), &patterns, &file, "64M");
    let recording = Recording::start_command(record, &file)?;
    // The loop is led into its copy at its next round.
    let first = walked(&mut running, 1)?;
    let last = walked(&mut running, counts().pick(5_000, 100_000))?;
    let said = recording.stop()?;
    ensure!(said["inlined"]["refused"] == 0, "{said}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let walks = last.walks - first.walks;
    let counted = [
        (report.entries("lookup"), last.walks),
        (
            report.entries("classify [inlined in lookup]"),
            last.classified,
        ),
        (
            report.entries("rewrite [inlined in lookup]"),
            last.rewritten,
        ),
    ];
    ensure!(
        counted.iter().all(|(seen, known)| seen == known) && last.packets == last.classified,
        "{counted:?}: {:?}",
        report.functions
    );
    for node in ["make", "lookup"] {
        let calls = report.entries(&format!("{node} [called by main]"));
        ensure!(
            (walks..=last.walks).contains(&calls),
            "{node}: {calls} of {walks}: {:?}",
            report.functions
        );
    }
    // It leaves the copy.
    running.told("1")?;
    running.expect_clean().or_else(|_| {
        hopscope_tests::hopscope(&["detach", "-p", &running.pid().to_string()])?;
        running.expect_clean()
    })
}
