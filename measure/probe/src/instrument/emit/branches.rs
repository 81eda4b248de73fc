//! Which branches of a copy reach their targets in their short form: what the copy inserts decides, so it is measured
//! first.
use super::capture;
use super::probe::{self, Live, ProbeConfig, Site};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::unit::{Insn, Op, Unit};
use crate::instrument::capture::Capture;
use hopscope_event::record::{FunctionId, RecordKind};
use std::collections::HashMap;

/// Lengths of what the copy inserts.
pub(super) struct Sizes {
    exit: u32,
    tail: u32,
    /// Behind instructions at these addresses.
    loads: HashMap<u64, u32>,
}

impl Sizes {
    pub(super) fn measure(
        config: &ProbeConfig,
        at_exit: &[Capture],
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
                probe::probe(asm, z, config, slow, site(RecordKind::TailExit, true));
            }),
            loads,
        }
    }

    /// Which branches need their long form: grows from all-short until nothing changes.
    pub(super) fn relax(&self, unit: &Unit, piece: usize) -> Vec<bool> {
        let decoded = &unit.pieces[piece];
        let insns = &decoded.insns;
        let near = |target: u64| decoded.range.contains(&target);
        let mut long: Vec<bool> = insns
            .iter()
            .map(|i| match i.op {
                Op::Jump { target } | Op::JumpIf { target, .. } => !near(target) || i.len > 4,
                _ => false,
            })
            .collect();
        let mut offsets = vec![0u32; insns.len() + 1];
        loop {
            for (n, insn) in insns.iter().enumerate() {
                offsets[n + 1] = offsets[n] + self.of(insn, long[n], unit);
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
                let distance = to as i64 - offsets[n + 1] as i64;
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

    fn of(&self, insn: &Insn, long: bool, unit: &Unit) -> u32 {
        let len = insn.len as u32;
        let inside = |target: u64| unit.contains(target);
        let loads = self.loads.get(&insn.svma).copied().unwrap_or(0);
        loads
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
