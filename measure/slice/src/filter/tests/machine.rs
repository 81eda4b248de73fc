//! Extended BPF as RFC 9669 defines it, of the instructions that a translated filter uses. It panics
//! on what the verifier would refuse: other instructions, accesses outside the value and the scratch
//! memory, jumps out of the block.
use crate::filter::REACH;

const VALUE: usize = REACH as usize + 64;
/// Addresses of the map value and of the stack frame's end; far apart, and from zero.
const VALUE_AT: u64 = 0x10_0000;
const FRAME_AT: u64 = 0x20_0000;

pub(super) struct Outcome {
    pub matched: bool,
    pub cut_off: bool,
}

pub(super) fn run(block: &[u64], packet: &[u8], wire_len: u32) -> Outcome {
    let present = packet.len().min(REACH as usize);
    let mut value = [0xa5; VALUE];
    value[..present].copy_from_slice(&packet[..present]);
    let mut machine = Machine {
        r: [0xdead_beef_dead_beef; 11],
        value,
        stack: [0x5a; 512],
    };
    machine.r[1] = VALUE_AT;
    machine.r[2] = present as u64;
    machine.r[3] = wire_len.into();
    machine.r[10] = FRAME_AT;
    let kept = machine.r;
    machine.run(block);
    assert_eq!(machine.r[6..], kept[6..], "r6 to r10 are the caller's");
    assert!(machine.r[1] <= 1);
    Outcome {
        matched: machine.r[0] != 0,
        cut_off: machine.r[1] == 1,
    }
}

struct Machine {
    r: [u64; 11],
    value: [u8; VALUE],
    stack: [u8; 512],
}

impl Machine {
    fn run(&mut self, block: &[u64]) {
        let mut at = 0;
        while at != block.len() {
            let insn = block[at];
            at += 1;
            let (code, dst, src) = (
                insn as u8,
                (insn >> 8 & 15) as usize,
                (insn >> 12 & 15) as usize,
            );
            let (offset, immediate) = ((insn >> 16) as i16, (insn >> 32) as i32);
            let by_register = code & 8 != 0;
            match code & 7 {
                1 => self.r[dst] = self.load(self.r[src], offset, code),
                3 => self.store(self.r[dst], offset, self.r[src]),
                4 if code == 0xdc => {
                    self.r[dst] = match immediate {
                        16 => u64::from((self.r[dst] as u16).swap_bytes()),
                        32 => u64::from((self.r[dst] as u32).swap_bytes()),
                        bits => panic!("{bits} bits"),
                    }
                }
                4 => {
                    let operand = if by_register {
                        self.r[src] as u32
                    } else {
                        immediate as u32
                    };
                    self.r[dst] = alu32(code >> 4, self.r[dst] as u32, operand, by_register).into();
                }
                7 => {
                    let operand = if by_register {
                        self.r[src]
                    } else {
                        immediate as i64 as u64
                    };
                    self.r[dst] = match code >> 4 {
                        0x0 => self.r[dst].wrapping_add(operand),
                        0xb => operand,
                        op => panic!("64-bit operation {op:#x}"),
                    }
                }
                class @ (5 | 6) => {
                    let operand = if by_register {
                        self.r[src]
                    } else {
                        immediate as i64 as u64
                    };
                    let (a, b) = match class {
                        5 => (self.r[dst], operand),
                        _ => (self.r[dst] as u32 as u64, operand as u32 as u64),
                    };
                    if taken(code >> 4, a, b) {
                        assert!(offset >= 0, "a loop");
                        at += offset as usize;
                    }
                }
                class => panic!("class {class}"),
            }
        }
    }

    fn memory(&mut self, base: u64, offset: i16, bytes: usize) -> &mut [u8] {
        let at = base.wrapping_add_signed(offset.into());
        let (memory, from) = match at {
            FRAME_AT.. => panic!("above the frame"),
            _ if at >= FRAME_AT - 512 => (&mut self.stack[..], FRAME_AT - 512),
            _ => (&mut self.value[..], VALUE_AT),
        };
        let at = at.checked_sub(from).expect("below the value") as usize;
        &mut memory[at..at + bytes]
    }

    fn load(&mut self, base: u64, offset: i16, code: u8) -> u64 {
        match code {
            0x61 => u32::from_le_bytes(self.memory(base, offset, 4).try_into().unwrap()).into(),
            0x69 => u16::from_le_bytes(self.memory(base, offset, 2).try_into().unwrap()).into(),
            0x71 => self.memory(base, offset, 1)[0].into(),
            _ => panic!("load {code:#x}"),
        }
    }

    fn store(&mut self, base: u64, offset: i16, word: u64) {
        let memory = self.memory(base, offset, 4);
        memory.copy_from_slice(&(word as u32).to_le_bytes());
    }
}

fn alu32(op: u8, a: u32, b: u32, by_register: bool) -> u32 {
    match op {
        0x0 => a.wrapping_add(b),
        0x1 => a.wrapping_sub(b),
        0x2 => a.wrapping_mul(b),
        0x3 => a.checked_div(b).unwrap_or(0),
        0x4 => a | b,
        0x5 => a & b,
        0x6 | 0x7 => {
            assert!(by_register || b < 32, "the verifier refuses a shift by {b}");
            if op == 6 {
                a << (b & 31)
            } else {
                a >> (b & 31)
            }
        }
        0x8 => a.wrapping_neg(),
        0x9 => a.checked_rem(b).unwrap_or(a),
        0xa => a ^ b,
        0xb => b,
        _ => panic!("operation {op:#x}"),
    }
}

fn taken(op: u8, a: u64, b: u64) -> bool {
    match op {
        0x0 => true,
        0x1 => a == b,
        0x2 => a > b,
        0x3 => a >= b,
        0x4 => a & b != 0,
        0x5 => a != b,
        0xa => a < b,
        0xb => a <= b,
        _ => panic!("jump {op:#x}"),
    }
}
