//! What code does with the slots of its file's global offset table: calls through them, or more.
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use object::{Object, ObjectKind, ObjectSection, RelocationFlags, elf};
use std::collections::{HashSet, VecDeque};
use std::ops::Range;

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
    /// The table's own address is computed with: what is read then is not known.
    any: bool,
}

impl SlotReads {
    /// Whether who reads it calls or jumps to what is there, and does nothing else with it: a copy's address is
    /// none to be compared, or kept.
    pub fn is_only_called(&self, slot: &GotSlot) -> bool {
        let is_called = slot.of_stub || self.called.contains(&slot.svma);
        is_called && !self.any && !self.otherwise.contains(&slot.svma)
    }
}

const SLOT_BYTES: u64 = 8;
/// Between slots that belong together lie those of variables.
const APART: u64 = 512;
/// Three words that the dynamic linker has for itself are before the first one.
const RESERVED: u64 = 3 * SLOT_BYTES;

/// Where slots lie.
#[derive(Default)]
pub(super) struct Table {
    /// Ascending.
    slots: Vec<GotSlot>,
    spans: Vec<Range<u64>>,
    /// Words of thread-local variables, of which code takes the addresses.
    of_threads: HashSet<u64>,
    /// What `_GLOBAL_OFFSET_TABLE_` names.
    base: Option<u64>,
    /// Its addresses are the process's: they may be numbers in its code.
    is_fixed: bool,
}

impl Table {
    pub(super) fn of(file: &object::File, slots: Vec<GotSlot>) -> Table {
        let together = slots.chunk_by(|a, b| b.svma - a.svma <= APART);
        let span = |slots: &[GotSlot]| {
            let last = slots[slots.len() - 1].svma;
            slots[0].svma.saturating_sub(RESERVED)..last + SLOT_BYTES
        };
        let of_threads = file.dynamic_relocations().into_iter().flatten();
        let of_threads = of_threads.filter(|(_, relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                return false;
            };
            let kinds = [
                elf::R_X86_64_DTPMOD64,
                elf::R_X86_64_DTPOFF64,
                elf::R_X86_64_TPOFF64,
                elf::R_X86_64_TLSDESC,
            ];
            kinds.contains(&r_type)
        });
        let section = |name| file.section_by_name(name).map(|s| s.address());
        Table {
            spans: together.map(span).collect(),
            of_threads: of_threads.map(|(at, _)| at).collect(),
            base: section(".got.plt").or(section(".got")),
            is_fixed: file.kind() == ObjectKind::Executable,
            slots,
        }
    }

    fn spans(&self, at: u64) -> bool {
        let after = self.spans.partition_point(|span| span.end <= at);
        self.spans.get(after).is_some_and(|span| span.contains(&at))
    }

    /// Those that an operand of so many bytes lies in.
    fn read(&self, at: u64, bytes: usize) -> impl Iterator<Item = u64> {
        let from = self.slots.partition_point(|s| s.svma + SLOT_BYTES <= at);
        let end = at.saturating_add(bytes.max(1) as u64);
        let read = self.slots[from..].iter().map(|s| s.svma);
        read.take_while(move |svma| *svma < end)
    }
}

/// Addresses and distances that code has loaded lately, which may be added.
const LATELY: usize = 16;

pub(super) struct Sweep {
    table: Table,
    addresses: VecDeque<u64>,
    distances: VecDeque<u64>,
    pub(super) reads: SlotReads,
}

impl Sweep {
    pub(super) fn of(table: Table) -> Sweep {
        Sweep {
            table,
            addresses: VecDeque::new(),
            distances: VecDeque::new(),
            reads: SlotReads::default(),
        }
    }

    /// An address that is kept, or computed with.
    pub(super) fn takes(&mut self, at: u64) {
        if !self.table.spans(at) || self.table.of_threads.contains(&at) {
            return;
        }
        match self.table.slots.binary_search_by_key(&at, |s| s.svma) {
            Ok(_) => drop(self.reads.otherwise.insert(at)),
            Err(_) => self.reads.any = true,
        }
    }

    pub(super) fn stretch(&mut self, start: u64, code: &[u8]) {
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut ins = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut ins);
            self.memory(&ins);
            self.numbers(&ins);
        }
    }

    fn memory(&mut self, ins: &Instruction) {
        let is_lea = ins.code() == Code::Lea_r64_m;
        if let Some(at) = fixed_address(ins) {
            if is_lea {
                self.takes(at);
                lately(&mut self.addresses, at);
                self.add_up();
            } else if !self.table.spans(at) {
            } else if calls(ins) {
                self.reads.called.insert(at);
            } else {
                let read = self.table.read(at, ins.memory_size().size());
                self.reads.otherwise.extend(read);
            }
        } else if self.table.is_fixed && self.table.spans(ins.memory_displacement64()) {
            // An element of it.
            self.reads.any |= !calls(ins);
        }
    }

    fn numbers(&mut self, ins: &Instruction) {
        if ins.code() == Code::Mov_r64_imm64 {
            let number = ins.immediate64();
            // The large code model: a slot by its distance from the table.
            if let Some(base) = self.table.base {
                let at = base.wrapping_add(number);
                let is_slot = self.table.slots.binary_search_by_key(&at, |s| s.svma);
                if is_slot.is_ok() {
                    self.reads.otherwise.insert(at);
                }
            }
            lately(&mut self.distances, number);
            self.add_up();
        }
        if self.table.is_fixed {
            for n in 0..ins.op_count() {
                let is_branch = matches!(ins.op_kind(n), OpKind::NearBranch64);
                if let (false, Ok(number)) = (is_branch, ins.try_immediate(n)) {
                    self.takes(number);
                }
            }
        }
    }

    /// The table's own address, from that of the code and the distance between them.
    fn add_up(&mut self) {
        let Some(base) = self.table.base else { return };
        let is_it = |at: &u64| self.distances.contains(&base.wrapping_sub(*at));
        self.reads.any |= self.addresses.iter().any(is_it);
    }
}

