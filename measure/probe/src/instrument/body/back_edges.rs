//! The jumps of loops: there a call that runs already is led into the copy, and out of it again.
use super::unit::{JUMP_BYTES, Op, Unit};

/// The last bytes of a jump: one of opcode, four of displacement.
pub const FIELD_BYTES: u64 = 5;

/// A jump that goes back, or to another piece: no loop is without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackEdge {
    pub jump: u64,
    pub target: u64,
    /// Where its [`FIELD_BYTES`] lie; `None`: its displacement has 8 bits and reaches no copy.
    pub field: Option<u64>,
}

impl Unit {
    /// Not those to the entry, which are calls, and none that lies in the bytes that are replaced there.
    pub fn back_edges(&self) -> impl Iterator<Item = BackEdge> {
        let head = self.entry..self.patch_at + JUMP_BYTES;
        self.pieces.iter().flat_map(move |piece| {
            let head = head.clone();
            piece.insns.iter().filter_map(move |insn| {
                let (Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target }) =
                    insn.op
                else {
                    return None;
                };
                let back = match piece.range.contains(&target) {
                    true => target <= insn.svma,
                    false => self.contains(target),
                };
                let long = u64::from(insn.len) >= FIELD_BYTES;
                let field = long.then(|| insn.next() - FIELD_BYTES);
                let edge = BackEdge {
                    jump: insn.svma,
                    target,
                    field: field.filter(|at| !head.contains(at)),
                };
                (back && !head.contains(&target)).then_some(edge)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::body::unit::{Piece, Surroundings};

    fn edges(pieces: &[Piece]) -> Vec<(u64, u64, Option<u64>)> {
        let around = Surroundings {
            entry_stays: false,
            room: 64,
            branch_into: &|_| false,
        };
        let unit = Unit::decode(pieces, &around).unwrap();
        let edges = unit.back_edges();
        edges.map(|e| (e.jump, e.target, e.field)).collect()
    }

    /// A jump of each length back, forwards, to the entry, and between two pieces.
    #[test]
    fn each_loop_has_one() {
        let first = [
            &[0x90; 6][..],                        // 1000
            &[0x0f, 0x84, 0xfa, 0xff, 0xff, 0xff], // 1006: je 1006
            &[0x74, 0xf8],                         // 100c: je 1006
            &[0x0f, 0x85, 0xec, 0xff, 0xff, 0xff], // 100e: jne 1000, the entry
            &[0x75, 0x00],                         // 1014: jne 1016
            &[0xe9, 0xe5, 0x0f, 0x00, 0x00],       // 1016: jmp 2000
        ]
        .concat();
        let second = [&[0xe9, 0x01, 0xf0, 0xff, 0xff][..], &[0xeb, 0xf9]].concat();
        let pieces = [(0x1000, &first[..]), (0x2000, &second[..])];
        let pieces = pieces.map(|(svma, bytes)| Piece { svma, bytes });
        let expected = [
            (0x1006, 0x1006, Some(0x1007)),
            (0x100c, 0x1006, None),
            (0x1016, 0x2000, Some(0x1016)),
            (0x2000, 0x1006, Some(0x2000)),
            (0x2005, 0x2000, None),
        ];
        assert_eq!(edges(&pieces), expected);
    }
}
