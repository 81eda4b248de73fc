//! Slots of the global offset table through which a file calls functions, and what else reads them.
use super::Image;
use hopscope_process::maps::USER_END;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, elf};
use std::collections::HashSet;

/// A slot that the dynamic linker fills in with the address of what a symbol is bound to
/// (System V ABI, AMD64 supplement: R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GotSlot {
    /// In the file.
    pub svma: u64,
    /// Without its version.
    pub symbol: String,
    /// A stub of the procedure linkage table jumps to what it holds.
    pub of_stub: bool,
}

/// What code does with the slots of its file: addresses in the file.
#[derive(Debug, Default)]
pub struct SlotReads {
    called: HashSet<u64>,
    otherwise: HashSet<u64>,
}

impl SlotReads {
    /// Whether who reads it calls or jumps to what is there, and does nothing else with it: a copy's address is
    /// none to be compared, or kept.
    pub fn is_only_called(&self, slot: &GotSlot) -> bool {
        let is_called = slot.of_stub || self.called.contains(&slot.svma);
        is_called && !self.otherwise.contains(&slot.svma)
    }
}

impl Image {
    /// Ascending by address.
    pub fn got_slots(&self) -> Vec<GotSlot> {
        let mut found: Vec<GotSlot> = self.file().map(|f| slots(&f)).unwrap_or_default();
        found.sort_by_key(|slot| slot.svma);
        found.dedup_by_key(|slot| slot.svma);
        found
    }

    /// Decodes every instruction, once: what lies between functions reads slots, too.
    pub fn slot_reads(&self) -> &SlotReads {
        self.slot_reads
            .get_or_init(|| self.find_reads(&self.got_slots()))
    }

    fn find_reads(&self, slots: &[GotSlot]) -> SlotReads {
        let mut reads = SlotReads::default();
        let (Some(first), Some(last)) = (slots.first(), slots.last()) else {
            return reads;
        };
        let span = first.svma..last.svma + SLOT_BYTES;
        for (start, code) in self.stretches() {
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            let mut ins = Instruction::default();
            while decoder.can_decode() {
                decoder.decode_out(&mut ins);
                let Some(at) = fixed_address(&ins).filter(|at| span.contains(at)) else {
                    continue;
                };
                match ins.flow_control() {
                    FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                        reads.called.insert(at);
                    }
                    _ => {
                        let read = slots_in(slots, at, ins.memory_size().size());
                        reads.otherwise.extend(read);
                    }
                }
            }
        }
        reads
    }
}

const SLOT_BYTES: u64 = 8;

/// Those that an operand of so many bytes lies in; of an address that is taken they are not known.
fn slots_in(slots: &[GotSlot], at: u64, bytes: usize) -> impl Iterator<Item = u64> {
    let from = slots.partition_point(|s| s.svma + SLOT_BYTES <= at);
    let end = at + bytes.max(1) as u64;
    let read = slots[from..].iter().map(|s| s.svma);
    read.take_while(move |svma| *svma < end)
}

/// The address of a memory operand that needs no register but rip.
fn fixed_address(ins: &Instruction) -> Option<u64> {
    if ins.is_ip_rel_memory_operand() {
        return Some(ins.ip_rel_memory_address());
    }
    let bare = ins.memory_base() == Register::None && ins.memory_index() == Register::None;
    (bare && ins.memory_displ_size() > 0).then(|| ins.memory_displacement64())
}

fn slots(file: &object::File) -> Vec<GotSlot> {
    let (Some(relocations), Some(symbols)) =
        (file.dynamic_relocations(), file.dynamic_symbol_table())
    else {
        return Vec::new();
    };
    let slot = |(svma, relocation): (u64, object::Relocation)| {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            return None;
        };
        let of_stub = match r_type {
            elf::R_X86_64_JUMP_SLOT => true,
            elf::R_X86_64_GLOB_DAT => false,
            _ => return None,
        };
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return None;
        };
        // Sums with it do not overflow.
        let is_possible = svma < USER_END;
        let symbol = symbols.symbol_by_index(index).ok()?.name().ok()?;
        let bare = symbol.split('@').next().unwrap_or(symbol);
        is_possible.then(|| GotSlot {
            svma,
            symbol: bare.to_owned(),
            of_stub,
        })
    };
    relocations.filter_map(slot).collect()
}