fn lately(list: &mut VecDeque<u64>, value: u64) {
    if list.len() == LATELY {
        list.pop_front();
    }
    list.push_back(value);
}

fn calls(ins: &Instruction) -> bool {
    matches!(
        ins.flow_control(),
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    )
}

/// The address of a memory operand that needs no register but rip.
fn fixed_address(ins: &Instruction) -> Option<u64> {
    if ins.is_ip_rel_memory_operand() {
        return Some(ins.ip_rel_memory_address());
    }
    let bare = ins.memory_base() == Register::None && ins.memory_index() == Register::None;
    (bare && ins.memory_displ_size() > 0).then(|| ins.memory_displacement64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: u64 = 0x40_3000;
    const BASE: u64 = SLOT - RESERVED;
    const HERE: u64 = 0x40_1000;

    fn slot(svma: u64) -> GotSlot {
        GotSlot {
            svma,
            symbol: "f".into(),
            of_stub: false,
        }
    }

    /// Whether two slots are only called, by code that calls through both and has `more` behind that.
    fn only_called(is_fixed: bool, more: &[&[u8]]) -> [bool; 2] {
        let table = Table {
            slots: vec![slot(SLOT), slot(SLOT + 8)],
            spans: std::iter::once(BASE..SLOT + 32).collect(),
            of_threads: HashSet::from([SLOT + 16]),
            base: Some(BASE),
            is_fixed,
        };
        let mut code = [call(0, SLOT), call(6, SLOT + 8)].concat();
        code.extend(more.concat());
        let mut sweep = Sweep::of(table);
        sweep.stretch(HERE, &code);
        [SLOT, SLOT + 8].map(|at| sweep.reads.is_only_called(&slot(at)))
    }

    fn relative(opcode: &[u8], at: u64, to: u64) -> Vec<u8> {
        let next = HERE + at + opcode.len() as u64 + 4;
        let distance = (to.wrapping_sub(next) as i32).to_le_bytes();
        [opcode, &distance].concat()
    }

    fn call(at: u64, to: u64) -> Vec<u8> {
        relative(&[0xff, 0x15], at, to)
    }

    #[test]
    fn a_slot_that_is_read_is_told_from_one_that_is_called() {
        let lea = |to| relative(&[0x48, 0x8d, 0x05], 12, to);
        // mov rax, [slot]; push qword [slot]; cmp rax, [slot]
        for read in [&[0x48, 0x8b, 0x05][..], &[0xff, 0x35], &[0x48, 0x3b, 0x05]] {
            let reads = relative(read, 12, SLOT);
            assert_eq!(only_called(false, &[&reads]), [false, true]);
        }
        // movdqu xmm0, [slot]: both of them
        let both = relative(&[0xf3, 0x0f, 0x6f, 0x05], 12, SLOT);
        assert_eq!(only_called(false, &[&both]), [false, false]);
        assert_eq!(only_called(false, &[&lea(SLOT)]), [false, true]);
        // What is found from another place of the table may be any; thread-local variables are no slots.
        assert_eq!(only_called(false, &[&lea(SLOT - 8)]), [false, false]);
        assert_eq!(only_called(false, &[&lea(SLOT + 16)]), [true, true]);
        assert_eq!(only_called(false, &[&lea(SLOT + 64)]), [true, true]);
        assert_eq!(only_called(false, &[]), [true, true]);
    }

    #[test]
    fn a_table_that_is_computed_is_found() {
        let movabs = |number: u64| [&[0x48, 0xba][..], &number.to_le_bytes()].concat();
        // movabs rdx, slot - base
        assert_eq!(only_called(false, &[&movabs(SLOT - BASE)]), [false, true]);
        // lea rax, [here]; movabs rdx, base - here
        let lea = relative(&[0x48, 0x8d, 0x05], 12, HERE + 12);
        let distance = movabs(BASE - HERE - 12);
        assert_eq!(only_called(false, &[&lea, &distance]), [false, false]);
        assert_eq!(only_called(false, &[&lea, &movabs(5)]), [true, true]);
    }

    #[test]
    fn numbers_are_addresses_where_programs_do_not_move() {
        // mov eax, slot; mov rax, [slot + rcx * 8]; call [slot + rcx * 8]
        let number = (SLOT as u32).to_le_bytes();
        let immediate = [&[0xb8][..], &number].concat();
        let element = [&[0x48, 0x8b, 0x04, 0xcd][..], &number].concat();
        let called = [&[0xff, 0x14, 0xcd][..], &number].concat();
        for is_fixed in [true, false] {
            let kept = !is_fixed;
            assert_eq!(only_called(is_fixed, &[&immediate]), [kept, true]);
            assert_eq!(only_called(is_fixed, &[&element]), [kept, kept]);
            assert_eq!(only_called(is_fixed, &[&called]), [true, true]);
        }
    }
}
