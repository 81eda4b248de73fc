//! DPDK's l3fwd: packets from a pipe, through some hundred libraries, to files. Every packet that
//! comes out is compared with that of the unmeasured run.
use super::measured::Everything;
use crate::recording::{Recording, Report};
use anyhow::{Result, ensure};
use forwarder::Forwarder;
use hopscope_tests::{Requirement, Suite, counts, hopscope, scratch};
use packets::Frame;
use rules::Lookup;
use std::fs;
use std::path::Path;

mod forwarder;
mod graph;
mod packets;
mod rules;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Dpdk, Fsgsbase, Root};
    let needs = &[Root, Fsgsbase, Dpdk];
    suite
        .case(
            "nf::dpdk_shows_what_is_inlined_into_its_loop",
            needs,
            main_loop,
        )
        .in_turn();
    suite
        .case("nf::dpdk_names_what_its_loop_calls", needs, drivers)
        .in_turn();
    suite.case(
        "nf::dpdk_shows_the_parts_of_a_graphs_node",
        needs,
        graph::parts,
    );
    for (name, lookup) in [
        ("access_list", Lookup::Acl),
        ("longest_prefix", Lookup::Lpm),
    ] {
        let name = format!("nf::dpdk_forwards_by_{name}_the_same_with_every_function_measured");
        let case = suite.case(name, &[Root, Fsgsbase, Dpdk], move || run(lookup));
        case.in_turn();
        // The same program and libraries; another of its functions decides.
        if matches!(lookup, Lookup::Lpm) {
            case.soak();
        }
    }
}

/// What comes out of the two ports.
fn unmeasured(dir: &Path, input: &[Frame], lookup: Lookup) -> Result<[Vec<Frame>; 2]> {
    let forwarder = Forwarder::start(&dir.join("bare"), lookup)?;
    forwarder.send(input, 0..input.len() as u64)?;
    forwarder.finish()
}

/// Its loop runs when it is attached to, and the compiler has put nearly all of its work into it.
fn main_loop() -> Result<()> {
    let dir = scratch();
    let count = counts().pick(20_000, 200_000);
    let input = packets::mix(count);
    let bare = unmeasured(&dir, &input, Lookup::Lpm)?;

    let forwarder = Forwarder::start(&dir.join("measured"), Lookup::Lpm)?;
    let functions = [
        "l3fwd_lpm_process_packets",
        "inlined:l3fwd*!send_packets_multi",
        "inlined:l3fwd*!processx4_step1",
    ];
    let file = dir.join("loop.hop");
    let recording = Recording::start(forwarder.pid(), &functions, &file)?;
    forwarder.send(&input, 0..count / 2)?;
    forwarder.wait_for(packets::bytes(&bare) / 3)?;
    recording.stop()?;
    // It may sleep in the copy for want of packets: with some it has left it.
    forwarder.send(&input, count / 2..count)?;
    forwarder.wait_for(packets::bytes(&bare) * 2 / 3)?;
    let detached = hopscope(&["detach", "-p", &forwarder.pid().to_string()])?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", forwarder.pid()))?;
    ensure!(!maps.contains("hopscope-code"), "{detached:?}\n{maps}");
    let measured = forwarder.finish()?;
    ensure!(bare == measured, "other packets came out");

    let report = Report::read(&file)?;
    report.expect_balanced()?;
    let looked_up = report.entries("l3fwd_lpm_process_packets");
    let sent = report.entries("send_packets_multi [inlined in lpm_main_loop]");
    let by_four = report.entries("processx4_step1 [inlined in l3fwd_lpm_process_packets]");
    // The loop is led into its copy at its next round, and measured until it is read for the last time.
    ensure!(
        looked_up > count / 128 && sent.abs_diff(looked_up) <= 64 && by_four > looked_up,
        "{looked_up} bursts looked up, {sent} sent, {by_four} times four packets"
    );
    Ok(())
}

/// Its loop calls the drivers of its ports through pointers, which nothing in its code names.
fn drivers() -> Result<()> {
    let dir = scratch();
    let count = counts().pick(20_000, 200_000);
    let input = packets::mix(count);
    let bare = unmeasured(&dir, &input, Lookup::Lpm)?;

    let forwarder = Forwarder::start(&dir.join("measured"), Lookup::Lpm)?;
    let file = dir.join("drivers.hop");
    let functions = ["calls:lpm_main_loop", "calls:send_burst*->rte_eth_tx_burst"];
    let recording = Recording::start(forwarder.pid(), &functions, &file)?;
    forwarder.send(&input, 0..count)?;
    let measured = forwarder.finish()?;
    ensure!(bare == measured, "other packets came out");
    recording.finished()?;

    let report = Report::read(&file)?;
    report.expect_balanced()?;
    // Debian's drivers have no symbols for them: only that there is one function of each is known.
    let of = |caller: &str| -> Vec<u64> {
        let functions = report.functions.iter();
        let its = functions.filter(|(name, _)| name.contains(&format!(" [called by {caller}")));
        let entries = its.map(|(_, balance)| balance["entries"]);
        entries.filter(|n| *n > 0).collect()
    };
    let (received, sent) = (of("lpm_main_loop"), of("send_"));
    // By 32 at most; a port without packets is asked again and again.
    ensure!(
        received.len() == 1 && received[0] > count / 32,
        "{received:?} times received: {:?}",
        report.functions
    );
    ensure!(
        sent.len() == 1 && sent[0] > count / 64 && sent[0] < count,
        "{sent:?} times sent: {:?}",
        report.functions
    );
    Ok(())
}

/// Functions of the example and of all that it loads, most of them in its drivers.
const FUNCTIONS: u64 = 40_000;

/// Attached, detached in the middle of the traffic, attached again until it has ended.
fn run(lookup: Lookup) -> Result<()> {
    let dir = scratch();
    let count = counts().pick(20_000, 200_000);
    let input = packets::mix(count);
    let bare = unmeasured(&dir, &input, lookup)?;
    for out in &bare {
        let forwarded = out.len();
        ensure!(forwarded as u64 > count / 8, "only {forwarded} packets out");
    }
    ensure!(
        bare.iter().flatten().all(|frame| packets::is_ip(frame)),
        "something else than IP came out"
    );

    let forwarder = Forwarder::start(&dir.join("measured"), lookup)?;
    let recording = Everything::start(&[forwarder.pid()], &dir.join("first.hop"))?;
    forwarder.send(&input, 0..count / 2)?;
    // All but what waits for more: the pipe is read by 4 KiB, packets taken and sent by 32.
    forwarder.wait_for(packets::bytes(&bare) / 3)?;
    recording.stop()?.expect_whole(FUNCTIONS, count)?;
    forwarder.send(&input, count / 2..count * 3 / 4)?;
    forwarder.wait_for(packets::bytes(&bare) * 2 / 3)?;
    let recording = Everything::start(&[forwarder.pid()], &dir.join("second.hop"))?;
    forwarder.send(&input, count * 3 / 4..count)?;
    let measured = forwarder.finish()?;
    // When there is no more, it asks its ports tens of millions of times a second, and rings overflow.
    recording.finished()?.expect_sound(FUNCTIONS, count / 4)?;
    for (port, (bare, measured)) in bare.iter().zip(&measured).enumerate() {
        let other = bare.iter().zip(measured).position(|(a, b)| a != b);
        ensure!(
            bare.len() == measured.len() && other.is_none(),
            "port {port}: {} packets, {} when measured; the first that differs: {other:?}",
            bare.len(),
            measured.len(),
        );
    }
    Ok(())
}
