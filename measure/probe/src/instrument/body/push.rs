//! Turns `jmp r/m64` or `call r/m64` into `push r/m64` with the same operand, for a place where rsp is 128 lower.
use super::refusal::Refusal;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction, MemoryOperand, OpKind, Register,
};

/// Bytes of the push. `ff /2`, `ff /4` and `ff /6` differ in one field, so the operand is kept byte for
/// byte unless it is addressed through rsp. A displacement from rip is still the branch's.
pub(in crate::instrument) fn from_branch(bytes: &[u8], svma: u64) -> Result<Vec<u8>, Refusal> {
    let jump = Decoder::with_ip(64, bytes, svma, DecoderOptions::NONE).decode();
    let refused = || Refusal::UnsupportedInstruction {
        mnemonic: format!("{:?}", jump.mnemonic()).to_lowercase(),
    };
    if jump.op0_kind() == OpKind::Register && jump.op0_register() == Register::RSP {
        return Err(refused());
    }
    let through_rsp = jump.op0_kind() == OpKind::Memory && jump.memory_base() == Register::RSP;
    if through_rsp {
        return encode_below(&jump).ok_or_else(refused);
    }
    let opcode = bytes.iter().position(|b| *b == 0xff).ok_or_else(refused)?;
    let mut push: Vec<u8> = bytes[..opcode]
        .iter()
        .copied()
        .filter(|p| !matches!(p, 0x3e | 0x66 | 0xf2))
        .collect();
    push.push(0xff);
    push.push(bytes[opcode + 1] & 0xc7 | 6 << 3);
    push.extend_from_slice(&bytes[opcode + 2..]);
    Ok(push)
}

fn encode_below(jump: &Instruction) -> Option<Vec<u8>> {
    let memory = MemoryOperand::new(
        Register::RSP,
        jump.memory_index(),
        jump.memory_index_scale(),
        (jump.memory_displacement64() as i64).checked_add(128)?,
        8,
        false,
        jump.segment_prefix(),
    );
    let push = Instruction::with1(Code::Push_rm64, memory).ok()?;
    let mut encoder = Encoder::new(64);
    encoder.encode(&push, 0).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Formatter, GasFormatter};

    fn text(bytes: &[u8]) -> String {
        let ins = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        let mut out = String::new();
        GasFormatter::new().format(&ins, &mut out);
        out
    }

    #[test]
    fn operands_are_kept() {
        for (jump, push) in [
            (&[0xff, 0xe0][..], "push %rax"),
            (&[0x41, 0xff, 0xe3], "push %r11"),
            (&[0x3e, 0xff, 0xe2], "push %rdx"),
            (&[0xff, 0x24, 0xc5, 0x10, 0, 0, 0][..], "push 0x10(,%rax,8)"),
            (&[0x41, 0xff, 0x64, 0xc5, 0x08], "push 8(%r13,%rax,8)"),
            (&[0xff, 0x64, 0x24, 0x08], "push 0x88(%rsp)"),
            (&[0xff, 0x24, 0xc4], "push 0x80(%rsp,%rax,8)"),
            (&[0xff, 0xd0], "push %rax"),
            (&[0x66, 0x41, 0xff, 0xd3], "push %r11"),
            (&[0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0], "push %fs:0x10"),
            (&[0xff, 0x54, 0x24, 0x08], "push 0x88(%rsp)"),
        ] {
            let bytes = from_branch(jump, 0).unwrap();
            assert_eq!(
                text(&bytes).replace("pushq", "push").replace(" *", " "),
                push
            );
        }
    }

    #[test]
    fn rsp_itself_is_refused() {
        assert!(from_branch(&[0xff, 0xe4], 0).is_err());
    }
}
