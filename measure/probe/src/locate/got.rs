//! Slots of the global offset table through which a file calls functions.
use super::Image;
use super::slot_reads::{GotSlot, SlotReads, Sweep, Table};
use hopscope_process::maps::USER_END;
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, elf};

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
        self.slot_reads.get_or_init(|| {
            let file = self.file();
            let table = file.as_ref().map(|f| Table::of(f, self.got_slots()));
            let mut sweep = Sweep::of(table.unwrap_or_default());
            for pointer in self.pointers() {
                sweep.takes(*pointer);
            }
            for (start, code) in self.stretches() {
                sweep.stretch(start, code);
            }
            sweep.reads
        })
    }
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
