//! Which of the probe's scratch registers are dead at the entry: a register that the function
//! overwrites before it reads it holds nothing anybody can miss (its callers already know that
//! this function clobbers it, `-fipa-ra` included).
use crate::instrument::capture::Reg;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, RflagsBits,
};

const STATUS_FLAGS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Registers a probe has to put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// One that it may use beside these, and need not.
    pub spare: Option<Reg>,
    pub rax: bool,
    pub rcx: bool,
    pub rdx: bool,
    pub flags: bool,
}

impl Live {
    pub const ALL: Live = Live {
        spare: None,
        rax: true,
        rcx: true,
        rdx: true,
        flags: true,
    };

    pub(in crate::instrument) fn pushed(self) -> u32 {
        8 * (self.rax as u32 + self.rcx as u32 + self.rdx as u32 + self.flags as u32)
    }
}

/// What is followed: those that a probe uses in any case, and those that it may use where they are dead.
const FOLLOWED: [(Register, Reg); 9] = [
    (Register::RAX, Reg::RAX),
    (Register::RCX, Reg::RCX),
    (Register::RDX, Reg::RDX),
    (Register::RSI, Reg::RSI),
    (Register::RDI, Reg::RDI),
    (Register::R8, Reg::R8),
    (Register::R9, Reg::R9),
    (Register::R10, Reg::R10),
    (Register::R11, Reg::R11),
];
const USED: usize = 3;

