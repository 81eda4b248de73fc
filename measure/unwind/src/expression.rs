//! DWARF expressions in unwind rules: which can be taken over, and those that read the stack pointer where the copy has pushed.
use crate::bytes;
use gimli::{Encoding, EndianSlice, Expression, Format, LittleEndian, Operation};

/// DWARF's numbers of registers (x86-64 psABI, figure 3.36).
pub const RSP: u16 = 7;
pub const RIP: u16 = 16;

const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: Format::Dwarf32,
    version: 4,
};

/// `DW_OP_breg7`: rsp and an offset, the only way to read it.
const BREG_RSP: u8 = 0x77;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Whether the stack pointer is read, or what about the expression stands against a copy.
pub fn reads_stack_pointer(code: &[u8]) -> Result<bool, &'static str> {
    let (mut reads, mut branches) = (false, false);
    for (operation, _) in operations(code) {
        match operation.ok_or("an expression that cannot be read")? {
            Operation::RegisterOffset {
                register,
                base_type,
                ..
            } => {
                if register.0 == RIP || base_type.0 != 0 {
                    return Err("an expression with the instruction's address");
                }
                reads |= register.0 == RSP;
            }
            Operation::Bra { .. } | Operation::Skip { .. } => branches = true,
            Operation::Deref {
                base_type, space, ..
            } if base_type.0 == 0 && !space => {}
            Operation::Drop
            | Operation::Pick { .. }
            | Operation::Swap
            | Operation::Rot
            | Operation::Abs
            | Operation::And
            | Operation::Div
            | Operation::Minus
            | Operation::Mod
            | Operation::Mul
            | Operation::Neg
            | Operation::Not
            | Operation::Or
            | Operation::Plus
            | Operation::PlusConstant { .. }
            | Operation::Shl
            | Operation::Shr
            | Operation::Shra
            | Operation::Xor
            | Operation::Eq
            | Operation::Ge
            | Operation::Gt
            | Operation::Le
            | Operation::Lt
            | Operation::Ne
            | Operation::UnsignedConstant { .. }
            | Operation::SignedConstant { .. }
            | Operation::Nop => {}
            _ => return Err("an expression with an address of the file, or unknown"),
        }
    }
    // Branches count bytes, and an offset that changes may need more of them.
    match reads && branches {
        true => Err("an expression with the stack pointer and branches"),
        false => Ok(reads),
    }
}

/// Registers that an expression reads.
pub fn registers(code: &[u8]) -> impl Iterator<Item = u16> {
    operations(code).filter_map(|(operation, _)| match operation {
        Some(Operation::RegisterOffset { register, .. }) => Some(register.0),
        _ => None,
    })
}

/// Registers that an instruction for a register's rule reads, by its bytes.
pub fn read_by_rule(instruction: &[u8]) -> impl Iterator<Item = u16> {
    let (first, rest) = instruction.split_first().unwrap_or((&0, &[]));
    let mut cursor = bytes::Cursor::new(rest, 0);
    let mut number = || cursor.uleb128();
    let mut another = None;
    let mut code: &[u8] = &[];
    match gimli::DwCfa(*first) {
        // The register, and the one that has its value.
        gimli::DW_CFA_register => another = number().and_then(|_| number()),
        // The register, a length, an expression.
        gimli::DW_CFA_expression | gimli::DW_CFA_val_expression => {
            let lengths = number().and_then(|_| number());
            code = &rest[rest.len() - lengths.unwrap_or(0).min(rest.len() as u64) as usize..];
        }
        _ => {}
    }
    another
        .map(|register| register as u16)
        .into_iter()
        .chain(registers(code))
}

/// The same value where `more` bytes more are on the stack.
pub fn shifted(code: &[u8], more: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(code.len() + 8);
    for (operation, bytes) in operations(code) {
        match operation {
            Some(Operation::RegisterOffset {
                register, offset, ..
            }) if register.0 == RSP => {
                out.push(BREG_RSP);
                bytes::sleb128(&mut out, offset.wrapping_add(more));
            }
            _ => out.extend_from_slice(bytes),
        }
    }
    out
}

/// Each operation with its bytes; `None` ends what cannot be read.
fn operations(code: &[u8]) -> impl Iterator<Item = (Option<Operation<Reader<'_>>>, &[u8])> {
    let mut operations = Expression(EndianSlice::new(code, LittleEndian)).operations(ENCODING);
    let mut at = 0;
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        match operations.next() {
            Ok(None) => None,
            Ok(operation) => {
                let end = operations.offset_from(&Expression(EndianSlice::new(code, LittleEndian)));
                let bytes = &code[at..end];
                at = end;
                Some((operation, bytes))
            }
            Err(_) => {
                ended = true;
                Some((None, &code[at..]))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `breg7 +8; breg16 +0; lit15; and; lit11; ge; lit3; shl; plus`: what linkers write for the PLT.
    const PLT: [u8; 11] = [
        0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
    ];

    #[test]
    fn the_stack_pointer_moves_and_all_else_stays() {
        // breg7 +56; deref; plus_uconst 8 (OpenSSL), with rbp (breg6) nothing.
        assert_eq!(reads_stack_pointer(&[0x77, 56, 0x06, 0x23, 8]), Ok(true));
        let expected = [0x77, 0xc0, 0x00, 0x06, 0x23, 8];
        assert_eq!(shifted(&[0x77, 56, 0x06, 0x23, 8], 8), expected);
        assert_eq!(reads_stack_pointer(&[0x76, 0x78, 0x06]), Ok(false));
        assert_eq!(shifted(&[0x76, 0x78, 0x06], 8), [0x76, 0x78, 0x06]);
    }

    #[test]
    fn what_depends_on_the_place_is_refused() {
        assert!(reads_stack_pointer(&PLT).is_err());
        assert!(reads_stack_pointer(&[0x03, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(reads_stack_pointer(&[0x77, 8, 0x2f, 0, 0]).is_err());
        assert!(reads_stack_pointer(&[0x77]).is_err());
        assert_eq!(reads_stack_pointer(&[0x76, 8, 0x2f, 0, 0]), Ok(false));
    }
}
