//! The running kernel's verifier takes every block, and its results are those of the interpreters.
//! Needs CAP_BPF or CAP_SYS_ADMIN, and says so where it has neither.
use super::{expressions, packets, programs, random};
use crate::filter::{FILLER, Filter, Link, REACH, Scratch, Verdict, place};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packet, scratch memory, bytes that are there, length on the wire.
const VALUE: usize = REACH as usize + 64 + 8;
const BLOCK: usize = 1000;
const MARKER: [u64; 2] = [0x686f_7031_0000_00b7, 0x686f_7032_0000_00b7];

/// A whole program around a block; its result is 1 for a match, 2 for cut off.
fn around(block: &[u64]) -> Vec<u64> {
    let mut program = vec![
        0x0000_0000_0000_1118, // r1 = the map
        0,
        0x0000_0000_0000_a2bf, // r2 = r10
        0xffff_fffc_0000_0207, // r2 += -4
        0x0000_0000_fffc_0a62, // *(u32 *)(r10 - 4) = 0
        0x0000_0001_0000_0085, // call bpf_map_lookup_elem
        0x0000_0000_0001_0055, // if r0 != 0 goto +1
        0x0000_0000_0000_0095, // exit
        0x0000_0000_0000_01bf, // r1 = r0
        0x0000_0000_0140_1261, // r2 = *(u32 *)(r1 + 320)
        0x0000_0000_0144_1361, // r3 = *(u32 *)(r1 + 324)
    ];
    program.extend(MARKER);
    program.resize(program.len() + BLOCK - 2, FILLER);
    program.extend([
        0x0000_0001_0000_0167, // r1 <<= 1
        0x0000_0000_0001_0015, // if r0 == 0 goto +1
        0x0000_0001_0000_00b7, // r0 = 1
        0x0000_0000_0000_104f, // r0 |= r1
        0x0000_0000_0000_0095, // exit
    ]);
    place(&mut program, MARKER, BLOCK, block).unwrap();
    program
}

fn value(packet: &[u8], wire_len: u32) -> Vec<u8> {
    let present = packet.len().min(REACH as usize);
    let mut value = packet[..present].to_vec();
    value.resize(VALUE - 8, 0xa5);
    value.extend((present as u32).to_le_bytes());
    value.extend(wire_len.to_le_bytes());
    value
}

fn run(runner: &Path, block: &[u64], packets: &[(Vec<u8>, u32)]) -> Vec<Verdict> {
    let mut input = Vec::new();
    let program = around(block);
    input.extend((program.len() as u32).to_le_bytes());
    input.extend(program.iter().flat_map(|insn| insn.to_le_bytes()));
    input.extend((packets.len() as u32).to_le_bytes());
    input.extend(
        packets
            .iter()
            .flat_map(|(packet, wire_len)| value(packet, *wire_len)),
    );
    let mut child = Command::new(runner)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A refused program does not read its packets.
    let _ = child.stdin.take().unwrap().write_all(&input);
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}: {said}", out.status);
    assert_eq!(out.stdout.len(), 4 * packets.len());
    let verdict = |word: &[u8]| match word {
        [0, 0, 0, 0] => Verdict::NoMatch,
        [1, 0, 0, 0] => Verdict::Match,
        [2, 0, 0, 0] => Verdict::CutOff,
        _ => panic!("the program gave {word:?}"),
    };
    out.stdout.chunks(4).map(verdict).collect()
}

/// The compiled runner, or nothing where this process may not load programs.
pub(super) fn runner(name: &str) -> Option<PathBuf> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .unwrap();
    let capabilities = u64::from_str_radix(line.trim(), 16).unwrap();
    let (cap_sys_admin, cap_bpf) = (1 << 21, 1 << 39);
    if capabilities & (cap_sys_admin | cap_bpf) == 0 {
        println!("SKIP: no CAP_BPF");
        return None;
    }
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/filter/tests/run_in_kernel.c"
    );
    let runner = std::env::temp_dir().join(format!("hopscope-{name}-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-o"])
        .arg(&runner)
        .arg(source)
        .status();
    assert!(built.unwrap().success());
    Some(runner)
}

pub(super) fn verdicts(runner: &Path, filter: &Filter, packets: &[(Vec<u8>, u32)]) -> Vec<Verdict> {
    let block = filter.to_ebpf(BLOCK, Scratch::Stack(-64)).unwrap();
    run(runner, &block, packets)
}

fn compare(runner: &Path, what: &str, filter: &Filter, packets: &[(Vec<u8>, u32)]) {
    for scratch in [Scratch::Value(REACH as i16), Scratch::Stack(-128)] {
        let block = filter.to_ebpf(BLOCK, scratch).unwrap();
        let theirs = run(runner, &block, packets);
        for ((packet, wire_len), theirs) in packets.iter().zip(theirs) {
            let copied = &packet[..packet.len().min(REACH as usize)];
            let ours = filter.verdict(copied, *wire_len);
            assert_eq!(ours, theirs, "{what}: {packet:02x?} of {wire_len}");
        }
    }
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut source = TestRunner::deterministic();
    (0..count)
        .map(|_| of.new_tree(&mut source).unwrap().current())
        .collect()
}

#[test]
fn every_form_of_expression() {
    let Some(runner) = runner("forms") else {
        return;
    };
    let packets: Vec<(Vec<u8>, u32)> = some(packets::network(), 400)
        .into_iter()
        .map(|packet| {
            let len = packet.len() as u32;
            (packet, len)
        })
        .collect();
    for expression in expressions::NETWORK {
        let filter = Filter::compile(expression, Link::Network).unwrap();
        compare(&runner, expression, &filter, &packets);
    }
    std::fs::remove_file(runner).unwrap();
}

#[test]
fn random_programs() {
    let Some(runner) = runner("random") else {
        return;
    };
    let packets = some(programs::packet(), 20);
    let mut tried = 0;
    for insns in some(programs::program(), 300) {
        let filter = random::filter(&insns);
        if filter.to_ebpf(BLOCK, Scratch::Stack(-64)).is_ok() {
            compare(&runner, &format!("{insns:?}"), &filter, &packets);
            tried += 1;
        }
    }
    assert!(tried > 100, "only {tried} could be translated");
    std::fs::remove_file(runner).unwrap();
}
