//! Packets between a TAP device and a guest's memory, in any pieces: those of a chain, and those of a packet that takes
//! several chains. Nothing is copied in between, so what the pieces are the kernel gets to see.
use super::front_end::{BUFFERS, FrontEnd, GUEST_CSUM, PROTOCOL_FEATURES, VERSION_1};
use super::kernel::{Kernel, frame};
use anyhow::{Context, Result, ensure};
use hopscope_tests::Suite;
use nix::sys::memfd::MFdFlags;
use std::os::unix::fs::FileExt;

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES;
const MRG_RXBUF: u64 = 1 << 15;
const HEADER: usize = 12;
/// As in the front end: descriptors of a queue.
const ENTRIES: usize = 256;

pub(super) fn register(suite: &mut Suite) {
    use hopscope_tests::Requirement::Netns;
    for (name, run) in [
        ("sends_packets_of_any_pieces", sends as fn() -> _),
        ("receives_packets_into_any_pieces", receives),
        ("outlives_memory_that_is_cut_beside_a_device", cut),
    ] {
        suite.case(format!("vnet::serve_{name}"), &[Netns], run);
    }
}

fn long_frame(len: usize) -> Vec<u8> {
    let mut bytes = frame(0);
    bytes.resize(len, 0);
    for (n, byte) in bytes.iter_mut().enumerate().skip(14) {
        *byte = (n * 7 + len) as u8;
    }
    bytes
}

/// Lengths of pieces, each as often as it takes.
const PIECES: [&[u32]; 7] = [
    &[2000],
    &[12, 2000],
    // The header in pieces, and pieces of nothing.
    &[1, 0, 4, 9, 700],
    &[5, 7, 0, 0, 33, 100],
    &[11, 1, 1, 500],
    &[7],
    &[64],
];

/// Pieces of `len` bytes in all, one behind the other with holes, from `at` on.
fn pieces(lens: &[u32], len: usize, at: u64) -> Vec<(u64, u32)> {
    let (mut left, mut at) = (len as u32, at);
    let mut pieces = Vec::new();
    for len in lens.iter().cycle() {
        let len = (*len).min(left);
        pieces.push((at, len));
        (left, at) = (left - len, at + u64::from(len) + 3);
        if left == 0 {
            return pieces;
        }
    }
    pieces
}

fn sends() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(FEATURES)?;
    let mut sent = 0;
    for lens in PIECES {
        for len in [60, 61, 400, 1514] {
            let bytes = long_frame(len);
            let whole = [&[0; HEADER], &bytes[..]].concat();
            let parts = pieces(lens, whole.len(), BUFFERS);
            let mut done = 0;
            for (at, len) in &parts {
                let part = &whole[done..done + *len as usize];
                front_end.memory.write_all_at(part, *at)?;
                done += part.len();
            }
            front_end.offer_chain(1, 0, &parts)?;
            front_end.kick(1)?;
            kernel
                .come_bytes(&bytes)
                .with_context(|| format!("{len} bytes in pieces of {lens:?}"))?;
            front_end.done(1)?;
            sent += 1;
        }
    }
    front_end.leave()?;
    let said = serving.stop()?;
    let port = &said.summary["pairs"][0]["port"];
    ensure!(
        port["sent"] == sent && port["send_failed"] == 0,
        "{}",
        said.all
    );
    Ok(())
}

fn receives() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    for features in [GUEST_CSUM, 0, GUEST_CSUM | MRG_RXBUF, MRG_RXBUF] {
        let merges = features & MRG_RXBUF != 0;
        for lens in PIECES {
            // Short, then long: room is made for one as those before.
            for len in [60, 61, 400, 1514, 60, 1514] {
                received(&mut kernel, serving.socket(), features, lens, len).with_context(
                    || format!("{len} bytes in pieces of {lens:?}, merges: {merges}"),
                )?;
            }
        }
        several(&mut kernel, serving.socket(), features)?;
    }
    let said = serving.stop()?;
    let drops = said.summary["pairs"][0]["rx"]["drops"].as_object();
    let drops = drops.context("drops")?;
    ensure!(drops.values().all(|count| count == 0), "{}", said.all);
    Ok(())
}

