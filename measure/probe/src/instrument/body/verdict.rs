//! Whether a function of a file can be measured, and if not, why. The same code decides for
//! `hopscope functions`, for `--dry-run` and for a real attach.
use super::never;
use super::refusal::{NoTables, Refusal};
use super::sensitive;
use super::unit::{JUMP_BYTES, Op, Piece, Surroundings, Unit};
use super::unwinding::ModuleUnwinding;
use crate::locate::{Function, Image, Known};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use std::sync::Arc;

/// What holds for the whole process, not only for one file.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessTraits<'p> {
    /// Which functions of the module in question may be unwound; `None`: none.
    pub unwinding: Option<&'p ModuleUnwinding>,
    /// Unwind tables of the module, where unwinders can be given those of copies.
    pub tables: Option<&'p hopscope_unwind::Module<'p>>,
    /// Why there are none.
    pub no_tables: Option<&'p NoTables>,
    /// The user asserts that nothing is unwound, so that landing pads are dead code too.
    pub assume_no_exceptions: bool,
    /// Nothing is written to the function: callers are led into its copy by their GOT slots.
    pub entry_stays: bool,
    /// User shadow stacks are on (x86_Thread_features: shstk).
    pub shadow_stack: bool,
}

impl ProcessTraits<'_> {
    fn why_no_tables(&self) -> NoTables {
        self.no_tables.cloned().unwrap_or_default()
    }
}

/// Decodes `function` and applies every rule. Without a process (`-b FILE`) pass the traits that
/// the file alone implies.
pub fn accept<'a>(
    image: &'a Image,
    function: &Function,
    process: ProcessTraits<'_>,
) -> Result<(Unit, Vec<Piece<'a>>), Refusal> {
    if image.is_dynamic_loader() {
        return Err(Refusal::NeverTouch("the dynamic loader"));
    }
    if let Some(what) = image.stack_walker(function.svma) {
        return Err(Refusal::StackWalker(what));
    }
    if image.is_unwinder() {
        return Err(Refusal::NeverTouch("the unwinder's library"));
    }
    if function.ifunc {
        return Err(Refusal::NeverTouch(
            "an IFUNC resolver, which runs while the program is linked",
        ));
    }
    // `_start`, also where a stripped file does not say so.
    let entry = image.entry_point();
    if entry != 0 && entry.wrapping_sub(function.svma) < function.size.max(1) {
        return Err(Refusal::NeverTouch("process start-up code"));
    }
    let names = std::iter::once(&function.raw_name).chain(&function.aliases);
    if let Some(why) = names.clone().find_map(|n| never::reason(n)) {
        return Err(Refusal::NeverTouch(why));
    }
    if function.size == 0 {
        return Err(Refusal::NoSize);
    }
    if function.has_frame_at_entry {
        return Err(Refusal::NotCalled);
    }
    if function.has_lsda && !process.assume_no_exceptions && process.tables.is_none() {
        return Err(Refusal::Lsda(process.why_no_tables()));
    }
    let pieces = pieces(image, function)?;
    let around = Surroundings {
        room: room(image, function),
        branch_into: &|range| image.branch_targets().any_in(range),
        entry_stays: process.entry_stays,
    };
    let mut unit = Unit::decode(&pieces, &around)?;
    if unit.leaves_for_good {
        return Err(Refusal::NeverTouch(never::TWICE));
    }
    unit.red_zone_at_entry = image.may_be_jumped_to(function);
    check_unwinding(function, &pieces, process)?;
    if process.shadow_stack && unit.has_indirect_jump {
        return Err(Refusal::IndirectJumpWithShadowStack);
    }
    check_reach(image, &unit)?;
    if let Some(callee) = caller_sensitive_call(image, &unit) {
        return Err(Refusal::CallerSensitive(callee));
    }
    if let Some((svma, by)) = known_by_address(image, &unit, &pieces) {
        return Err(Refusal::KnownByAddress { svma, by });
    }
    Ok((unit, pieces))
}

/// An instruction of the body that may fault and that something knows by its address.
fn known_by_address(image: &Image, unit: &Unit, pieces: &[Piece]) -> Option<(u64, Known)> {
    let known = unit.pieces.iter().zip(pieces).flat_map(|(decoded, piece)| {
        let known = image.known_within(decoded.range.clone());
        known.map(move |(at, by)| (at, by, piece))
    });
    let found = known.filter(|(at, by, piece)| {
        // Where the function jumps to by itself is translated.
        let is_jump_target = *by == Known::Pointer && unit.has_indirect_jump;
        // A part that begins there is entered as a function by whoever has its address.
        *at != piece.svma
            && !is_jump_target
            && unit.position(*at).is_some()
            && accesses_memory(&piece.bytes[(at - piece.svma) as usize..])
    });
    found.map(|(at, by, _)| (at, by)).next()
}

fn accesses_memory(bytes: &[u8]) -> bool {
    let ins = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let is_memory = |n: u32| {
        matches!(
            ins.op_kind(n),
            OpKind::Memory
                | OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        )
    };
    !matches!(ins.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) && (0..ins.op_count()).any(is_memory)
}

