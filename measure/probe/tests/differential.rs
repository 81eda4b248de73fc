//! Every function of the system's own binaries is copied, and each copy is decoded again: it must be
//! the original but for the fields that depend on where it lies.
use hopscope_event::FunctionId;
use hopscope_probe::instrument::asm::{Asm, Zone};
use hopscope_probe::instrument::body::inlined::Crossings;
use hopscope_probe::instrument::body::unit::{Insn, JUMP_BYTES, Op, Piece, Unit};
use hopscope_probe::instrument::body::verdict::{ProcessTraits, accept};
use hopscope_probe::instrument::emit::body_copy::{Beside, Copied, Copier, Fused};
use hopscope_probe::instrument::emit::probe::{Live, ProbeConfig, Stores};
use hopscope_probe::instrument::emit::slow::Slow;
use hopscope_probe::locate::Image;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

const CONFIG: ProbeConfig = ProbeConfig {
    ring_records_log2: 16,
    bmi2: true,
    stores: Stores::Records,
    switchable: false,
    ordered_stamps: false,
};
const SWITCHABLE: ProbeConfig = ProbeConfig {
    switchable: true,
    ordered_stamps: false,
    ..CONFIG
};
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
/// Whether such a refusal says that the body cannot be moved (and not that it should not be).
const NOT_MOVABLE: [&str; 8] = [
    "undecodable",
    "branch-into-patch",
    "branch-into-instruction",
    "call-in-patch",
    "calls-own-body",
    "unsupported-instruction",
    "out-of-range",
    "too-short",
];

/// The well-known ones where they are installed, then whatever else there is, up to `count`.
fn binaries(count: usize) -> Vec<PathBuf> {
    let known = [
        "/usr/sbin/nginx",
        "/usr/sbin/haproxy",
        "/usr/sbin/ovs-vswitchd",
        "/usr/bin/openssl",
        "/usr/bin/python3.11",
        "/usr/bin/git",
        "/usr/bin/gdb",
        "/bin/bash",
    ];
    let names = [
        "libc.so.6",
        "libcrypto.so.3",
        "libssl.so.3",
        "libstdc++.so.6",
        "libm.so.6",
        "libz.so.1",
    ];
    let libraries = names.iter().map(|n| Path::new(LIBRARIES).join(n));
    let mut others: Vec<PathBuf> = std::fs::read_dir(LIBRARIES)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| {
            p.to_string_lossy().contains(".so.") && p.metadata().is_ok_and(|m| m.len() < 4 << 20)
        })
        .collect();
    others.sort();
    let mut seen = std::collections::HashSet::new();
    known
        .iter()
        .map(PathBuf::from)
        .chain(libraries)
        .chain(others)
        .filter(|p| p.canonicalize().is_ok_and(|real| seen.insert(real)))
        .take(count)
        .collect()
}

struct Placed<'a> {
    unit: &'a Unit,
    asm: &'a Asm,
    code: &'a [u8],
    base: u64,
    bias: u64,
    at: HashMap<u64, u64>,
}