/// One packet: into one chain of pieces, or into as many chains of a piece.
fn received(
    kernel: &mut Kernel,
    socket: &std::path::Path,
    features: u64,
    lens: &[u32],
    len: usize,
) -> Result<()> {
    let merges = features & MRG_RXBUF != 0;
    let mut front_end = FrontEnd::connect(socket)?;
    front_end.start(FEATURES | features)?;
    let parts = pieces(lens, HEADER + len, BUFFERS);
    ensure!(parts.len() <= ENTRIES, "too many pieces");
    match merges {
        false => front_end.offer_chain(0, 0, &parts)?,
        true => {
            for (n, part) in (0u16..).zip(&parts) {
                front_end.offer_chain(0, n, &[*part])?;
            }
        }
    }
    front_end.kick(0)?;
    let bytes = long_frame(len);
    kernel.send_bytes(&bytes)?;
    front_end.done(0)?;
    let chains = if merges { parts.len() as u16 } else { 1 };
    let mut used = 0;
    for n in 0..chains {
        let (id, len) = front_end.used_entry(0, n)?;
        ensure!(id == u32::from(n), "chain {id} in place of {n}");
        used += len as usize;
    }
    ensure!(used == HEADER + len, "{used} bytes are used");
    let came = contents(&front_end, &parts)?;
    let mut header = vec![0; HEADER];
    header[10..].copy_from_slice(&chains.to_le_bytes());
    ensure!(came[..HEADER] == header, "header {:?}", &came[..HEADER]);
    ensure!(came[HEADER..] == bytes, "other bytes");
    front_end.leave()
}

fn contents(front_end: &FrontEnd, parts: &[(u64, u32)]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for (at, len) in parts {
        let mut part = vec![0; *len as usize];
        front_end.memory.read_exact_at(&mut part, *at)?;
        all.extend(part);
    }
    Ok(all)
}

/// Packets of all lengths through one ring of chains that each hold 600 bytes in three pieces: what was made ready
/// for one and not needed is the next one's.
fn several(kernel: &mut Kernel, socket: &std::path::Path, features: u64) -> Result<()> {
    if features & MRG_RXBUF == 0 {
        return Ok(());
    }
    let mut front_end = FrontEnd::connect(socket)?;
    front_end.start(FEATURES | features)?;
    let rooms: Vec<Vec<(u64, u32)>> = (0..80)
        .map(|n| pieces(&[100, 250, 250], 600, BUFFERS + 0x400 * n))
        .collect();
    for (n, room) in (0u16..).zip(&rooms) {
        front_end.offer_chain(0, 3 * n, room)?;
    }
    front_end.kick(0)?;
    let mut next = 0;
    for len in [
        60, 1514, 1514, 60, 100, 588, 589, 1187, 1188, 1189, 60, 1514,
    ] {
        let bytes = long_frame(len);
        kernel.send_bytes(&bytes)?;
        let chains = (HEADER + len).div_ceil(600);
        front_end.done_until(0, (next + chains) as u16)?;
        let parts = rooms[next..next + chains].concat();
        let came = contents(&front_end, &parts)?;
        ensure!(
            came[10..HEADER] == (chains as u16).to_le_bytes(),
            "{len}: chains"
        );
        ensure!(came[HEADER..HEADER + len] == bytes, "{len}: other bytes");
        next += chains;
    }
    front_end.leave()
}

/// The kernel finds that memory is not there any more: that is the front end's end, and not the back end's.
fn cut() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    let memory = || super::front_end::memory(super::front_end::MEMORY_LEN, MFdFlags::empty());
    let rounds = 24u8;
    for round in 0..rounds {
        let mut front_end = FrontEnd::with(serving.socket(), memory()?)?;
        front_end.start(FEATURES | GUEST_CSUM)?;
        let gone = BUFFERS + 0x8000;
        match round % 2 {
            // Its header is there, its bytes are not.
            0 => {
                front_end.memory.set_len(gone)?;
                let parts = [(BUFFERS, 12), (gone, 400)];
                front_end.offer_chain(1, 0, &parts)?;
                front_end.kick(1)?;
            }
            _ => {
                front_end.offer_chain(0, 0, &[(gone, 2000)])?;
                front_end.kick(0)?;
                front_end.heard(0)?;
                front_end.memory.set_len(gone)?;
                kernel.send(round)?;
            }
        }
        front_end.ended()?;
    }
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(FEATURES | GUEST_CSUM)?;
    front_end.send(&frame(200))?;
    front_end.done(1)?;
    front_end.leave()?;
    let said = serving.stop()?;
    ensure!(said.broken_off.len() == usize::from(rounds), "{}", said.all);
    for text in &said.broken_off {
        ensure!(text.contains("bytes while it was in use"), "{text}");
    }
    Ok(())
}
