//! A function as it will be moved: its hot part and cold fragments, decoded and checked.
use super::leaves::Leaving;
use super::refusal::Refusal;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use std::ops::Range;

/// Length of the jump written over the entry (`e9 rel32`).
pub const JUMP_BYTES: u64 = 5;
const LARGEST_UNIT: u64 = 16 << 20;

/// One contiguous range of the function; the first one holds the entry.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    pub svma: u64,
    pub bytes: &'a [u8],
}

/// What the decoder needs to know about the surroundings.
pub struct Surroundings<'a> {
    /// Code and padding bytes from the entry up to whatever comes next.
    pub room: u64,
    /// Whether a direct branch anywhere in the module lands in a range.
    pub branch_into: &'a dyn Fn(Range<u64>) -> bool,
    /// No jump is written there.
    pub entry_stays: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Copied as it is.
    Plain,
    /// Copied with its 32-bit displacement (at this offset) rewritten.
    RipRelative {
        disp_at: u8,
        target: u64,
    },
    Call {
        target: u64,
    },
    Jump {
        target: u64,
    },
    /// `condition` is the low nibble of the opcode.
    JumpIf {
        target: u64,
        condition: u8,
    },
    /// loop, loope, loopne, jrcxz, jecxz: 8-bit displacement only.
    ShortOnly {
        target: u64,
    },
    /// `jmp r/m64` whose target has to be translated at run time.
    IndirectJump,
    /// `jmp [rip+x]`: a tail call through the GOT or a function pointer.
    IndirectTail {
        disp_at: u8,
        target: u64,
    },
    Ret,
}

#[derive(Debug, Clone, Copy)]
pub struct Insn {
    pub svma: u64,
    pub len: u8,
    pub op: Op,
}

impl Insn {
    pub fn next(&self) -> u64 {
        self.svma + self.len as u64
    }

    /// To the next instruction, at least sometimes.
    pub fn goes_on(&self) -> bool {
        !matches!(
            self.op,
            Op::Jump { .. } | Op::IndirectTail { .. } | Op::IndirectJump | Op::Ret
        )
    }
}

#[derive(Debug)]
pub struct DecodedPiece {
    pub range: Range<u64>,
    pub insns: Vec<Insn>,
    /// Execution can run past the end (a call that never returns, an FDE that ends early).
    pub falls_through: bool,
}

#[derive(Debug)]
pub struct Unit {
    /// Where callers enter.
    pub entry: u64,
    /// Where the jump is written: the entry, or behind its `endbr64`.
    pub patch_at: u64,
    pub pieces: Vec<DecodedPiece>,
    pub has_indirect_jump: bool,
    /// It goes to another stack and does not come back.
    pub leaves_for_good: bool,
    /// Something may jump to the entry with data in the red zone: the entry's probe steps over it.
    pub red_zone_at_entry: bool,
}

impl Unit {
    /// Decodes and checks; `Err` is why the function cannot be relocated.
    pub fn decode(pieces: &[Piece], around: &Surroundings) -> Result<Unit, Refusal> {
        let entry = pieces[0].svma;
        if pieces[0].bytes.is_empty() {
            return Err(Refusal::NoSize);
        }
        if pieces.iter().map(|p| p.bytes.len() as u64).sum::<u64>() > LARGEST_UNIT {
            return Err(Refusal::TooLarge);
        }
        let patch_at = entry
            + if pieces[0].bytes.starts_with(ENDBR64) {
                4
            } else {
                0
            };
        let window = match around.entry_stays {
            true => patch_at..patch_at,
            false => patch_at + 1..patch_at + JUMP_BYTES,
        };
        if around.room < window.end - entry {
            return Err(Refusal::NoRoom {
                bytes: around.room.saturating_sub(patch_at - entry),
            });
        }
        if (around.branch_into)(window.clone()) {
            return Err(Refusal::BranchIntoPatch { svma: window.start });
        }
        let mut unit = Unit {
            entry,
            patch_at,
            pieces: Vec::with_capacity(pieces.len()),
            has_indirect_jump: false,
            leaves_for_good: false,
            red_zone_at_entry: false,
        };
        let mut leaving = Leaving::default();
        for piece in pieces {
            let decoded = unit.decode_piece(piece, &window, &mut leaving)?;
            unit.pieces.push(decoded);
        }
        unit.leaves_for_good = leaving.is_for_good();
        unit.check_targets(&window)?;
        Ok(unit)
    }