impl Placed<'_> {
    fn decode(&self, at: u64) -> Instruction {
        let code = &self.code[(at - self.base) as usize..];
        Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode()
    }

    /// The instruction's copy, past the probe that precedes a way out; `end` is where the next
    /// instruction's copy starts.
    fn last_before(&self, end: u64, len: u64) -> Instruction {
        self.decode(end - len)
    }

    /// Where nothing was inserted, what follows an instruction is the copy of what followed it: the
    /// way of a branch that is not taken too.
    fn check_next(&self, insn: &Insn, at: u64, end: Option<u64>, name: &str) {
        let inserted = match insn.op {
            Op::ShortOnly { .. } => 7,
            Op::Plain | Op::RipRelative { .. } | Op::Call { .. } | Op::JumpIf { .. } => 0,
            Op::Jump { target } if self.unit.contains(target) => 0,
            _ => return,
        };
        let next = self.decode(at).next_ip() + inserted;
        assert_eq!(end.unwrap_or(next), next, "{name}: then another one");
    }

    fn check(&self, insn: &Insn, original: &[u8], end: Option<u64>) {
        let at = self.at[&insn.svma];
        let here = self.decode(at);
        let bytes = &self.code[(at - self.base) as usize..];
        let name = format!(
            "{:#x} {original:02x?} copied to {:02x?}",
            insn.svma,
            &bytes[..16.min(bytes.len())]
        );
        self.check_next(insn, at, end, &name);
        match insn.op {
            Op::Plain => assert_eq!(&bytes[..original.len()], original, "{name}"),
            Op::RipRelative { target, .. } => {
                assert_eq!(
                    here.ip_rel_memory_address(),
                    target.wrapping_add(self.bias),
                    "{name}"
                );
                assert_eq!(here.len(), original.len(), "{name}");
            }
            Op::Call { target } => {
                assert_eq!(
                    here.near_branch_target(),
                    target.wrapping_add(self.bias),
                    "{name}"
                );
            }
            Op::Jump { target } if self.unit.contains(target) => {
                assert_eq!(here.near_branch_target(), self.at[&target], "{name}");
            }
            Op::JumpIf { target, .. } if self.unit.contains(target) => {
                let before =
                    Decoder::with_ip(64, original, insn.svma, DecoderOptions::NONE).decode();
                assert_eq!(here.condition_code(), before.condition_code(), "{name}");
                assert_eq!(here.near_branch_target(), self.at[&target], "{name}");
            }
            Op::Jump { target } => {
                let Some(end) = end else { return };
                let jump = self.last_before(end, 5);
                assert_eq!(
                    jump.near_branch_target(),
                    target.wrapping_add(self.bias),
                    "{name}"
                );
            }
            Op::IndirectTail { target, .. } => {
                let Some(end) = end else { return };
                let jump = self.last_before(end, original.len() as u64);
                assert_eq!(
                    jump.ip_rel_memory_address(),
                    target.wrapping_add(self.bias),
                    "{name}"
                );
            }
            Op::Ret => {
                let Some(end) = end else { return };
                let from = (end - self.base) as usize - original.len();
                assert_eq!(&self.code[from..from + original.len()], original, "{name}");
            }
            Op::JumpIf { .. } | Op::ShortOnly { .. } | Op::IndirectJump => {
                assert!(!here.is_invalid(), "{name}");
            }
        }
    }
}

/// Whether its probes can be switched off.
fn check_copy(unit: &Unit, pieces: &[Piece], bias: u64, config: &ProbeConfig) -> bool {
    let mut asm = Asm::new();
    let slow = asm.label();
    asm.bind(Zone::Cold, slow);
    let id = FunctionId(1);
    let mut copier = Copier {
        asm: &mut asm,
        config,
        slow: Slow::both(slow),
        copy: None,
        unwound: false,
        tables: true,
    };
    let (none, no_calls) = (Crossings::default(), HashMap::new());
    let beside = Beside {
        captures: &[],
        inlined: &none,
        fused: Fused {
            calls: &no_calls,
            ways: &[],
        },
    };
    let copied: Copied = copier
        .copy(unit, pieces, bias, id, Live::ALL, beside)
        .expect("was accepted");
    let base = bias + 0x4000_0000;
    let code = asm.link(base).expect("in reach");
    let at: HashMap<u64, u64> = copied
        .map
        .iter()
        .map(|(svma, zone, offset)| (*svma, asm.address_of(*zone, *offset, base)))
        .collect();
    let placed = Placed {
        unit,
        asm: &asm,
        code: &code,
        base,
        bias,
        at,
    };
    assert_eq!(
        placed.at.len(),
        unit.insns().count(),
        "every instruction has a copy"
    );
    for (piece, source) in unit.pieces.iter().zip(pieces) {
        let mut next = piece.range.start;
        for (n, insn) in piece.insns.iter().enumerate() {
            assert_eq!(insn.svma, next, "every byte is accounted for");
            next = insn.next();
            let from = (insn.svma - piece.range.start) as usize;
            let original = &source.bytes[from..from + insn.len as usize];
            let end = piece.insns.get(n + 1).map(|i| placed.at[&i.svma]);
            placed.check(insn, original, end);
        }
        assert_eq!(next, piece.range.end, "every byte is accounted for");
    }
    if let Some(head) = &copied.head {
        check_head(&placed, head, pieces);
    }
    assert!(placed.asm.len() >= code.len());
    copied.head.is_some()
}

