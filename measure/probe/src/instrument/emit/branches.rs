//! Which branches of a copy reach their targets in their short form: what the copy inserts decides, so it is measured
//! first.
use super::capture;
use super::capture::call::{self, Target};
use super::inlined;
use super::probe::{self, Live, ProbeConfig, Site};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::inlined::{Bracket, Crossing, Crossings};
use crate::instrument::body::unit::{Insn, Op, Unit};
use crate::instrument::capture::Capture;
use hopscope_event::record::{FunctionId, RecordKind};
use std::collections::HashMap;

/// Lengths of what the copy inserts.
pub(super) struct Sizes {
    exit: u32,
    tail: u32,
    /// Of a probe of an inlined function.
    crossing: u32,
    /// Behind instructions at these addresses.
    loads: HashMap<u64, u32>,
    /// Around a call, at most, but for the bytes that read its operand.
    bracket: u32,
}

/// A push of the operand of a branch is never longer by more: a 32-bit displacement and a SIB byte.
const PUSH_LONGER: u32 = 5;

impl Sizes {
    pub(super) fn measure(
        config: &ProbeConfig,
        (at_exit, at_tail_exit): (&[Capture], &[Capture]),
        in_body: &[Capture],
        tables: bool,
    ) -> Sizes {
        let length = |emit: &dyn Fn(&mut Asm, Slow)| {
            let mut asm = Asm::new();
            let slow = Slow::labels(&mut asm);
            emit(&mut asm, slow);
            asm.position(Zone::Hot)
        };
        let site = |kind, red_zone| Site {
            function: FunctionId(0),
            kind,
            live: Live::ALL,
            red_zone,
            position: probe::RSP,
        };
        let (z, function) = (Zone::Hot, FunctionId(0));
        let mut loads: HashMap<u64, u32> = HashMap::new();
        for captured in in_body {
            for (svma, reg) in &captured.loads {
                *loads.entry(*svma).or_default() += length(&|asm, slow| {
                    capture::body(asm, z, config, slow, function, captured, *reg);
                });
            }
        }
        Sizes {
            exit: length(&|asm, slow| {
                capture::exit(
                    asm,
                    z,
                    config,
                    slow,
                    site(RecordKind::Exit, tables),
                    at_exit,
                );
            }),
            tail: length(&|asm, slow| {
                let site = site(RecordKind::TailExit, true);
                capture::exit(asm, z, config, slow, site, at_tail_exit);
            }),
            crossing: length(&|asm, slow| {
                let one = Crossing {
                    function,
                    kind: RecordKind::Exit,
                    position: probe::RSP,
                };
                inlined::probes(asm, z, config, slow, &[one]);
            }),
            loads,
            bracket: length(&|asm, slow| {
                let one = Bracket {
                    call: 0,
                    function,
                    position: probe::RSP,
                    through_pointer: true,
                };
                let target = Target {
                    push: &[],
                    from_rip: None,
                };
                call::entry(asm, z, config, slow, &one, &target);
                call::probe(asm, z, config, slow, (&one, RecordKind::Exit));
            }),
        }
    }

    /// Which branches need their long form: grows from all-short until nothing changes.
    /// `by_word`: calls that are made by a word.
    pub(super) fn relax(
        &self,
        unit: &Unit,
        piece: usize,
        inlined: &Crossings,
        by_word: &HashMap<u64, Label>,
    ) -> Vec<bool> {
        let decoded = &unit.pieces[piece];
        let insns = &decoded.insns;
        let crosses = |insn: &Insn, target| !inlined.on(Some(insn.svma), Some(target)).is_empty();
        let near =
            |insn: &Insn, target: u64| decoded.range.contains(&target) && !crosses(insn, target);
        let mut long: Vec<bool> = insns
            .iter()
            .map(|i| match i.op {
                Op::Jump { target } | Op::JumpIf { target, .. } => !near(i, target) || i.len > 4,
                _ => false,
            })
            .collect();
        let mut offsets = vec![0u32; insns.len() + 1];
        let between: Vec<u32> = insns
            .iter()
            .zip(insns.iter().skip(1))
            .map(|(insn, next)| {
                let on = inlined.on(Some(insn.svma), Some(next.svma));
                self.crossing * on.len() as u32 * u32::from(insn.goes_on())
            })
            .chain([0])
            .collect();
        loop {
            for (n, insn) in insns.iter().enumerate() {
                let longer = u32::from(by_word.contains_key(&insn.svma));
                let of_it =
                    self.of(insn, long[n], unit, inlined) + longer + self.leaving(insn, inlined);
                offsets[n + 1] = offsets[n] + of_it + between[n];
            }
            let mut changed = false;
            for (n, insn) in insns.iter().enumerate() {
                let (Op::Jump { target } | Op::JumpIf { target, .. }) = insn.op else {
                    continue;
                };
                if long[n] {
                    continue;
                }
                let to = insns
                    .binary_search_by_key(&target, |i| i.svma)
                    .map_or(0, |t| offsets[t]);
                let distance = to as i64 - (offsets[n + 1] - between[n]) as i64;
                if i8::try_from(distance).is_err() {
                    long[n] = true;
                    changed = true;
                }
            }
            if !changed {
                return long;
            }
        }
    }