fn pieces<'a>(image: &'a Image, function: &Function) -> Result<Vec<Piece<'a>>, Refusal> {
    let entry = function.svma..function.svma + function.size;
    std::iter::once(&entry)
        .chain(&function.fragments)
        .map(|range| {
            let bytes = image.bytes(range.clone()).ok_or(Refusal::NoSize)?;
            Ok(Piece {
                svma: range.start,
                bytes,
            })
        })
        .collect()
}

/// Bytes from the entry that belong to nobody else: the function and the padding behind it.
fn room(image: &Image, function: &Function) -> u64 {
    // endbr64 and the jump
    let wanted = 4 + JUMP_BYTES;
    if function.size >= wanted {
        return function.size;
    }
    let end = function.svma + function.size;
    let free_until = image
        .next_function(function.svma)
        .unwrap_or(end)
        .max(end)
        .min(function.svma + wanted);
    let mut room = function.size;
    if let Some(padding) = image.bytes(end..free_until) {
        room += padding_len(padding);
    }
    room
}

/// Leading bytes that are int3, zero or whole no-ops.
fn padding_len(bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at], 0xcc | 0x00) {
            at += 1;
            continue;
        }
        let ins = Decoder::new(64, &bytes[at..], DecoderOptions::NONE).decode();
        // A no-op cut off by the end of the window is padding all the same.
        let cut = ins.is_invalid() && matches!(bytes[at], 0x66 | 0x2e | 0x0f | 0x90);
        if cut {
            return bytes.len() as u64;
        }
        if ins.mnemonic() != Mnemonic::Nop {
            break;
        }
        at += ins.len();
    }
    at as u64
}

/// Whether exceptions or the end of a thread may pass through the function's frame.
pub fn may_be_unwound(function: &Function, process: ProcessTraits<'_>) -> bool {
    let at_risk = || {
        process
            .unwinding
            .and_then(|u| u.of(function.svma))
            .is_some()
    };
    !process.assume_no_exceptions && (function.has_lsda || at_risk())
}

fn check_unwinding(
    function: &Function,
    pieces: &[Piece],
    process: ProcessTraits<'_>,
) -> Result<(), Refusal> {
    if !may_be_unwound(function, process) {
        return Ok(());
    }
    if let Some(tables) = process.tables {
        let range = |p: &Piece| p.svma..p.svma + p.bytes.len() as u64;
        let ranges: Vec<_> = pieces.iter().map(range).collect();
        return tables.check(&ranges).map_err(Refusal::UnwindTables);
    }
    let who = process.unwinding.and_then(|u| u.of(function.svma));
    let refused = |who: &Arc<str>| Refusal::MayUnwind(who.clone(), process.why_no_tables());
    who.map_or(Ok(()), |who| Err(refused(who)))
}

/// Half of what a displacement reaches.
const LOW: u64 = 1 << 30;

/// Everything the body refers to by displacement must be in its own file: then it is in reach of
/// any place near the module.
fn check_reach(image: &Image, unit: &Unit) -> Result<(), Refusal> {
    let range = image.svma_range();
    for insn in unit.insns() {
        let target = match insn.op {
            Op::RipRelative { target, .. } | Op::IndirectTail { target, .. } => target,
            Op::Call { target } | Op::Jump { target } | Op::JumpIf { target, .. } => target,
            _ => continue,
        };
        if image.is_rseq_descriptor(target) {
            return Err(Refusal::RestartableSequence);
        }
        // A program that lies low does not move, and copies near it reach what lies below it, too: compilers end a
        // program by a store to address 0.
        let below = target < range.start && range.end <= LOW;
        // One past the end is a legal address of an array.
        if target > range.end || (target < range.start && !below) {
            return Err(Refusal::OutOfRange { svma: target });
        }
    }
    Ok(())
}

/// A call, or a jump, to what looks at its caller's address, if only behind further jumps.
fn caller_sensitive_call(image: &Image, unit: &Unit) -> Option<String> {
    let sensitive = sensitive::of(image);
    let through = |name: &str, leads_to: &str| match name == leads_to {
        true => name.to_owned(),
        false => format!("{name} (which jumps to {leads_to})"),
    };
    unit.insns().find_map(|insn| {
        let name = match insn.op {
            Op::Call { target }
            | Op::Jump { target }
            | Op::JumpIf { target, .. }
            | Op::ShortOnly { target } => {
                let name = image.callee_name(target)?;
                if let Some(leads_to) = sensitive.by_address(target) {
                    // A jump within a function that jumps on elsewhere.
                    return (target != unit.entry).then(|| through(name, leads_to));
                }
                name
            }
            Op::RipRelative { target, .. } | Op::IndirectTail { target, .. } => {
                image.slot_symbol(target)?
            }
            _ => return None,
        };
        let name = name.split('@').next().unwrap_or(name);
        Some(through(name, &sensitive.by_name(name)?))
    })
}
