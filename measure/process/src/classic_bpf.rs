//! Classic BPF, as seccomp filters are written in it (`struct sock_filter`, net/core/filter.c).

/// One instruction, as the kernel hands it out (`struct sock_filter`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

const MEMORY_WORDS: usize = 16;

/// Runs a filter; `None` when it is not one that the kernel would have accepted.
pub fn run(filter: &[Instruction], data: &[u8; 64]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; MEMORY_WORDS]);
    let mut pc = 0usize;
    // Jumps only go forward: a filter ends after at most its length.
    while let Some(i) = filter.get(pc) {
        pc += 1;
        let source = if i.code & 8 != 0 { x } else { i.k };
        match (i.code & 7, i.code) {
            (0, 0x20) => {
                let at = i.k as usize;
                a = u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?);
            }
            (0, 0x80) => a = data.len() as u32,
            (0, 0x00) => a = i.k,
            (0, 0x60) => a = *memory.get(i.k as usize)?,
            (1, 0x81) => x = data.len() as u32,
            (1, 0x01) => x = i.k,
            (1, 0x61) => x = *memory.get(i.k as usize)?,
            (2, _) => *memory.get_mut(i.k as usize)? = a,
            (3, _) => *memory.get_mut(i.k as usize)? = x,
            (4, code) => a = arithmetic(code & 0xf0, a, source)?,
            (5, 0x05) => pc = pc.checked_add(i.k as usize)?,
            (5, code) => {
                let taken = match code & 0xf0 {
                    0x10 => a == source,
                    0x20 => a > source,
                    0x30 => a >= source,
                    0x40 => a & source != 0,
                    _ => return None,
                };
                pc += if taken { i.jt } else { i.jf } as usize;
            }
            (6, 0x06) => return Some(i.k),
            (6, 0x16) => return Some(a),
            (7, 0x07) => x = a,
            (7, 0x87) => a = x,
            _ => return None,
        }
    }
    None
}

fn arithmetic(op: u16, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b)?,
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a.checked_shl(b)?,
        0x70 => a.checked_shr(b)?,
        0x80 => a.wrapping_neg(),
        0xa0 => a ^ b,
        _ => return None,
    })
}
