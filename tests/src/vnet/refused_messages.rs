//! What a front end may not say: the back end ends its connection with one clear line, and serves the next one.
use super::front_end::{
    FrontEnd, MEMORY_LEN, PROTOCOL_FEATURES, USER, VERSION_1, memory, state, table, words,
};
use super::network::Place;
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use nix::sys::memfd::MFdFlags;
use std::os::fd::{AsFd, BorrowedFd};

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES;

/// As many descriptors of the guest's memory come along.
struct Case {
    said: &'static str,
    request: u32,
    payload: Vec<u8>,
    descriptors: usize,
}

fn case(said: &'static str, request: u32, payload: Vec<u8>, descriptors: usize) -> Case {
    Case {
        said,
        request,
        payload,
        descriptors,
    }
}

fn cases() -> Vec<Case> {
    let migration = |what| case(what, 6, words(&[0x1000, 0]), 1);
    let mut logged = words(&[0, USER, USER, USER, 0]);
    logged[4] = 1;
    let one = [0, 0x1000, USER, 0];
    let nine: Vec<[u64; 4]> = (0..9).map(|n| [n << 12, 0x1000, USER, 0]).collect();
    let regions =
        |said, regions: &[[u64; 4]], descriptors| case(said, 5, table(regions), descriptors);
    vec![
        migration("live migration (SET_LOG_BASE) is not possible"),
        case("live migration (SET_LOG_FD)", 7, vec![], 1),
        case("live migration (SET_VRING_ADDR with a log)", 9, logged, 0),
        case(
            "live migration (VHOST_F_LOG_ALL)",
            2,
            words(&[FEATURES | 1 << 26]),
            0,
        ),
        case(
            "live migration (PROTOCOL_F_LOG_SHMFD)",
            16,
            words(&[1 << 1]),
            0,
        ),
        case(
            "features 0x20000 were acknowledged but not offered",
            2,
            words(&[FEATURES | 1 << 17]),
            0,
        ),
        case(
            "features 0x1000 were acknowledged",
            16,
            words(&[1 << 12]),
            0,
        ),
        case(
            "9 memory regions",
            5,
            [
                words(&[9]),
                nine.concat()
                    .iter()
                    .flat_map(|w| w.to_ne_bytes())
                    .take(256)
                    .collect(),
            ]
            .concat(),
            8,
        ),
        regions(
            "SET_MEM_TABLE came with 1 descriptors in place of 2",
            &[one, [0x1000, 0x1000, USER, 0]],
            1,
        ),
        regions("0x0 bytes at 0x0 wraps, is empty", &[[0, 0, USER, 0]], 1),
        regions("overlaps another", &[one, [0x800, 0x1000, USER, 0]], 2),
        regions(
            "its file has 0x100000 bytes",
            &[[0, MEMORY_LEN + 0x1000, USER, 0]],
            1,
        ),
        regions(
            "its file has 0x100000 bytes",
            &[[0, 0x1000, USER, MEMORY_LEN]],
            1,
        ),
        regions("pages of 0x1000 bytes", &[[0, 0x1000, USER, 0x200]], 1),
        case(
            "the descriptor of queue 0 is not an eventfd",
            12,
            words(&[0]),
            1,
        ),
        case("queue 0 would have to be polled", 12, words(&[0x100]), 0),
        case("queue 7: there are 2", 8, state(7, 256), 0),
        case("a size of 0", 8, state(0, 0), 0),
        case("request 77 is not known here", 77, vec![], 0),
        case(
            "the message came with 1 descriptors in place of 0",
            1,
            vec![],
            1,
        ),
        case("a message of 65536 bytes", 3, vec![0; 65_536], 0),
    ]
}

pub(super) fn run() -> Result<()> {
    let place = Place::new()?;
    let serving = Serving::start(&place, &["--discard"])?;
    healthy(&serving, FEATURES)?;
    let before = serving.descriptors()?;
    let cases = cases();
    for case in &cases {
        let mut front_end = FrontEnd::connect(serving.socket())?;
        front_end.start(FEATURES)?;
        let memory = memory(MEMORY_LEN, MFdFlags::empty())?;
        let descriptors: Vec<BorrowedFd<'_>> = vec![memory.as_fd(); case.descriptors];
        // The back end may be quicker with its end than this one with the rest.
        let _ = front_end.say(case.request, &case.payload, &descriptors);
        front_end.ended().context(case.said)?;
    }
    // Another version; and half a message.
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.bytes(&[1u32, 2, 0].map(u32::to_ne_bytes).concat(), &[])?;
    front_end.ended()?;
    let front_end = FrontEnd::connect(serving.socket())?;
    front_end.bytes(&[1; 5], &[])?;
    front_end.leave()?;
    // One that knows nothing of virtio 1 is served, with its shorter header.
    healthy(&serving, PROTOCOL_FEATURES)?;
    healthy(&serving, FEATURES)?;
    let after = serving.descriptors()?;
    ensure!(after == before, "{before} descriptors, then {after}");
    let said = serving.stop()?;
    let lines = cases.iter().map(|case| case.said);
    let lines: Vec<&str> = lines
        .chain(["a message of version 2", "truncated message: 5 bytes"])
        .collect();
    ensure!(said.broken_off.len() == lines.len(), "{}", said.all);
    for (text, word) in said.broken_off.iter().zip(lines) {
        ensure!(
            text.contains(word) && !text.contains('\n'),
            "{word}: {text}"
        );
    }
    Ok(())
}

fn healthy(serving: &Serving, features: u64) -> Result<()> {
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(features)?;
    front_end.send(&[7; 60])?;
    front_end.done(1)?;
    front_end.leave()
}
