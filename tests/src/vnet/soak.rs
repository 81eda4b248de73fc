//! Front ends that come, work, start anew, and go in every way there is, for minutes: the back end's memory and
//! descriptors stay what they were, and every packet is accounted for.
use super::front_end::{FrontEnd, MEMORY_LEN, PROTOCOL_FEATURES, VERSION_1};
use super::network::Place;
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::counts;
use std::time::{Duration, Instant};

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES;
/// What of it is mapped or kept at one time may differ by this, whatever went before.
const SLACK_KIB: u64 = 2 * MEMORY_LEN / 1024;

pub(super) fn run() -> Result<()> {
    let place = Place::new()?;
    let serving = Serving::start(&place, &["--discard"])?;
    let rounds = |serving: &Serving, from: u64, count: u64| -> Result<u64> {
        let rounds = from..from + count;
        rounds.map(|n| round(serving, n)).sum()
    };
    // Until everything has happened once.
    let mut sent = rounds(&serving, 0, 60)?;
    let (descriptors, resident) = (serving.descriptors()?, serving.resident_kib()?);
    let end = Instant::now() + Duration::from_secs(counts().pick(2, 600));
    let mut count = 60;
    while Instant::now() < end {
        sent += rounds(&serving, count, 60)?;
        count += 60;
        let now = serving.descriptors()?;
        ensure!(now == descriptors, "{descriptors} descriptors, then {now}");
        let now = serving.resident_kib()?;
        ensure!(now < resident + SLACK_KIB, "{resident} KiB, then {now}");
    }
    println!("{count} front ends, {sent} packets, {resident} KiB");
    let said = serving.stop()?;
    let summary = &said.summary;
    ensure!(summary["connections"] == count, "{summary}");
    ensure!(summary["turned_away"] == 0, "{summary}");
    // Of six each, one says what may not be said, and one cuts its memory.
    ensure!(summary["broken_off"] == count / 3, "{summary}");
    let carried = summary["pairs"][0]["tx"]["packets"].as_u64();
    let carried = carried.context("packets")?;
    ensure!(carried >= sent, "{sent} were awaited: {summary}");
    Ok(())
}

/// The packets that were awaited.
fn round(serving: &Serving, n: u64) -> Result<u64> {
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(FEATURES)?;
    let packets = 1 + n % 200;
    for n in 0..packets {
        front_end.send(&[n as u8; 300])?;
    }
    match n % 6 {
        // In order.
        0 => {
            front_end.done(1)?;
            front_end.leave()?;
        }
        // A guest that starts anew: its queues are stopped, then everything is told again.
        1 => {
            front_end.done(1)?;
            front_end.stop_queues()?;
            front_end.start(FEATURES)?;
            front_end.send(&[1; 60])?;
            front_end.done(1)?;
            front_end.leave()?;
            return Ok(packets + 1);
        }
        // A device that is reset.
        2 => {
            front_end.done(1)?;
            front_end.reset()?;
            front_end.start(FEATURES)?;
            front_end.send(&[1; 60])?;
            front_end.done(1)?;
            front_end.leave()?;
            return Ok(packets + 1);
        }
        // In the midst, without a word.
        3 => {
            front_end.leave()?;
            return Ok(0);
        }
        // Wrong.
        4 => {
            front_end.say(77, &[], &[])?;
            front_end.ended()?;
            return Ok(0);
        }
        _ => {
            front_end.memory.set_len(0)?;
            front_end.kick(1)?;
            front_end.ended()?;
            return Ok(0);
        }
    }
    Ok(packets)
}
