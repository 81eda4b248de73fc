//! Which protocols the packets have that an expression may choose: hooks that only others reach are left out.
use super::classic::{Alu, Op, Operand, Program, Register, Size, Source, Test};

const TCP: u8 = 6;

/// Byte of the network header that names the protocol.
const PROTOCOL_AT: [(u8, u32); 2] = [(4, 9), (6, 6)];

/// Whether no packet is chosen whose network header names another protocol than TCP. Each other one is tried, with
/// nothing else known of the packet: `false` may be wrong, `true` is not.
pub(super) fn only_tcp(program: &Program) -> bool {
    let others = || (0..=u8::MAX).filter(|protocol| *protocol != TCP);
    let packet = |(version, at)| {
        others().map(move |protocol| Packet {
            version,
            protocol,
            at,
        })
    };
    !PROTOCOL_AT
        .into_iter()
        .flat_map(packet)
        .any(|packet| may_match(program.ops(), &packet))
}

struct Packet {
    version: u8,
    protocol: u8,
    at: u32,
}

/// A value of which some bits are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bits {
    known: u32,
    value: u32,
}

const UNKNOWN: Bits = Bits { known: 0, value: 0 };

impl Bits {
    fn of(value: u32) -> Bits {
        Bits { known: !0, value }
    }

    /// What holds of both.
    fn join(self, other: Bits) -> Bits {
        let known = self.known & other.known & !(self.value ^ other.value);
        Bits {
            known,
            value: self.value & known,
        }
    }

    fn and(self, mask: u32) -> Bits {
        Bits {
            known: self.known | !mask,
            value: self.value & mask,
        }
    }

    fn test(self, test: Test, with: u32) -> Option<bool> {
        let exact = (self.known == !0).then_some(self.value);
        match test {
            Test::Equal if (self.value ^ with) & self.known != 0 => Some(false),
            Test::Equal => exact.map(|_| true),
            Test::AnyBit if self.value & with != 0 => Some(true),
            Test::AnyBit => (with & !self.known == 0).then_some(false),
            Test::Greater => exact.map(|value| value > with),
            Test::GreaterEqual => exact.map(|value| value >= with),
        }
    }
}

impl Packet {
    fn byte(&self, at: u32) -> Bits {
        match at {
            0 => Bits {
                known: 0xf0,
                value: u32::from(self.version) << 4,
            },
            _ if at == self.at => Bits {
                known: 0xff,
                value: self.protocol.into(),
            },
            _ => UNKNOWN,
        }
    }

    fn load(&self, source: Source) -> Bits {
        match source {
            Source::Constant(value) => Bits::of(value),
            Source::Absolute(at, size) => self.bytes(at, size),
            Source::HeaderLength(_) | Source::Length | Source::Slot(_) | Source::Indirect(..) => {
                UNKNOWN
            }
        }
    }

    fn bytes(&self, at: u32, size: Size) -> Bits {
        // What is loaded of fewer than four bytes is 0 above them.
        let mut bits = Bits::of(0);
        for byte in (at..).take(size as usize).map(|at| self.byte(at)) {
            bits = Bits {
                known: bits.known << 8 | byte.known,
                value: bits.value << 8 | byte.value,
            };
        }
        bits
    }
}

/// Jumps go forwards only, so that one pass does. Of X and of scratch memory nothing is known.
fn may_match(ops: &[Op], packet: &Packet) -> bool {
    let mut a: Vec<Option<Bits>> = vec![None; ops.len()];
    a[0] = Some(Bits::of(0));
    for (at, op) in ops.iter().enumerate() {
        let Some(before) = a[at] else { continue };
        let mut lead = |to: usize, bits: Bits| {
            a[to] = Some(a[to].map_or(bits, |other| other.join(bits)));
        };
        match *op {
            Op::Return(0) => {}
            Op::Return(_) | Op::ReturnA => return true,
            Op::Jump(to) => lead(to, before),
            Op::Load(Register::A, source) => lead(at + 1, packet.load(source)),
            Op::Alu(Alu::And, Operand::Constant(mask)) => lead(at + 1, before.and(mask)),
            Op::Alu(..) | Op::Negate | Op::XToA => lead(at + 1, UNKNOWN),
            Op::Load(Register::X, _) | Op::Store(..) | Op::AToX => lead(at + 1, before),
            Op::Branch {
                test,
                operand,
                then,
                otherwise,
            } => {
                let known = match operand {
                    Operand::Constant(with) => before.test(test, with),
                    Operand::X => None,
                };
                if known != Some(false) {
                    lead(then, before);
                }
                if known != Some(true) {
                    lead(otherwise, before);
                }
            }
        }
    }
    false
}