    /// What is recorded of inlined functions before an instruction that leaves, or jumps.
    fn leaving(&self, insn: &Insn, inlined: &Crossings) -> u32 {
        let from = Some(insn.svma);
        let on = match insn.op {
            Op::Jump { target } => {
                inlined.on(from, Some(target)).len() + inlined.on(from, None).len()
            }
            Op::IndirectTail { .. } | Op::Ret => inlined.on(from, None).len(),
            _ => 0,
        };
        self.crossing * on as u32
    }

    fn of(&self, insn: &Insn, long: bool, unit: &Unit, inlined: &Crossings) -> u32 {
        let len = insn.len as u32;
        let bracketed = inlined.bracket(insn.svma).is_some();
        let bracket = u32::from(bracketed) * (self.bracket + len + PUSH_LONGER);
        let inside = |target: u64| unit.contains(target);
        let loads = self.loads.get(&insn.svma).copied().unwrap_or(0);
        loads
            + bracket
            + match insn.op {
                Op::Plain | Op::RipRelative { .. } | Op::Call { .. } => len,
                Op::Jump { target } if !inside(target) => self.tail + 5,
                Op::Jump { .. } if long => 5,
                Op::JumpIf { .. } if long => 6,
                Op::Jump { .. } | Op::JumpIf { .. } => 2,
                Op::ShortOnly { .. } => len + 2 + 5,
                // The push is never longer than the jump plus a 32-bit displacement and a SIB byte.
                Op::IndirectJump => len + 5 + 5 + 5,
                Op::IndirectTail { .. } => self.tail + len,
                Op::Ret => self.exit + len,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::Stores;
    use super::*;
    use crate::locate::FrameAddress;

    /// A short jump over more than was measured would reach no target.
    #[test]
    fn nothing_that_is_inserted_is_longer_than_measured() {
        let config = ProbeConfig {
            ring_records_log2: 12,
            bmi2: false,
            stores: Stores::Records,
            switchable: false,
            ordered_stamps: true,
        };
        let sizes = Sizes::measure(&config, (&[], &[]), &[], true);
        let length = |emit: &dyn Fn(&mut Asm, Slow)| {
            let mut asm = Asm::new();
            let slow = Slow::labels(&mut asm);
            emit(&mut asm, slow);
            asm.position(Zone::Hot)
        };
        for position in [
            FrameAddress::Rsp(0),
            FrameAddress::Rsp(0x7fff_0000),
            FrameAddress::Rbp(-8),
            FrameAddress::Rbp(-0x8000),
        ] {
            let (function, kind) = (FunctionId(FunctionId::MAX), RecordKind::Entry);
            let crossing = [Crossing {
                function,
                kind,
                position,
            }];
            let crossing = length(&|asm, slow| {
                inlined::probes(asm, Zone::Hot, &config, slow, &crossing);
            });
            assert!(crossing <= sizes.crossing, "{position:?}: {crossing}");
            let bracket = Bracket {
                call: 0,
                function,
                position,
                through_pointer: true,
            };
            let target = Target {
                push: &[],
                from_rip: None,
            };
            let around = length(&|asm, slow| {
                call::entry(asm, Zone::Hot, &config, slow, &bracket, &target);
                call::probe(asm, Zone::Hot, &config, slow, (&bracket, RecordKind::Exit));
            });
            assert!(around <= sizes.bracket, "{position:?}: {around}");
        }
    }
}
