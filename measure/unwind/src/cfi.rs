//! Instructions of an unwind entry, decoded: each with the address from which on it holds.
use crate::expression::{self, RSP};
use crate::{Refused, bytes};
use gimli::{
    CallFrameInstruction, CallFrameInstructionIter, EhFrame, EndianSlice, LittleEndian, Register,
    UnwindExpression,
};
use std::ops::Range;

pub type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// Rule for the canonical frame address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfa<'d> {
    Register { register: u16, offset: i64 },
    Expression { code: &'d [u8], reads_rsp: bool },
}

impl Cfa<'_> {
    /// What is pushed changes the rule.
    pub fn follows_rsp(&self) -> bool {
        match self {
            Cfa::Register { register, .. } => *register == RSP,
            Cfa::Expression { reads_rsp, .. } => *reads_rsp,
        }
    }
}

/// What an instruction does. Those for the CFA are resolved, as the copy may have to change them.
#[derive(Debug, Clone)]
pub enum Op<'d> {
    Cfa(Cfa<'d>),
    /// Bytes of [`Program`] that are taken over.
    Verbatim(Range<usize>),
    Remember,
    /// With the CFA that holds again.
    Restore(Option<Cfa<'d>>),
}

/// Instructions with their addresses in the file, ascending.
#[derive(Debug, Default, Clone)]
pub struct Program<'d> {
    pub steps: Vec<(u64, Op<'d>)>,
    pub bytes: Vec<u8>,
}

/// Decodes a CIE's instructions, and after them those of one of its entries.
pub struct Decoder<'s, 'd> {
    pub section: &'s EhFrame<Reader<'d>>,
    pub code_align: u64,
    pub data_align: i64,
    pub cfa: Option<Cfa<'d>>,
    remembered: Vec<Option<Cfa<'d>>>,
}

impl<'s, 'd> Decoder<'s, 'd> {
    pub fn new(section: &'s EhFrame<Reader<'d>>, code_align: u64, data_align: i64) -> Self {
        Decoder {
            section,
            code_align,
            data_align,
            cfa: None,
            remembered: Vec::new(),
        }
    }

    /// `at`: where the first instructions hold.
    pub fn decode(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, Reader<'d>>,
        mut at: u64,
    ) -> Result<Program<'d>, Refused> {
        let mut program = Program::default();
        loop {
            let refused = |why: &dyn ToString| Refused::EhFrame {
                at,
                why: why.to_string(),
            };
            let Some(instruction) = instructions.next().map_err(|e| refused(&e))? else {
                return Ok(program);
            };
            let advanced = match &instruction {
                CallFrameInstruction::AdvanceLoc { delta } => u64::from(*delta)
                    .checked_mul(self.code_align)
                    .and_then(|delta| at.checked_add(delta)),
                CallFrameInstruction::SetLoc { address } => (*address >= at).then_some(*address),
                _ => Some(at),
            };
            let moved = advanced.ok_or_else(|| refused(&"locations that do not ascend"))?;
            if moved == at {
                self.step(&mut program, at, instruction)?;
            }
            at = moved;
        }
    }

    fn step(
        &mut self,
        program: &mut Program<'d>,
        at: u64,
        instruction: CallFrameInstruction<usize>,
    ) -> Result<(), Refused> {
        use CallFrameInstruction as I;
        let malformed = |why: &str| Refused::EhFrame {
            at,
            why: why.to_string(),
        };
        let op = match instruction {
            I::AdvanceLoc { .. } | I::SetLoc { .. } | I::Nop => return Ok(()),
            I::RememberState => {
                self.remembered.push(self.cfa);
                Op::Remember
            }
            I::RestoreState => {
                let state = self.remembered.pop();
                self.cfa = state.ok_or_else(|| malformed("restores a state that it has not"))?;
                Op::Restore(self.cfa)
            }
            _ => match self.new_cfa(at, &instruction)? {
                Some(cfa) => {
                    self.cfa = Some(cfa);
                    Op::Cfa(cfa)
                }
                None => {
                    let start = program.bytes.len();
                    self.encode(at, &instruction, &mut program.bytes)?;
                    Op::Verbatim(start..program.bytes.len())
                }
            },
        };
        program.steps.push((at, op));
        Ok(())
    }

    fn new_cfa(
        &self,
        at: u64,
        instruction: &CallFrameInstruction<usize>,
    ) -> Result<Option<Cfa<'d>>, Refused> {
        use CallFrameInstruction as I;
        let malformed = || Refused::EhFrame {
            at,
            why: "a frame address that nothing defines, or out of range".into(),
        };
        let current = || match self.cfa {
            Some(Cfa::Register { register, offset }) => Ok((register, offset)),
            _ => Err(malformed()),
        };
        let factored = |offset: i64| offset.checked_mul(self.data_align);
        let (register, offset) = match *instruction {
            I::DefCfa { register, offset } => (register.0, i64::try_from(offset).ok()),
            I::DefCfaSf {
                register,
                factored_offset,
            } => (register.0, factored(factored_offset)),
            I::DefCfaRegister { register } => (register.0, Some(current()?.1)),
            I::DefCfaOffset { offset } => (current()?.0, i64::try_from(offset).ok()),
            I::DefCfaOffsetSf { factored_offset } => (current()?.0, factored(factored_offset)),
            I::DefCfaExpression { expression } => {
                let code = self.code(at, &expression)?;
                let reads_rsp = expression::reads_stack_pointer(code)
                    .map_err(|what| Refused::Rule { svma: at, what })?;
                return Ok(Some(Cfa::Expression { code, reads_rsp }));
            }
            _ => return Ok(None),
        };
        // As far from any end that pushes cannot overflow.
        let offset = offset.filter(|o| o.unsigned_abs() < 1 << 40);
        let offset = offset.ok_or_else(malformed)?;
        Ok(Some(Cfa::Register { register, offset }))
    }

    fn code(&self, at: u64, expression: &UnwindExpression<usize>) -> Result<&'d [u8], Refused> {
        let code = expression.get(self.section);
        code.map(|e| e.0.slice()).map_err(|e| Refused::EhFrame {
            at,
            why: e.to_string(),
        })
    }

    /// Rules for registers, which a copy takes over as they are.
    fn encode(
        &self,
        at: u64,
        instruction: &CallFrameInstruction<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        use CallFrameInstruction as I;
        let rule = |what| Refused::Rule { svma: at, what };
        match *instruction {
            I::Undefined { register } => head(out, gimli::DW_CFA_undefined, register),
            I::SameValue { register } => head(out, gimli::DW_CFA_same_value, register),
            I::Restore { register } => head(out, gimli::DW_CFA_restore_extended, register),
            I::Offset {
                register,
                factored_offset,
            } => {
                match register.0 < 0x40 {
                    true => out.push(gimli::DW_CFA_offset.0 | register.0 as u8),
                    false => head(out, gimli::DW_CFA_offset_extended, register),
                }
                bytes::uleb128(out, factored_offset);
            }
            I::ValOffset {
                register,
                factored_offset,
            } => {
                head(out, gimli::DW_CFA_val_offset, register);
                bytes::uleb128(out, factored_offset);
            }
            I::OffsetExtendedSf {
                register,
                factored_offset,
            } => {
                head(out, gimli::DW_CFA_offset_extended_sf, register);
                bytes::sleb128(out, factored_offset);
            }
            I::ValOffsetSf {
                register,
                factored_offset,
            } => {
                head(out, gimli::DW_CFA_val_offset_sf, register);
                bytes::sleb128(out, factored_offset);
            }
            I::Register {
                dest_register,
                src_register,
            } => {
                if src_register.0 == RSP {
                    return Err(rule("the stack pointer as another register's value"));
                }
                head(out, gimli::DW_CFA_register, dest_register);
                bytes::uleb128(out, src_register.0.into());
            }
            I::Expression {
                register,
                expression,
            } => {
                head(out, gimli::DW_CFA_expression, register);
                self.register_expression(at, &expression, out)?;
            }
            I::ValExpression {
                register,
                expression,
            } => {
                head(out, gimli::DW_CFA_val_expression, register);
                self.register_expression(at, &expression, out)?;
            }
            I::ArgsSize { size } => {
                out.push(gimli::DW_CFA_GNU_args_size.0);
                bytes::uleb128(out, size);
            }
            _ => return Err(rule("an unknown instruction")),
        }
        Ok(())
    }

    fn register_expression(
        &self,
        at: u64,
        expression: &UnwindExpression<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let code = self.code(at, expression)?;
        match expression::reads_stack_pointer(code) {
            Ok(false) => {}
            // It would have to change with each push. Only signal trampolines have it.
            Ok(true) => {
                let what = "the stack pointer in a register's rule";
                return Err(Refused::Rule { svma: at, what });
            }
            Err(what) => return Err(Refused::Rule { svma: at, what }),
        }
        bytes::uleb128(out, code.len() as u64);
        out.extend_from_slice(code);
        Ok(())
    }
}

fn head(out: &mut Vec<u8>, instruction: gimli::DwCfa, register: Register) {
    out.push(instruction.0);
    bytes::uleb128(out, register.0.into());
}