/// Straight-line scan from the entry; whatever is undecided at the first branch is live.
pub fn at_entry(bytes: &[u8], svma: u64) -> Live {
    let mut decoder = Decoder::with_ip(64, bytes, svma, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut ins = Instruction::default();
    // Some(true) = read first, Some(false) = overwritten first
    let mut regs: [Option<bool>; FOLLOWED.len()] = [None; FOLLOWED.len()];
    let mut flags_unread = STATUS_FLAGS;
    let mut flags: Option<bool> = None;
    for _ in 0..24 {
        if !decoder.can_decode() {
            break;
        }
        decoder.decode_out(&mut ins);
        if ins.is_invalid() {
            break;
        }
        if flags.is_none() && ins.rflags_read() & flags_unread != 0 {
            flags = Some(true);
        }
        let info = factory.info(&ins);
        for read in [true, false] {
            for used in info.used_registers() {
                let Some(slot) = FOLLOWED
                    .iter()
                    .position(|(r, _)| *r == used.register().full_register())
                else {
                    continue;
                };
                let whole = used.register().size() >= 4 && used.access() == OpAccess::Write;
                // Anything but a whole, certain write keeps the old value alive.
                if regs[slot].is_none() && whole != read {
                    regs[slot] = Some(read);
                }
            }
        }
        if ins.flow_control() != FlowControl::Next {
            break;
        }
        flags_unread &= !flags_replaced(&ins);
        if flags.is_none() && flags_unread == 0 {
            flags = Some(false);
        }
    }
    let live = |state: Option<bool>| state != Some(false);
    let flags = live(flags);
    let spare = (USED..FOLLOWED.len()).find(|slot| !live(regs[*slot]));
    Live {
        spare: spare.map(|slot| FOLLOWED[slot].1),
        rax: live(regs[0]),
        rcx: live(regs[1]),
        rdx: live(regs[2]),
        flags,
    }
}

/// Flags that hold nothing of their old values behind `ins`, whatever its operands. What the manual
/// calls undefined is what it was before on some processors, for the instructions named here.
fn flags_replaced(ins: &Instruction) -> u32 {
    use Mnemonic::*;
    let defined = ins.rflags_modified() & !ins.rflags_undefined();
    match ins.mnemonic() {
        // With a count of zero all flags stay (Intel SDM vol. 2, SAL/SAR/SHL/SHR).
        Shl | Sal | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd => {
            let count = ins.op_count() - 1;
            let mask = match ins.op0_register().size().max(ins.memory_size().size()) {
                8 => 63,
                _ => 31,
            };
            let is_sure = ins.op_kind(count) != OpKind::Register && ins.immediate(count) & mask > 0;
            if is_sure { defined } else { 0 }
        }
        // Repeated, they may compare nothing.
        Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq => {
            match ins.has_rep_prefix() || ins.has_repne_prefix() {
                true => 0,
                false => defined,
            }
        }
        Div | Idiv | Bsf | Bsr | Bt | Btc | Btr | Bts => defined,
        _ => ins.rflags_modified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_to_zero_keeps_the_flags() {
        // shl bpl, cl; ret
        assert!(at_entry(&[0x40, 0xd2, 0xe5, 0xc3], 0).flags);
        // shl eax, 0; ret
        assert!(at_entry(&[0xc1, 0xe0, 0, 0xc3], 0).flags);
        // setc cl reads CF, add rax, rdi ends the question; shl eax, 32 counts to zero, shl rax, 32
        // does not.
        let then = [0x0f, 0x92, 0xc1, 0x48, 0x01, 0xf8, 0xc3];
        assert!(at_entry(&[&[0xc1, 0xe0, 32][..], &then].concat(), 0).flags);
        assert!(!at_entry(&[&[0x48, 0xc1, 0xe0, 32][..], &then].concat(), 0).flags);
        // shld eax, edx, cl; ret
        assert!(at_entry(&[0x0f, 0xa5, 0xd0, 0xc3], 0).flags);
        // repe cmpsb; ret, and cmpsb; ret
        assert!(at_entry(&[0xf3, 0xa6, 0xc3], 0).flags);
        assert!(!at_entry(&[0xa6, 0xc3], 0).flags);
        // shl eax, 3 leaves AF undefined; add eax, edi; ret
        assert!(!at_entry(&[0xc1, 0xe0, 3, 0x01, 0xf8, 0xc3], 0).flags);
    }

    #[test]
    fn what_is_undefined_may_be_what_it_was() {
        // rol r11w, 4 leaves OF as it was on some processors; cmovo r14, rsi; add rax, rdi; ret
        let code = [
            0x66, 0x41, 0xc1, 0xc3, 4, 0x4c, 0x0f, 0x40, 0xf6, 0x48, 0x01, 0xf8, 0xc3,
        ];
        assert!(at_entry(&code, 0).flags);
        // imul eax, edi; ret: undefined, and known to be new
        assert!(!at_entry(&[0x0f, 0xaf, 0xc7, 0xc3], 0).flags);
    }

    #[test]
    fn a_bit_scan_that_finds_nothing_keeps_its_register() {
        // bsf eax, edi; ret
        assert!(at_entry(&[0x0f, 0xbc, 0xc7, 0xc3], 0).rax);
    }

    #[test]
    fn dead_registers_are_found() {
        // lea rax, [rdi+1]; xor rax, 5; ret
        let live = at_entry(&[0x48, 0x8d, 0x47, 0x01, 0x48, 0x83, 0xf0, 0x05, 0xc3], 0);
        assert_eq!(
            live,
            Live {
                spare: None,
                rax: false,
                rcx: true,
                rdx: true,
                flags: false
            }
        );
    }

    #[test]
    fn a_spare_register_is_one_that_is_overwritten_whole_and_first() {
        // mov esi, 1 after lea rax, [rsi]; mov r9, rdi; ret
        let code = [0x48, 0x8d, 0x06, 0xbe, 1, 0, 0, 0, 0x49, 0x89, 0xf9, 0xc3];
        assert_eq!(at_entry(&code, 0).spare, Some(Reg::R9));
        // mov r8b, 1; cmove r10, rdi; ret; mov r11d, 1
        let code = [
            0x41, 0xb0, 1, 0x4c, 0x0f, 0x44, 0xd7, 0xc3, 0x41, 0xbb, 1, 0, 0, 0,
        ];
        assert_eq!(at_entry(&code, 0).spare, None);
    }

    #[test]
    fn varargs_al_is_live() {
        // test al, al; mov eax, 1
        let live = at_entry(&[0x84, 0xc0, 0xb8, 1, 0, 0, 0, 0xc3], 0);
        assert!(live.rax && !live.flags);
    }

    #[test]
    fn read_and_write_in_one_instruction_is_live() {
        // inc eax; ret — CF is not written by inc
        let live = at_entry(&[0xff, 0xc0, 0xc3], 0);
        assert!(live.rax && live.flags);
    }

    #[test]
    fn partial_and_conditional_writes_keep_the_value() {
        // mov al, 1; ret
        assert!(at_entry(&[0xb0, 1, 0xc3], 0).rax);
        // cmove rax, rdi
        assert!(at_entry(&[0x48, 0x0f, 0x44, 0xc7, 0xc3], 0).rax);
    }

    #[test]
    fn carry_in_is_live() {
        // adc rax, rdi; ret
        assert!(at_entry(&[0x48, 0x11, 0xf8, 0xc3], 0).flags);
    }
}
