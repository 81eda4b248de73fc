//! Calls that are timed where they are made.
use super::{Added, Body, Copier};
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::push;
use crate::instrument::body::refusal::Refusal;
use crate::instrument::body::unit::{Insn, Op};
use crate::instrument::emit::capture::call::{self, Target};
use crate::instrument::emit::probe::Stores;
use hopscope_event::RecordKind;

impl Copier<'_> {
    /// The entry, which whoever jumps to the instruction comes by.
    pub(super) fn before_call(
        &mut self,
        body: &Body,
        piece: usize,
        zone: Zone,
        insn: &Insn,
        added: &mut Added,
    ) -> Result<(), Refusal> {
        let Some(bracket) = body.inlined.bracket(insn.svma).filter(|_| self.records()) else {
            return Ok(());
        };
        let begin = self.asm.position(zone);
        let (config, slow) = (self.config, self.slow);
        if !bracket.through_pointer {
            call::probe(self.asm, zone, config, slow, (bracket, RecordKind::Entry));
            added.insert(zone, begin..self.asm.position(zone), insn.svma);
            return Ok(());
        }
        let at = (insn.svma - body.unit.pieces[piece].range.start) as usize;
        let bytes = &body.pieces[piece].bytes[at..at + insn.len as usize];
        let push = push::from_branch(bytes, insn.svma)?;
        let target = target(self.asm, &push, insn.op, body.bias);
        call::entry(self.asm, zone, config, slow, bracket, &target);
        added.insert(zone, begin..self.asm.position(zone), insn.svma);
        Ok(())
    }

    /// The exit, where the callee returns to.
    pub(super) fn behind_call(&mut self, body: &Body, zone: Zone, insn: &Insn, added: &mut Added) {
        let Some(bracket) = body.inlined.bracket(insn.svma).filter(|_| self.records()) else {
            return;
        };
        let begin = self.asm.position(zone);
        let (config, slow) = (self.config, self.slow);
        call::probe(self.asm, zone, config, slow, (bracket, RecordKind::Exit));
        // The frame is as at the call: what follows one that does not return belongs to another way.
        added.insert(zone, begin..self.asm.position(zone), insn.svma);
    }

    /// For benches there are others: what calls cost.
    fn records(&self) -> bool {
        self.config.stores == Stores::Records
    }
}

/// The operand of a call, of which `push` is made.
fn target<'p>(asm: &mut Asm, push: &'p [u8], op: Op, bias: u64) -> Target<'p> {
    let from_rip = match op {
        // The displacement is the last of the instruction.
        Op::RipRelative { target, .. } => {
            Some((push.len() - 4, asm.label_at(target.wrapping_add(bias))))
        }
        _ => None,
    };
    Target { push, from_rip }
}
