//! From where control comes to each instruction of a unit.
use super::flow::{Body, Ways};
use crate::instrument::body::unit::Op;
use iced_x86::Mnemonic;

impl Ways {
    /// Computed jumps lead to what nothing else does: to all that they may lead to would be anywhere.
    pub(super) fn of(body: &Body, entry: u64) -> Ways {
        let count = body.insns.len();
        let mut ways = Ways {
            into: vec![Vec::new(); count],
            out: vec![Vec::new(); count],
            from_outside: vec![false; count],
        };
        let mut seen = vec![false; count];
        if let Some(first) = body.number(entry) {
            ways.from_outside[first] = true;
            ways.follow(body, first, &mut seen);
        }
        let jumps = (0..count).filter(|at| body.insns[*at].op == Op::IndirectJump);
        let jumps: Vec<usize> = jumps.collect();
        for at in 0..count {
            let is_padding = || {
                body.decoded(at)
                    .is_some_and(|i| i.mnemonic() == Mnemonic::Nop)
            };
            if seen[at] || is_padding() {
                continue;
            }
            ways.from_outside[at] = jumps.is_empty();
            for jump in &jumps {
                ways.into[at].push(*jump);
                ways.out[*jump].push(Some(at));
            }
            ways.follow(body, at, &mut seen);
        }
        ways
    }

    pub(super) fn leads_to(&self, at: usize) -> bool {
        self.from_outside[at] || !self.into[at].is_empty()
    }

    fn follow(&mut self, body: &Body, first: usize, seen: &mut [bool]) {
        let mut open = vec![first];
        seen[first] = true;
        while let Some(at) = open.pop() {
            for to in body.direct(at) {
                let to = to.and_then(|svma| body.number(svma));
                self.out[at].push(to);
                let Some(to) = to else { continue };
                self.into[to].push(at);
                if !seen[to] {
                    seen[to] = true;
                    open.push(to);
                }
            }
        }
    }
}
