//! An unwind entry's instructions, written for the copy: at the copy's places, and right where it has pushed.
use crate::cfi::{Cfa, Op, Program};
use crate::piece::Aside;
use crate::{Piece, Refused, bytes, expression, state};
use std::ops::Range;

/// The rule that is in force as written: the original's, for `more` bytes more on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written<'d> {
    cfa: Cfa<'d>,
    more: i32,
}

pub struct Writer<'d> {
    out: Vec<u8>,
    data_align: i64,
    /// What the original has.
    cfa: Option<Cfa<'d>>,
    more: i32,
    written: Option<Written<'d>>,
    remembered: Vec<Option<Written<'d>>>,
    location: u64,
}

impl<'d> Writer<'d> {
    pub fn new(data_align: i64) -> Writer<'d> {
        Writer {
            out: Vec::new(),
            data_align,
            cfa: None,
            more: 0,
            written: None,
            remembered: Vec::new(),
            location: 0,
        }
    }

    /// A CIE's: they hold at no place.
    pub fn initial(&mut self, program: &Program<'d>) -> Result<Vec<u8>, Refused> {
        for (_, op) in &program.steps {
            self.step(op, program)?;
        }
        self.settle()?;
        Ok(std::mem::take(&mut self.out))
    }

    /// Those of an entry, behind its CIE's: for `range` of the original, which lies in `copy`.
    pub fn entry(
        mut self,
        program: &Program<'d>,
        range: &Range<u64>,
        copy: &Range<u64>,
        piece: &Piece,
    ) -> Result<Vec<u8>, Refused> {
        self.location = copy.start;
        self.more = piece.pushed_at(copy.start);
        let mut pushes = piece
            .pushed
            .iter()
            .filter(|p| copy.start < p.0 && p.0 < copy.end)
            .peekable();
        for (at, op) in program.steps.iter().take_while(|s| s.0 < range.end) {
            // What held before the part holds at its begin, remembered states included.
            let place = match *at <= range.start {
                true => copy.start,
                false => piece.begin(*at)?,
            };
            while let Some((at, more)) = pushes.next_if(|p| p.0 <= place) {
                self.advance(*at)?;
                self.more = *more;
            }
            self.advance(place)?;
            self.step(op, program)?;
        }
        for (at, more) in pushes {
            self.advance(*at)?;
            self.more = *more;
        }
        self.settle()?;
        Ok(self.out)
    }

    /// Those of an entry for code apart, behind its CIE's: `asides` lie together.
    pub fn apart(mut self, program: &Program<'d>, asides: &[&Aside]) -> Result<Vec<u8>, Refused> {
        let (initial, several) = ((self.cfa, self.written), asides.len() > 1);
        self.location = asides.first().map_or(0, |a| a.copy.start);
        for (n, aside) in asides.iter().enumerate() {
            if n > 0 {
                self.advance(aside.copy.start)?;
                self.out.push(gimli::DW_CFA_restore_state.0);
                (self.cfa, self.written) = initial;
            }
            if several && n + 1 < asides.len() {
                self.out.push(gimli::DW_CFA_remember_state.0);
            }
            self.more = aside.pushed_at(aside.copy.start);
            for op in state::in_force(program, aside.svma) {
                self.step(op, program)?;
            }
            state::check(self.cfa, program, aside.svma)?;
            let inside = |p: &&(u64, i32)| aside.copy.start < p.0 && p.0 < aside.copy.end;
            for (at, more) in aside.pushed.iter().filter(inside) {
                self.advance(*at)?;
                self.more = *more;
            }
        }
        self.settle()?;
        Ok(self.out)
    }

    fn step(&mut self, op: &Op<'d>, program: &Program<'d>) -> Result<(), Refused> {
        match op {
            Op::Cfa(cfa) => self.cfa = Some(*cfa),
            Op::Verbatim(range) => self.out.extend_from_slice(&program.bytes[range.clone()]),
            Op::Remember => {
                self.settle()?;
                self.remembered.push(self.written);
                self.out.push(gimli::DW_CFA_remember_state.0);
            }
            Op::Restore(cfa) => {
                // What was pushed then may not be what is now: `settle` compares.
                self.written = self.remembered.pop().flatten();
                self.cfa = *cfa;
                self.out.push(gimli::DW_CFA_restore_state.0);
            }
        }
        Ok(())
    }

    /// What was said so far holds up to `place`.
    fn advance(&mut self, place: u64) -> Result<(), Refused> {
        let delta = place - self.location;
        if delta == 0 {
            return Ok(());
        }
        self.settle()?;
        match delta {
            0..0x40 => self.out.push(gimli::DW_CFA_advance_loc.0 | delta as u8),
            0x40..0x100 => self.out.extend([gimli::DW_CFA_advance_loc1.0, delta as u8]),
            0x100..0x1_0000 => {
                self.out.push(gimli::DW_CFA_advance_loc2.0);
                self.out.extend((delta as u16).to_le_bytes());
            }
            // The piece ends before FARTHEST.
            _ => {
                self.out.push(gimli::DW_CFA_advance_loc4.0);
                self.out.extend((delta as u32).to_le_bytes());
            }
        }
        self.location = place;
        Ok(())
    }

    /// Writes the CFA's rule where what was written is not what holds.
    fn settle(&mut self) -> Result<(), Refused> {
        let wanted = self.cfa.map(|cfa| Written {
            cfa,
            more: if cfa.follows_rsp() { self.more } else { 0 },
        });
        let Some(new) = wanted.filter(|_| wanted != self.written) else {
            return Ok(());
        };
        match new.cfa {
            Cfa::Expression { code, .. } => {
                let code = expression::shifted(code, new.more.into());
                self.out.push(gimli::DW_CFA_def_cfa_expression.0);
                bytes::uleb128(&mut self.out, code.len() as u64);
                self.out.extend(code);
            }
            Cfa::Register { register, offset } => {
                self.register(register, offset + i64::from(new.more))?;
            }
        }
        self.written = wanted;
        Ok(())
    }

    fn register(&mut self, register: u16, offset: i64) -> Result<(), Refused> {
        let Ok(positive) = u64::try_from(offset) else {
            if self.data_align == 0 || offset % self.data_align != 0 {
                return Err(Refused::Pieces("a frame address below the stack pointer"));
            }
            self.out.push(gimli::DW_CFA_def_cfa_sf.0);
            bytes::uleb128(&mut self.out, register.into());
            bytes::sleb128(&mut self.out, offset / self.data_align);
            return Ok(());
        };
        let before = match self.written {
            Some(Written {
                cfa: Cfa::Register { register, offset },
                more,
            }) => Some((register, offset + i64::from(more))),
            _ => None,
        };
        match before {
            Some((r, _)) if r == register => {
                self.out.push(gimli::DW_CFA_def_cfa_offset.0);
                bytes::uleb128(&mut self.out, positive);
            }
            Some((_, o)) if o == offset => {
                self.out.push(gimli::DW_CFA_def_cfa_register.0);
                bytes::uleb128(&mut self.out, register.into());
            }
            _ => {
                self.out.push(gimli::DW_CFA_def_cfa.0);
                bytes::uleb128(&mut self.out, register.into());
                bytes::uleb128(&mut self.out, positive);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rsp + `offset`.
    fn frame(offset: i64) -> Op<'static> {
        Op::Cfa(Cfa::Register {
            register: 7,
            offset,
        })
    }

    /// The state is remembered and restored while different numbers of bytes are pushed.
    #[test]
    fn what_is_restored_is_what_was_written() {
        let Op::Cfa(restored) = frame(16) else {
            unreachable!()
        };
        let steps = vec![
            (0x100, frame(16)),
            (0x102, Op::Remember),
            (0x106, Op::Restore(Some(restored))),
        ];
        let program = Program {
            steps,
            bytes: Vec::new(),
        };
        let piece = Piece {
            original: 0x100..0x108,
            copy: 0..0x80,
            map: &[(0x100, 0), (0x102, 0x20), (0x104, 0x40), (0x106, 0x60)],
            pushed: &[(0x10, 8), (0x50, 0)],
            asides: &[],
            landings: &[],
        };
        let mut writer = Writer::new(-8);
        writer.initial(&Program::default()).unwrap();
        let written = writer.entry(&program, &(0x100..0x108), &(0..0x80), &piece);
        let expected = [
            [0x0c, 7, 16].as_slice(),
            &[0x40 | 0x10, 0x0e, 24],
            &[0x40 | 0x10, 0x0a],
            &[0x40 | 0x30, 0x0e, 16],
            // With what was pushed when it was remembered.
            &[0x40 | 0x10, 0x0b, 0x0e, 16],
        ];
        assert_eq!(written, Ok(expected.concat()));
    }
}
