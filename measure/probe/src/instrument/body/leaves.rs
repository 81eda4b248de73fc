//! Code that leaves its stack for good, as longjmp does: it takes a stack pointer from elsewhere, has not kept its own,
//! and jumps to where the new one belongs. It has no name in stripped files, and what it jumps to is nobody's exit.
//!
//! Switches of coroutines keep the stack pointer that they leave, and come back to it.
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};

#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// Since the last instruction that may go elsewhere.
    has_taken: bool,
    has_kept: bool,
    has_left: bool,
}

impl Leaving {
    pub(super) fn see(&mut self, ins: &Instruction) {
        let (to, from) = (ins.op0_register(), ins.op1_register());
        match ins.mnemonic() {
            // A frame pointer is the function's own, either way.
            Mnemonic::Mov if to == Register::RSP => self.has_taken |= from != Register::RBP,
            Mnemonic::Mov if from == Register::RSP => self.has_kept |= to != Register::RBP,
            Mnemonic::Push => self.has_kept |= to == Register::RSP,
            Mnemonic::Xchg => self.has_kept |= to == Register::RSP || from == Register::RSP,
            _ => {}
        }
        let by_register = ins.code() == Code::Jmp_rm64 && !ins.is_ip_rel_memory_operand();
        self.has_left |= by_register && self.has_taken;
        if ins.flow_control() != FlowControl::Next {
            self.has_taken = false;
        }
    }

    pub(super) fn is_for_good(&self) -> bool {
        self.has_left && !self.has_kept
    }
}
