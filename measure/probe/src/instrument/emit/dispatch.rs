//! Translation of indirect jumps: a computed target inside the function goes to the copy, any
//! other one leaves it.
//!
//! All registers are live at such a jump, and a signal may arrive at any instruction, so the
//! target travels on the stack below the red zone and is taken by `ret imm16`, which pops it and
//! steps over the red zone at once. The site uses `call`, so call and `ret` stay paired and the
//! return predictor stays in step; the price is one mispredicted return per indirect jump.
use super::capture;
use super::probe::{self, LEA_RSP_DOWN, Live, ProbeConfig, Site, Stores, below};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::inlined::Crossing;
use crate::instrument::capture::Capture;
use crate::locate::FrameAddress;
use hopscope_event::record::{FunctionId, RecordKind};

/// A range of the original body and the table that translates it.
#[derive(Debug, Clone, Copy)]
pub struct Translated {
    pub original: Label,
    pub bytes: u32,
    /// One `u32` for each byte of the range: distance from `copy_base`, 0 = no instruction starts
    /// here.
    pub table: Label,
    pub copy_base: Label,
}

/// Bytes between rsp inside the dispatcher and rsp at the jump: saved registers, return address
/// of the site, target, red zone.
fn depth(pushed: u32) -> u32 {
    pushed + 8 + 8 + 128
}

/// At the site: steps below the red zone, pushes the target (`push` is the jump's own operand,
/// already corrected for the step) and calls the dispatcher.
pub fn site(asm: &mut Asm, zone: Zone, push: &[u8], dispatcher: Label) {
    asm.bytes(zone, LEA_RSP_DOWN);
    asm.bytes(zone, push);
    asm.rel32(zone, &[0xe8], dispatcher, &[]);
}

/// Where computed jumps lead, and what is recorded of those that leave.
#[derive(Clone, Copy)]
pub struct Ways<'a> {
    pub ranges: &'a [Translated],
    /// The inlined functions that the jump is in, the innermost first.
    pub leaving: &'a [Crossing],
    /// Read where the function is left.
    pub counters: &'a [Capture],
}

/// The dispatcher of one unit, or of one jump.
pub fn dispatcher(
    asm: &mut Asm,
    config: &ProbeConfig,
    slow: Slow,
    function: FunctionId,
    ways: Ways,
    entry: Label,
) {
    let Ways {
        ranges,
        leaving,
        counters,
    } = ways;
    let z = Zone::Cold;
    asm.align(z, 16, 0xcc);
    asm.bind(z, entry);
    let (leave, escape, go) = (asm.label(), asm.label(), asm.label());
    let pushed = probe::save(asm, z, Live::ALL);
    for (i, range) in ranges.iter().enumerate() {
        let next = asm.label();
        load_target(asm, pushed);
        asm.rel32(z, &[0x48, 0x8d, 0x0d], range.original, &[]); // lea rcx, [original]
        asm.bytes(z, &[0x48, 0x29, 0xc8]); // sub rax, rcx
        if i == 0 {
            // A jump to the entry is a call that reuses the frame: through the original entry.
            asm.rel32(z, &[0x0f, 0x84], leave, &[]);
        }
        asm.bytes(z, &[0x48, 0x3d]); // cmp rax, imm32
        asm.bytes(z, &range.bytes.to_le_bytes());
        asm.rel32(z, &[0x0f, 0x83], next, &[]); // jae
        asm.rel32(z, &[0x48, 0x8d, 0x0d], range.table, &[]); // lea rcx, [table]
        asm.bytes(z, &[0x8b, 0x04, 0x81]); // mov eax, [rcx + rax*4]
        asm.bytes(z, &[0x85, 0xc0]); // test eax, eax
        asm.rel32(z, &[0x0f, 0x84], escape, &[]);
        asm.rel32(z, &[0x48, 0x8d, 0x0d], range.copy_base, &[]); // lea rcx, [copy]
        asm.bytes(z, &[0x48, 0x01, 0xc8]); // add rax, rcx
        asm.bytes(z, &[0x48, 0x89, 0x44, 0x24, pushed as u8]); // mov [rsp + pushed], rax
        asm.rel32(z, &[0xe9], go, &[]);
        asm.bind(z, next);
    }
    for (label, kind) in [(leave, RecordKind::TailExit), (escape, RecordKind::Escape)] {
        let after = asm.label();
        if kind == RecordKind::TailExit {
            asm.bind(z, label);
        } else {
            asm.rel32(z, &[0xe9], after, &[]);
            asm.bind(z, label);
        }
        load_target(asm, pushed);
        asm.bytes(z, &[0x48, 0x89, 0x44, 0x24, pushed as u8]);
        match config.stores {
            Stores::Records => {
                let leaving = leaving.iter().filter(|_| kind == RecordKind::TailExit);
                for crossing in leaving {
                    let position = below(crossing.position, depth(pushed));
                    let what = (crossing.function, crossing.kind);
                    probe::record(asm, z, config, slow, what, position, None);
                }
                let position = FrameAddress::Rsp(depth(pushed) as i32);
                match kind {
                    RecordKind::TailExit if !counters.is_empty() => {
                        let site = Site {
                            function,
                            kind,
                            live: Live::ALL,
                            red_zone: false,
                            position,
                        };
                        capture::exit(asm, z, config, slow, site, counters);
                    }
                    _ => {
                        let what = (function, kind);
                        probe::record(asm, z, config, slow, what, position, None);
                    }
                }
            }
            // What is live here was saved.
            Stores::Stamps => config.clock(asm, z),
            Stores::Nothing => {}
        }
        if kind == RecordKind::TailExit {
            asm.rel32(z, &[0xe9], go, &[]);
        } else {
            asm.bind(z, after);
        }
    }
    asm.bind(z, go);
    probe::restore(asm, z, Live::ALL);
    // ret 136: takes the slot of the site's return address, drops the target and the red zone
    asm.bytes(z, &[0xc2, 136, 0]);
}

/// mov rax, [rsp + pushed + 8]: the original target
fn load_target(asm: &mut Asm, pushed: u32) {
    asm.bytes(Zone::Cold, &[0x48, 0x8b, 0x44, 0x24, pushed as u8 + 8]);
}
