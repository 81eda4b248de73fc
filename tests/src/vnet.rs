//! `hopscope vnet` from outside: the same bits each time, sums that add up, refusals in one line, and packets of
//! other people's drivers, to the byte.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope};
use serde_json::Value;

mod device;
pub(crate) mod dpdk;
mod drive;
mod front_end;
mod guest;
mod kernel;
mod network;
mod observed;
mod pieces;
mod privileges;
mod refused;
mod refused_messages;
mod serving;
mod soak;
mod starting;
mod timeline;
mod vanishing;

pub(crate) fn register(suite: &mut Suite) {
    suite.case("vnet::sim_gives_the_same_bits", &[], same_bits);
    suite.case("vnet::sim_adds_up", &[], adds_up);
    suite.case("vnet::sim_refuses_what_cannot_be", &[], refusals);
    use Requirement::{Dpdk, Netns};
    for case in dpdk::CASES {
        let name = format!("vnet::serve_gives_dpdk_every_byte_back_{}", case.name);
        suite.case(name, &[Netns, Dpdk], move || dpdk::every_byte(&case));
    }
    drive::register(suite);
    observed::register(suite);
    device::register(suite);
    pieces::register(suite);
    starting::register(suite);
    guest::register(suite);
    suite.case("vnet::both_ends_lie_on_one_timeline", &[], timeline::run);
    suite.case(
        "vnet::a_full_disk_costs_the_recording_only",
        &[],
        timeline::full_disk,
    );
    suite.case("vnet::serve_refuses_what_cannot_be", &[Netns], refused::run);
    suite.case(
        "vnet::serve_refuses_what_may_not_be_said",
        &[],
        refused_messages::run,
    );
    suite.case(
        "vnet::serve_outlives_memory_that_is_cut",
        &[],
        vanishing::cut,
    );
    suite.case(
        "vnet::serve_outlives_a_lack_of_huge_pages",
        &[],
        vanishing::no_page_left,
    );
    suite.case("vnet::serve_lasts", &[], soak::run);
    suite.case(
        "vnet::serve_gives_up_its_privileges",
        &[Netns],
        privileges::run,
    );
}

fn sim(arguments: &[&str]) -> Result<String> {
    let words = [&["vnet", "sim"], arguments].concat();
    Ok(hopscope(&words)?.expect_code(0)?.stdout)
}

fn same_bits() -> Result<()> {
    let few = |seed| sim(&["--packets", "500", "--json", "--seed", seed]);
    ensure!(few("1")? == few("1")?, "the same seed");
    ensure!(few("1")? != few("2")?, "the seed changes nothing");
    let table = sim(&[])?;
    // A row of the table, as it is in docs/vnet.md.
    let row =
        "  0.001     1  ahc:50:64        batch         0.9523    0.9432       59.8       60.3";
    ensure!(table.contains(row), "{table}");
    Ok(())
}

fn adds_up() -> Result<()> {
    let text = sim(&["--json", "--suppression", "index"])?;
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let mut lines = lines.context("lines of JSON")?;
    ensure!(lines.iter().all(|line| line["schema"] == 1), "no schema");
    let summary = lines.pop().context("no line")?;
    ensure!(
        summary["type"] == "summary" && summary["cells"] == 40,
        "{summary}"
    );
    ensure!(lines.len() == 40, "{} cells", lines.len());
    for cell in lines {
        let number = |path: &str| {
            cell.pointer(path)
                .and_then(Value::as_u64)
                .context(path.to_owned())
        };
        let packets = number("/packets")?;
        ensure!(
            cell["type"] == "cell" && number("/reclaimed")? == packets,
            "{cell}"
        );
        for (end, notifications) in [("driver", "/kicks"), ("device", "/calls")] {
            let of = |field: &str| number(&format!("/{end}/{field}"));
            ensure!(of("published")? == packets, "{cell}");
            let batches = cell[end]["batches"].as_array().context("batches")?;
            let batches: u64 = batches.iter().filter_map(Value::as_u64).sum();
            let notified = number(notifications)?;
            ensure!([of("notified")?, batches] == [notified; 2], "{cell}");
            ensure!(of("announced")? <= packets, "{cell}");
        }
        // Nothing waits for a timer but where a policy has one; the step in hand ends first.
        let held_ns = number("/driver/hold_max_ns")?;
        let most_ns = match cell["kick_policy"].as_str() {
            Some("ahc:50:64") => 52_000,
            Some("adaptive") => 5_000,
            _ => 0,
        };
        ensure!(held_ns <= most_ns, "held {held_ns} ns: {cell}");
    }
    let lost = summary["tam_kicks_more_at"].as_array().context("a list")?;
    ensure!(!lost.is_empty(), "TAM is said to win everywhere: {summary}");
    Ok(())
}

fn refusals() -> Result<()> {
    for (arguments, word) in [
        (&["--kick-policy", "tam:0"][..], "limit of 0"),
        (&["--kick-policy", "soon"], "event-idx"),
        (&["--call-policy", "coal:8:90000"], "10000 us at most"),
        (&["--ring", "0"], "ring of 0"),
        (&["--packets", "0"], "0 packets"),
        (&["--load", "0"], "0 Mpps"),
        (&["--load", "nan"], "NaN Mpps"),
        (&["--load", "1", "--burst", "0"], "bursts of 0"),
        (&["--burst", "2"], "--load"),
        (&["--defer", "8:20"], "not by a flag"),
        (&["--defer", "8"], "as in 8:20"),
        (
            &["--defer", "0:20", "--suppression", "index"],
            "by 0 entries",
        ),
        (&["--publish-ns", "0"], "at least 1 ns"),
        (&["--wake-ns", "2000000000"], "at most a second"),
    ] {
        let out = hopscope(&[&["vnet", "sim"], arguments].concat())?.expect_code(2)?;
        ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
        ensure!(out.stdout.is_empty(), "{arguments:?}: {}", out.stdout);
    }
    Ok(())
}
