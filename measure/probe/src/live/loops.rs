//! Loops of functions that run while they are attached to: of others none is touched.
use super::build::{Entry, Linked};
use super::table::PatchTable;
use hopscope_event::FunctionId;
use std::collections::HashSet;
use std::ops::Range;

/// Functions with something inlined, a part of whose code is to be patched.
pub(super) struct Loops<'a> {
    /// And whether they run.
    entries: Vec<(&'a Entry, bool)>,
    /// What they run in, ascending, and which of them does.
    pieces: Vec<(Range<u64>, usize)>,
    /// All of that.
    span: Range<u64>,
}

/// Functions that ran.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// From the next round of a loop on they run in their copies.
    pub led: Vec<FunctionId>,
    /// Their loops lead nowhere.
    pub not_led: Vec<FunctionId>,
}

impl Running {
    /// What the user should know of it.
    pub(super) fn note(&mut self, pid: i32, table: &PatchTable) -> Option<String> {
        for ids in [&mut self.led, &mut self.not_led] {
            ids.sort_unstable();
            ids.dedup();
        }
        if !self.led.is_empty() {
            let n = self.led.len();
            log::info!(
                "process {pid}: {n} functions that run are led into their copies by their loops"
            );
        }
        let name = |id: &FunctionId| table.function(*id).map(|f| f.name.as_str());
        let (first, more) = (self.not_led.first()?, self.not_led.len() - 1);
        let more = match more {
            0 => String::new(),
            n => format!(" and {n} others"),
        };
        Some(format!(
            "process {pid}: {}{more} ran when hopscope attached, with loops that do not lead into the copy (their jumps are too short, or it calls setjmp): what is inlined there, or called by it, is measured from its next call on",
            name(first).unwrap_or("a function")
        ))
    }
}

impl<'a> Loops<'a> {
    /// Of those that may have to be led in this part of the code.
    pub(super) fn of(linked: &'a [Linked], part: &Range<u64>) -> Loops<'a> {
        let here = |e: &&Entry| {
            let led = e.loops.iter().any(|l| part.contains(&l.at));
            led || (e.loops_stay && part.contains(&e.patch_at))
        };
        let entries = linked.iter().flat_map(|l| &l.entries).filter(here);
        let entries: Vec<_> = entries.map(|e| (e, false)).collect();
        let all = entries.iter().enumerate();
        let pieces = all.flat_map(|(n, (e, _))| e.pieces.iter().map(move |p| (p.clone(), n)));
        let mut pieces: Vec<(Range<u64>, usize)> = pieces.collect();
        pieces.sort_by_key(|(piece, _)| piece.start);
        let begin = pieces.first().map_or(0, |(piece, _)| piece.start);
        let end = pieces.iter().map(|(piece, _)| piece.end + 1).max();
        Loops {
            span: begin..end.unwrap_or(begin),
            pieces,
            entries,
        }
    }

    /// A word that may be a thread's place, or its way back.
    pub(super) fn see(&mut self, word: u64) {
        // Nearly every word lies outside.
        if !self.span.contains(&word) {
            return;
        }
        let after = self
            .pieces
            .partition_point(|(piece, _)| piece.start <= word);
        // A call that is a piece's last instruction returns to its end, where the next one may begin.
        let at = self.pieces[..after].iter().rev().take(2);
        for (_, n) in at.filter(|(piece, _)| word <= piece.end) {
            let (entry, runs) = &mut self.entries[*n];
            // A pointer to the function: nothing returns to its begin, and who is there goes to the copy.
            let begins =
                entry.slots.is_none() && entry.pieces.first().is_some_and(|p| p.start == word);
            *runs |= !begins;
        }
    }

    /// Not every place is known: any may run.
    pub(super) fn see_all(&mut self) {
        self.entries.iter_mut().for_each(|(_, runs)| *runs = true);
    }

    /// Leaves the loops of all others as they are.
    pub(super) fn leave_out_idle(&self, table: &mut PatchTable) -> Running {
        let idle = self.entries.iter().filter(|(_, runs)| !runs);
        let idle: HashSet<u64> = idle.flat_map(|(e, _)| &e.loops).map(|l| l.at).collect();
        table.patches.retain(|p| !idle.contains(&p.at));
        let mut running = Running::default();
        for (entry, _) in self.entries.iter().filter(|(_, runs)| *runs) {
            match entry.loops.is_empty() {
                true => running.not_led.push(entry.id),
                false => running.led.push(entry.id),
            }
        }
        running
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::Patch;
    use super::super::table::tests::table;
    use super::*;
    use crate::live::build::LoopEntry;

    fn patch(at: u64) -> Patch {
        Patch {
            at,
            original: [0xe9, 0, 0, 0, 0],
            replaced: [0xe9, 1, 0, 0, 0],
        }
    }

    fn entry(id: u32, at: u64, loops: &[u64]) -> Entry {
        let loops = loops.iter().map(|at| LoopEntry {
            at: *at,
            copy_at: 0,
            back: patch(0),
        });
        Entry {
            id: FunctionId(id),
            patch_at: at,
            copy_at: 0,
            moved: Vec::new(),
            switched: false,
            loops_stay: loops.len() == 0,
            slots: None,
            loops: loops.collect(),
            pieces: std::iter::once(at..at + 0x100).collect(),
        }
    }

    #[test]
    fn only_what_runs_is_led() {
        let entries = vec![
            entry(0, 0x1000, &[0x1050]),
            entry(1, 0x2000, &[0x2050, 0x2060]),
            entry(2, 0x3000, &[]),
            entry(3, 0x4000, &[0x4050]),
        ];
        let linked = [Linked {
            at: 0,
            code: Vec::new(),
            entries,
            refused: Vec::new(),
            tables_at: None,
            copies: Vec::new(),
            routines: Vec::new(),
            fused: Vec::new(),
        }];
        let sites = [0x1000, 0x1050, 0x2000, 0x2050, 0x2060, 0x3000];
        let part = 0x1000..0x3005;
        let led = |words: &[u64], all: bool| {
            let mut loops = Loops::of(&linked, &part);
            words.iter().for_each(|w| loops.see(*w));
            if all {
                loops.see_all();
            }
            let mut table = table();
            table.patches = sites.map(patch).to_vec();
            let running = loops.leave_out_idle(&mut table);
            let left: Vec<u64> = table.patches.iter().map(|p| p.at).collect();
            (left, running)
        };
        let ids = |led: &[u32], not_led: &[u32]| Running {
            led: led.iter().map(|id| FunctionId(*id)).collect(),
            not_led: not_led.iter().map(|id| FunctionId(*id)).collect(),
        };
        assert_eq!(
            led(&[0xfff, 0x1101, 0x4010], false),
            (vec![0x1000, 0x2000, 0x3000], ids(&[], &[]))
        );
        // Pointers to functions.
        assert_eq!(
            led(&[0x2000, 0x3000], false),
            (vec![0x1000, 0x2000, 0x3000], ids(&[], &[]))
        );
        // The way back of a call that is the last instruction.
        let second = led(&[0x2100, 0x3001], false);
        assert_eq!(
            second,
            (
                vec![0x1000, 0x2000, 0x2050, 0x2060, 0x3000],
                ids(&[1], &[2])
            )
        );
        assert_eq!(led(&[], true), (sites.to_vec(), ids(&[0, 1], &[2])));
    }
}