/// Where probes are off: what the jump at the entry replaced is done elsewhere, and the original body
/// goes on behind it.
fn check_head(placed: &Placed, head: &[(u64, u32)], pieces: &[Piece]) {
    let at = |offset| placed.asm.address_of(Zone::Stub, offset, placed.base);
    let unit = placed.unit;
    let outside = |target: u64| target.wrapping_add(placed.bias);
    assert_eq!(head[0].0, unit.patch_at);
    for pair in head.windows(2) {
        let ((svma, offset), (next, _)) = (pair[0], pair[1]);
        let from = (svma - pieces[0].svma) as usize;
        let original = &pieces[0].bytes[from..(next - pieces[0].svma) as usize];
        let (piece, n) = unit.position(svma).expect("an instruction");
        let insn = unit.pieces[piece].insns[n];
        let here = placed.decode(at(offset));
        let name = format!("{svma:#x} {original:02x?} in the head");
        match insn.op {
            Op::Plain | Op::Ret => {
                let from = (at(offset) - placed.base) as usize;
                assert_eq!(
                    &placed.code[from..from + original.len()],
                    original,
                    "{name}"
                );
            }
            Op::RipRelative { target, .. } | Op::IndirectTail { target, .. } => {
                assert_eq!(here.ip_rel_memory_address(), outside(target), "{name}");
                assert_eq!(here.len(), original.len(), "{name}");
            }
            Op::Jump { target } | Op::Call { target } => {
                assert_eq!(here.near_branch_target(), outside(target), "{name}");
            }
            Op::JumpIf { target, .. } => {
                let before = Decoder::with_ip(64, original, svma, DecoderOptions::NONE).decode();
                assert_eq!(here.condition_code(), before.condition_code(), "{name}");
                assert_eq!(here.near_branch_target(), outside(target), "{name}");
            }
            Op::ShortOnly { target } => {
                // Over the jump that is not taken: to the one that is.
                let taken = placed.decode(here.near_branch_target());
                assert_eq!(taken.near_branch_target(), outside(target), "{name}");
            }
            Op::IndirectJump => panic!("{name}: it must not be there"),
        }
    }
    let &(end, offset) = head.last().expect("it has an end");
    let (piece, n) = unit.position(head[head.len() - 2].0).expect("the last");
    if unit.pieces[piece].insns[n].goes_on() {
        let behind = placed.decode(at(offset));
        assert_eq!(behind.near_branch_target(), outside(end));
        assert!(end >= unit.patch_at + JUMP_BYTES, "into the jump");
    }
}

#[test]
fn copies_decode_to_their_originals() {
    let full = std::env::var("HOPSCOPE_COUNTS").is_ok_and(|c| c == "full");
    let files = binaries(if full { 120 } else { 24 });
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut functions, mut copied, mut switched) = (0u64, 0u64, 0u64);
    for path in &files {
        let Ok(image) = Image::open(path) else {
            continue;
        };
        // Also what has landing pads, which users may ask for.
        let process = ProcessTraits {
            assume_no_exceptions: true,
            ..ProcessTraits::default()
        };
        for function in image.functions() {
            functions += 1;
            match accept(&image, function, process) {
                Ok((unit, pieces)) => {
                    let bias = 0x5555_0000_0000;
                    assert!(!check_copy(&unit, &pieces, bias, &CONFIG));
                    switched += u64::from(check_copy(&unit, &pieces, bias, &SWITCHABLE));
                    copied += 1;
                }
                Err(why) => *refused.entry(why.class()).or_default() += 1,
            }
        }
    }
    let stuck: u64 = NOT_MOVABLE
        .iter()
        .filter_map(|class| refused.get(class))
        .sum();
    println!(
        "{} files, {functions} functions, {copied} copied and compared, {switched} with a switch, refused: {refused:?}",
        files.len()
    );
    assert!(
        files.len() >= 20 && copied > 5_000,
        "too little to compare with"
    );
    // A tenth has a computed jump.
    assert!(
        switched * 100 >= copied * 85,
        "{switched} of {copied} can be switched"
    );
    // Of those that policy does not exclude, at least 99.5 % can be moved.
    assert!(
        stuck * 1000 <= (copied + stuck) * 5,
        "{stuck} of {} cannot be moved",
        copied + stuck
    );
}