    /// Decodes again what was accepted before: units of all functions of a large program together
    /// take more memory than anything else.
    pub fn again(
        pieces: &[Piece],
        red_zone_at_entry: bool,
        entry_stays: bool,
    ) -> Result<Unit, Refusal> {
        let around = Surroundings {
            room: u64::MAX,
            branch_into: &|_| false,
            entry_stays,
        };
        let unit = Unit::decode(pieces, &around)?;
        Ok(Unit {
            red_zone_at_entry,
            ..unit
        })
    }

    /// The instructions under the jump at the entry, from which a call can go on in the original body.
    /// `None` where it must not: where the function jumps back to its own entry, which would be another
    /// call there; where a computed jump may lead into the bytes that were replaced; and where the
    /// instructions end before those bytes do, so that what runs past them is none of the original.
    pub fn head(&self) -> Option<&[Insn]> {
        self.head_unless_computed()
            .filter(|_| !self.has_indirect_jump)
    }

    /// The same of a function whose computed jumps, if there are any, are known to leave it.
    pub fn head_unless_computed(&self) -> Option<&[Insn]> {
        let back = |insn: &Insn| match insn.op {
            Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } => {
                target == self.entry || target == self.patch_at
            }
            _ => false,
        };
        if self.insns().any(back) {
            return None;
        }
        let insns = &self.pieces[0].insns;
        let first = insns.partition_point(|i| i.svma < self.patch_at);
        let behind = self.patch_at + JUMP_BYTES;
        let end = insns.partition_point(|i| i.svma < behind);
        let head = &insns[first..end];
        let last = head.last()?;
        (last.next() >= behind || !last.goes_on()).then_some(head)
    }

    fn decode_piece(
        &mut self,
        piece: &Piece,
        window: &Range<u64>,
        leaving: &mut Leaving,
    ) -> Result<DecodedPiece, Refusal> {
        let mut decoder = Decoder::with_ip(64, piece.bytes, piece.svma, DecoderOptions::NONE);
        let mut insns = Vec::with_capacity(piece.bytes.len() / 4 + 1);
        let mut ins = Instruction::default();
        let mut falls_through = true;
        while decoder.can_decode() {
            decoder.decode_out(&mut ins);
            leaving.see(&ins);
            let op = self.classify(&ins, &decoder)?;
            let flow = ins.flow_control();
            let next = ins.next_ip();
            if matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
                && window.contains(&next)
            {
                return Err(Refusal::CallInPatch);
            }
            falls_through = !matches!(
                flow,
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
            insns.push(Insn {
                svma: ins.ip(),
                len: ins.len() as u8,
                op,
            });
        }
        let range = piece.svma..piece.svma + piece.bytes.len() as u64;
        Ok(DecodedPiece {
            range,
            insns,
            falls_through,
        })
    }

    fn classify(&mut self, ins: &Instruction, decoder: &Decoder) -> Result<Op, Refusal> {
        if ins.code() == Code::INVALID {
            return Err(Refusal::Undecodable { svma: ins.ip() });
        }
        if ins.segment_prefix() == Register::GS || touches_gs(ins) {
            return Err(Refusal::UsesGs);
        }
        let unsupported = || Refusal::UnsupportedInstruction {
            mnemonic: format!("{:?}", ins.mnemonic()).to_lowercase(),
        };
        let rip_relative = ins.is_ip_rel_memory_operand();
        if rip_relative && ins.memory_base() != Register::RIP {
            return Err(unsupported());
        }
        let disp = || {
            (
                decoder.get_constant_offsets(ins).displacement_offset() as u8,
                ins.ip_rel_memory_address(),
            )
        };
        Ok(match ins.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception if rip_relative => {
                let (disp_at, target) = disp();
                Op::RipRelative { disp_at, target }
            }
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => Op::Plain,
            FlowControl::Call if is_system_call(ins.code()) => Op::Plain,
            FlowControl::Call if ins.code() == Code::Call_rel32_64 => Op::Call {
                target: ins.near_branch_target(),
            },
            FlowControl::IndirectCall if ins.code() == Code::Call_rm64 => {
                if rip_relative {
                    let (disp_at, target) = disp();
                    Op::RipRelative { disp_at, target }
                } else {
                    Op::Plain
                }
            }
            FlowControl::UnconditionalBranch
                if matches!(ins.code(), Code::Jmp_rel8_64 | Code::Jmp_rel32_64) =>
            {
                Op::Jump {
                    target: ins.near_branch_target(),
                }
            }
            FlowControl::ConditionalBranch if ins.is_jcc_short_or_near() => Op::JumpIf {
                target: ins.near_branch_target(),
                condition: condition_nibble(ins),
            },
            FlowControl::ConditionalBranch
                if ins.is_loop() || ins.is_loopcc() || ins.is_jcx_short() =>
            {
                Op::ShortOnly {
                    target: ins.near_branch_target(),
                }
            }
            FlowControl::IndirectBranch if ins.code() == Code::Jmp_rm64 => {
                if rip_relative {
                    let (disp_at, target) = disp();
                    Op::IndirectTail { disp_at, target }
                } else {
                    self.has_indirect_jump = true;
                    Op::IndirectJump
                }
            }
            FlowControl::Return if matches!(ins.code(), Code::Retnq | Code::Retnq_imm16) => Op::Ret,
            _ => return Err(unsupported()),
        })
    }

    fn check_targets(&self, window: &Range<u64>) -> Result<(), Refusal> {
        for insn in self.insns() {
            let target = match insn.op {
                Op::Call { target } => {
                    if target != self.entry && self.contains(target) {
                        return Err(Refusal::CallsOwnBody { svma: target });
                    }
                    continue;
                }
                Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } => {
                    target
                }
                _ => continue,
            };
            if window.contains(&target) {
                return Err(Refusal::BranchIntoPatch { svma: target });
            }
            if self.contains(target) && self.position(target).is_none() {
                return Err(Refusal::BranchIntoInstruction { svma: target });
            }
        }
        Ok(())
    }

    pub fn insns(&self) -> impl Iterator<Item = &Insn> {
        self.pieces.iter().flat_map(|p| &p.insns)
    }

    pub fn contains(&self, svma: u64) -> bool {
        self.pieces.iter().any(|p| p.range.contains(&svma))
    }

    /// Piece and instruction number of the instruction that starts at `svma`.
    pub fn position(&self, svma: u64) -> Option<(usize, usize)> {
        let piece = self.pieces.iter().position(|p| p.range.contains(&svma))?;
        let insn = self.pieces[piece]
            .insns
            .binary_search_by_key(&svma, |i| i.svma)
            .ok()?;
        Some((piece, insn))
    }
}

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

fn is_system_call(code: Code) -> bool {
    matches!(code, Code::Syscall | Code::Sysenter)
}

fn touches_gs(ins: &Instruction) -> bool {
    matches!(
        ins.mnemonic(),
        Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Swapgs | Mnemonic::Lgs
    ) || (ins.mnemonic() == Mnemonic::Mov && ins.op0_register() == Register::GS)
}

fn condition_nibble(ins: &Instruction) -> u8 {
    use iced_x86::ConditionCode as C;
    match ins.condition_code() {
        C::o => 0,
        C::no => 1,
        C::b => 2,
        C::ae => 3,
        C::e => 4,
        C::ne => 5,
        C::be => 6,
        C::a => 7,
        C::s => 8,
        C::ns => 9,
        C::p => 10,
        C::np => 11,
        C::l => 12,
        C::ge => 13,
        C::le => 14,
        C::g => 15,
        C::None => unreachable!("a jcc has a condition"),
    }
}
