//! Which of the probe's scratch registers are dead at the entry: a register that the function
//! overwrites before it reads it holds nothing anybody can miss (its callers already know that
//! this function clobbers it, `-fipa-ra` included).
use crate::codegen::probe::Live;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
    RflagsBits,
};

const STATUS_FLAGS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Straight-line scan from the entry; whatever is undecided at the first branch is live.
pub fn at_entry(bytes: &[u8], svma: u64) -> Live {
    let mut decoder = Decoder::with_ip(64, bytes, svma, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut ins = Instruction::default();
    // [rax, rcx, rdx]: Some(true) = read first, Some(false) = overwritten first
    let mut regs: [Option<bool>; 3] = [None; 3];
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
                let Some(slot) = [Register::RAX, Register::RCX, Register::RDX]
                    .iter()
                    .position(|r| *r == used.register().full_register())
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
        flags_unread &= !ins.rflags_modified();
        if flags.is_none() && flags_unread == 0 {
            flags = Some(false);
        }
    }
    let live = |state: Option<bool>| state != Some(false);
    let flags = live(flags);
    // Saving the flags takes rax.
    Live {
        rax: live(regs[0]),
        rcx: live(regs[1]),
        rdx: live(regs[2]),
        flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_registers_are_found() {
        // lea rax, [rdi+1]; xor rax, 5; ret
        let live = at_entry(&[0x48, 0x8d, 0x47, 0x01, 0x48, 0x83, 0xf0, 0x05, 0xc3], 0);
        assert_eq!(
            live,
            Live {
                rax: false,
                rcx: true,
                rdx: true,
                flags: false
            }
        );
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
