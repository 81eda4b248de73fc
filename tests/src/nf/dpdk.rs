//! DPDK's l3fwd: packets from a pipe, through some hundred libraries, to files. Every packet that
//! comes out is compared with that of the unmeasured run.
use super::measured::Everything;
use anyhow::{Result, ensure};
use forwarder::Forwarder;
use hopscope_tests::{Requirement, Suite, counts, scratch};
use rules::Lookup;

mod forwarder;
mod packets;
mod rules;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Dpdk, Fsgsbase, Root};
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

/// Functions of the example and of all that it loads, most of them in its drivers.
const FUNCTIONS: u64 = 40_000;

/// Attached, detached in the middle of the traffic, attached again until it has ended.
fn run(lookup: Lookup) -> Result<()> {
    let dir = scratch();
    let count = counts().pick(20_000, 200_000);
    let input = packets::mix(count);
    let bare = Forwarder::start(&dir.join("bare"), lookup)?;
    bare.send(&input, 0..count)?;
    let bare = bare.finish()?;
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
