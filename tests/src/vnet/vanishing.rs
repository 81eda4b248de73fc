//! Guest memory that goes away while the back end uses it: its front end is told to go, the next one is served.
use super::front_end::{BUFFERS, FrontEnd, MEMORY_LEN, PROTOCOL_FEATURES, VERSION_1, memory};
use super::network::Place;
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::counts;
use nix::sys::memfd::MFdFlags;

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES;
const FRAME: [u8; 1000] = [3; 1000];

pub(super) fn cut() -> Result<()> {
    let place = Place::new()?;
    let serving = Serving::start(&place, &["--discard"])?;
    healthy(&serving)?;
    let before = serving.descriptors()?;
    let rounds = counts().pick(24, 2_000);
    for round in 0..rounds {
        let mut front_end = FrontEnd::connect(serving.socket())?;
        front_end.start(FEATURES)?;
        // Some of it is under way when the memory goes.
        for _ in 0..round % 100 {
            front_end.send(&FRAME)?;
        }
        match round % 3 {
            // The rings go.
            0 => front_end.memory.set_len(0)?,
            // The rings stay, what they point to goes.
            1 => front_end.memory.set_len(BUFFERS)?,
            _ => front_end.memory.set_len(MEMORY_LEN / 2)?,
        }
        match round % 3 {
            0 => front_end.kick(1)?,
            _ => front_end.add(1, MEMORY_LEN - 0x1000, 0x400)?,
        }
        front_end.ended()?;
    }
    healthy(&serving)?;
    let after = serving.descriptors()?;
    ensure!(after == before, "{before} descriptors, then {after}");
    let said = serving.stop()?;
    ensure!(said.broken_off.len() == rounds, "{}", said.all);
    for text in &said.broken_off {
        ensure!(text.contains("bytes while it was in use"), "{text}");
    }
    ensure!(said.summary["broken_off"] == rounds, "{}", said.summary);
    ensure!(
        said.summary["connections"] == rounds + 2,
        "{}",
        said.summary
    );
    Ok(())
}

/// Huge pages that the file promises and the system does not have.
pub(super) fn no_page_left() -> Result<()> {
    let free =
        std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages");
    if !free.as_deref().is_ok_and(|free| free.trim() == "0") {
        // Nothing can be shown where there are such pages, or none of that kind.
        eprintln!("pages of 1 GiB: {free:?}");
        return Ok(());
    }
    let place = Place::new()?;
    let serving = Serving::start(&place, &["--discard"])?;
    let huge = memory(1 << 30, MFdFlags::MFD_HUGETLB | MFdFlags::MFD_HUGE_1GB)?;
    let mut front_end = FrontEnd::with(serving.socket(), huge)?;
    ensure!(front_end.start(FEATURES).is_err(), "it was answered");
    front_end.ended()?;
    healthy(&serving)?;
    let said = serving.stop()?;
    let [text] = &said.broken_off[..] else {
        anyhow::bail!("{}", said.all);
    };
    ensure!(text.contains("no page left"), "{text}");
    Ok(())
}

fn healthy(serving: &Serving) -> Result<()> {
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(FEATURES)?;
    for _ in 0..100 {
        front_end.send(&FRAME)?;
    }
    front_end.done(1)?;
    // It says whether it is free for the next one by ending: stopped queues, then the connection.
    front_end.leave()
}
