//! What unwind tables of a copy are made from: where its instructions lie, where code lies that was inserted before them,
//! and how much more is on the stack within it.
use super::follow::{Code, Steps};
use crate::instrument::asm::Zone;
use std::ops::Range;

/// A piece of a function and its copy, in offsets of a zone.
#[derive(Debug, Clone)]
pub struct Part {
    /// Addresses in the file.
    pub original: Range<u64>,
    pub zone: Zone,
    pub copy: Range<u32>,
    /// Instructions and what stands for them, code inserted before included. Ascending.
    pub map: Vec<(u64, u32)>,
    /// From an offset on, bytes on the stack beyond those of the original.
    pub pushed: Vec<(u32, i32)>,
    /// Inserted code out of line.
    pub asides: Vec<Aside>,
    /// Calls whose exceptions land past probes. Ascending.
    pub landings: Vec<Landing>,
}

/// Where exceptions land that pass a call.
#[derive(Debug, Clone)]
pub struct Landing {
    /// In the file.
    pub call: Range<u64>,
    pub at: (Zone, u32),
}

/// Code that lies apart, where a thread is as it is at an instruction of the original.
#[derive(Debug, Clone)]
pub struct Aside {
    pub zone: Zone,
    pub code: Range<u32>,
    /// In the file.
    pub svma: u64,
    pub pushed: Vec<(u32, i32)>,
}

/// Where inserted code begins and ends, and the instruction before which it is.
#[derive(Debug, Clone)]
pub struct Inserted {
    pub zone: Zone,
    pub code: Range<u32>,
    pub svma: u64,
}

impl Part {
    /// All that belongs to it.
    pub fn places(&self) -> impl Iterator<Item = (Zone, Range<u32>)> {
        let apart = self.asides.iter().map(|a| (a.zone, a.code.clone()));
        [(self.zone, self.copy.clone())].into_iter().chain(apart)
    }

    /// Adds what `code` has there for each of `inserted`, in this order.
    pub fn add_inserted(&mut self, code: &Code, inserted: &[Inserted]) {
        for one in inserted {
            let steps = code.follow(one.zone, &one.code);
            let in_line = one.zone == self.zone && self.copy.contains(&one.code.start);
            if in_line {
                let range = (one.zone, one.code.start)..(one.zone, one.code.end);
                changes(steps.range(range), one.code.end, &mut self.pushed);
            }
            let is_aside =
                |at: &(Zone, u32)| !in_line || at.0 != one.zone || !one.code.contains(&at.1);
            self.asides.extend(
                asides(&steps, one.svma)
                    .into_iter()
                    .filter(|a| is_aside(&(a.zone, a.code.start))),
            );
        }
        self.asides.sort_by_key(|a| (a.zone, a.code.start));
    }
}

type Step<'s> = (&'s (Zone, u32), &'s (u32, i32));

/// Where what was pushed changes; nothing at the end.
fn changes<'s>(steps: impl Iterator<Item = Step<'s>>, end: u32, out: &mut Vec<(u32, i32)>) {
    let mut now = 0;
    for ((_, at), (_, pushed)) in steps {
        if *pushed != now {
            now = *pushed;
            out.push((*at, now));
        }
    }
    if now != 0 {
        out.push((end, 0));
    }
}

/// What lies together, each with its changes.
fn asides(steps: &Steps, svma: u64) -> Vec<Aside> {
    let mut all: Vec<Aside> = Vec::new();
    for ((zone, at), (next, pushed)) in steps {
        match all
            .last_mut()
            .filter(|a| a.zone == *zone && a.code.end == *at)
        {
            Some(aside) => {
                if aside.pushed.last().is_none_or(|last| last.1 != *pushed) {
                    aside.pushed.push((*at, *pushed));
                }
                aside.code.end = *next;
            }
            None => all.push(Aside {
                zone: *zone,
                code: *at..*next,
                svma,
                pushed: vec![(*at, *pushed)],
            }),
        }
    }
    all
}
