//! Calls from copy to copy that share the stamp of the exit before them: which there are, and the words that they go by.
//!
//! Such a word lies with the copies, and holds the function's own address until both functions are measured: then a way into
//! its copy. It is given back before any entry is, and never led again: where one of both runs unmeasured for a while, the
//! record before an entry could be of a call long ago.
use super::led_slot::GotPatch;
use super::selected::Selected;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::fused::{self, Behind};
use crate::instrument::body::unit::Unit;
use hopscope_event::layout::PAGE;
use hopscope_event::{CapturePlace, FunctionId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A word that calls go by, as the patch table has it: addresses in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FusedCall {
    pub at: u64,
    /// What it holds before and afterwards: the function that is called.
    pub function: u64,
    /// Where its copy is entered.
    pub replaced: u64,
    /// Where both functions are led into their copies, that of the exit first.
    pub sites: [u64; 2],
}

impl FusedCall {
    pub(super) fn slot(&self) -> GotPatch {
        GotPatch {
            at: self.at,
            function: self.function,
            found: self.function,
            replaced: self.replaced,
        }
    }
}

/// As they are written, ascending.
pub(super) fn slots(calls: &[FusedCall]) -> Vec<GotPatch> {
    calls.iter().map(FusedCall::slot).collect()
}

/// Which functions of a recording follow which: by their numbers in it.
#[derive(Default)]
pub(super) struct Pairs {
    /// The one that returns, and the one that is called behind it.
    all: Vec<(usize, usize)>,
    /// Of each caller: the address of the call, and the pair.
    calls: HashMap<usize, Vec<(u64, usize)>>,
    /// Of each callee.
    ways: HashMap<usize, Vec<usize>>,
}

impl Pairs {
    pub(super) fn find(selected: &[Selected]) -> Pairs {
        let key = |s: &Selected, svma: u64| (s.bias, svma);
        let entries = selected.iter().enumerate();
        let entries = entries.filter(|(_, s)| s.slots.is_none());
        let measured: HashMap<(u64, u64), usize> = entries
            .map(|(n, s)| (key(s, s.pieces[0].svma), n))
            .collect();
        let (mut pairs, mut known) = (Pairs::default(), HashMap::new());
        for (caller, s) in selected.iter().enumerate() {
            for behind in calls_of(s, |svma| measured.contains_key(&key(s, svma))) {
                let before = measured[&key(s, behind.before)];
                let callee = measured[&key(s, behind.callee)];
                if captures(&selected[callee], CapturePlace::Entry)
                    || captures(&selected[before], CapturePlace::Return)
                {
                    continue;
                }
                let pair = *known.entry((before, callee)).or_insert_with(|| {
                    pairs.all.push((before, callee));
                    pairs
                        .ways
                        .entry(callee)
                        .or_default()
                        .push(pairs.all.len() - 1);
                    pairs.all.len() - 1
                });
                pairs
                    .calls
                    .entry(caller)
                    .or_default()
                    .push((behind.call, pair));
            }
        }
        pairs
    }
}

fn calls_of(s: &Selected, is_measured: impl Fn(u64) -> bool) -> Vec<Behind> {
    // Where an exception lands is not known here; and what is timed within has probes between.
    if s.lands || !s.inlined.is_empty() {
        return Vec::new();
    }
    let unit = Unit::again(&s.pieces, s.red_zone_at_entry, s.slots.is_some());
    unit.map_or_else(
        |_| Vec::new(),
        |unit| fused::find(&unit, &s.pieces, is_measured),
    )
}

fn captures(s: &Selected, at: CapturePlace) -> bool {
    s.captures.iter().any(|c| c.entry.at == at)
}

/// The words and the ways of one segment.
pub(super) struct Words<'p> {
    pairs: &'p Pairs,
    labels: HashMap<usize, (Label, Label)>,
}

/// A word in a segment, and what it is for.
pub(super) struct Word {
    word: Label,
    way: Label,
    function: u64,
    before: FunctionId,
    callee: FunctionId,
}

impl<'p> Words<'p> {
    pub(super) fn of(pairs: &'p Pairs) -> Words<'p> {
        Words {
            pairs,
            labels: HashMap::new(),
        }
    }

    fn of_pair(&mut self, asm: &mut Asm, pair: usize) -> (Label, Label) {
        let labels = self.labels.entry(pair);
        *labels.or_insert_with(|| (asm.label(), asm.label()))
    }

    /// Of the calls that a function makes.
    pub(super) fn calls(&mut self, asm: &mut Asm, caller: usize) -> HashMap<u64, Label> {
        let calls = self.pairs.calls.get(&caller).into_iter().flatten();
        calls
            .map(|(call, pair)| (*call, self.of_pair(asm, *pair).0))
            .collect()
    }

    /// Into the copy of a function.
    pub(super) fn ways(
        &mut self,
        asm: &mut Asm,
        callee: usize,
        selected: &[Selected],
    ) -> Vec<(Label, FunctionId)> {
        let ways = self.pairs.ways.get(&callee).into_iter().flatten();
        let id = |pair: &usize| selected[self.pairs.all[*pair].0].id;
        let ids: Vec<(usize, FunctionId)> = ways.map(|pair| (*pair, id(pair))).collect();
        ids.into_iter()
            .map(|(pair, id)| (self.of_pair(asm, pair).1, id))
            .collect()
    }

    /// Puts the words there, each with the function's own address.
    pub(super) fn place(self, asm: &mut Asm, selected: &[Selected]) -> Vec<Word> {
        let mut labels: Vec<(usize, (Label, Label))> = self.labels.into_iter().collect();
        labels.sort_unstable_by_key(|(pair, _)| *pair);
        if labels.is_empty() {
            return Vec::new();
        }
        // The page of a word that was written is the process's own: what is written to the copies' file later, which takes
        // probes out, does not reach it. So no code may lie there, which ends where this zone begins.
        let apart = PAGE.saturating_sub(asm.position(Zone::Table) as usize);
        asm.bytes(Zone::Table, &vec![0; apart]);
        asm.align(Zone::Table, 8, 0);
        let place = |(pair, (word, way)): (usize, (Label, Label))| {
            let (before, callee) = self.pairs.all[pair];
            let s = &selected[callee];
            let function = s.pieces[0].svma.wrapping_add(s.bias);
            asm.bind(Zone::Table, word);
            asm.bytes(Zone::Table, &function.to_le_bytes());
            Word {
                word,
                way,
                function,
                before: selected[before].id,
                callee: s.id,
            }
        };
        labels.into_iter().map(place).collect()
    }
}

impl Word {
    /// With the segment at `at`, where both functions have a jump at `site`.
    pub(super) fn linked(
        &self,
        asm: &Asm,
        at: u64,
        site: impl Fn(FunctionId) -> Option<u64>,
    ) -> Option<FusedCall> {
        Some(FusedCall {
            at: asm.address(self.word, at)?,
            function: self.function,
            replaced: asm.address(self.way, at)?,
            sites: [site(self.before)?, site(self.callee)?],
        })
    }
}
